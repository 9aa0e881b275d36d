"""The pieces of notebook 3 that its reader writes: what the notebook goes on with otherwise.

A ledger is a dict of three lists here: ids, mask (1: the policy wrote the token) and logprobs (0
for the tokens of others). That of the pipeline is in `helpers.episodes.ledger`.
"""

from collections.abc import Sequence

Lists = dict[str, list]


def append(ledger: Lists, ids: Sequence[int], logprobs: Sequence[float] | None = None) -> Lists:
    """The ledger with more tokens at its end; those of the policy come with their logprobs.

    Raises ValueError where the logprobs are not as many as the tokens.
    """
    if logprobs is not None and len(logprobs) != len(ids):
        raise ValueError(f"{len(ids)} tokens and {len(logprobs)} logprobs do not match.")
    by_policy = int(logprobs is not None)
    return {
        "ids": [*ledger["ids"], *ids],
        "mask": ledger["mask"] + [by_policy] * len(ids),
        "logprobs": [*ledger["logprobs"], *(logprobs or [0.0] * len(ids))],
    }


def gap(sampled: Sequence[float], recomputed: Sequence[float], mask: Sequence[int]) -> list[float]:
    """How far apart two logprobs are, in nats, for each token of the policy."""
    return [abs(a - b) for a, b, wrote in zip(sampled, recomputed, mask, strict=True) if wrote]


def columns(ledger: Lists) -> Lists:
    """What a trainer is given of a ledger: prompt_ids, completion_ids, env_mask and logprobs.

    The completion reaches from the policy's first token to its last.
    """
    mask = ledger["mask"]
    start = mask.index(1)
    end = len(mask) - mask[::-1].index(1)
    return {
        "prompt_ids": ledger["ids"][:start],
        "completion_ids": ledger["ids"][start:end],
        "env_mask": mask[start:end],
        "logprobs": ledger["logprobs"][start:end],
    }
