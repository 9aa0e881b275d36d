"""Logprobs of completions without computing a shared prompt twice: the packed forward pass.

An update scores groups of completions of the same prompt, and all prompts of a task begin with the
same words. Four steps: `group_rows` finds what is shared, `split_groups` bounds the length,
`pack_groups` lays a part out as one sequence, and `scatter_scores` gives every row of the batch
its numbers back.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from accelerate import Accelerator
from torch.nn.functional import pad
from trl.trainer.utils import selective_log_softmax_and_entropy

from helpers.policy.generators import common_prefix

# Families (``config.model_type``) whose layers are attention and nothing else. A layer that keeps a
# state, such as LFM2's short convolution, would carry it from one branch into the next.
ATTENTION_ONLY = {"llama", "qwen2", "qwen3"}

MAX_PACKED = 4_096  # tokens after which a sequence is closed: its mask grows with their square
NOT_SCORED = -100  # the target of a position whose successor is not scored

Tokens = tuple[int, ...]


@dataclass
class Group:
    """A prompt and its completions.

    ``completions``: for each completion the rows of the batch that have it. Equal ones are computed
    once: where answers are short, most groups have some.
    """

    prompt: Tokens
    completions: dict[Tokens, list[int]] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """How many tokens there are, what is shared with other groups included."""
        return len(self.prompt) + sum(len(completion) for completion in self.completions)


@dataclass
class PackedSequence:
    """Groups as one sequence of length L.

    ``ids``, ``positions`` and ``targets`` have L entries; a target is the token that is scored at
    its place, or `NOT_SCORED`. ``sees``: boolean (L, L), what each token attends to.
    """

    ids: list[int]
    positions: list[int]
    targets: list[int]
    sees: torch.Tensor


def packed_scores(
    model: torch.nn.Module,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    keep: int,
    temperature: float,
    accelerator: Accelerator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logprobs and entropies, each (batch, ``keep``), of the last ``keep`` tokens of every row.

    ``input_ids`` and ``attention_mask``: (batch, length), prompts padded on the left, completions
    on the right. ``accelerator``: knows the precision of the forward pass. What is padding comes
    out as 0. The values and their gradients are those of a forward pass over the padded batch.
    """
    groups = group_rows(input_ids, attention_mask, keep)
    logprobs: dict[int, torch.Tensor] = {}
    entropies: dict[int, torch.Tensor] = {}
    for part in split_groups(groups):
        packed = pack_groups(part)
        with accelerator.autocast():
            part_logits, targets = run_packed(model, packed, input_ids.device)
        part_logprobs, part_entropies = selective_log_softmax_and_entropy(
            part_logits.float(), targets, temperature=temperature
        )
        logprobs |= scatter_scores(part, part_logprobs, keep)
        entropies |= scatter_scores(part, part_entropies, keep)
    rows = range(len(input_ids))
    return (
        torch.stack([logprobs[row] for row in rows]),
        torch.stack([entropies[row] for row in rows]),
    )


def group_rows(input_ids: torch.Tensor, attention_mask: torch.Tensor, keep: int) -> list[Group]:
    """The rows of a padded batch by prompt, and within a prompt by completion, in their order."""
    groups: dict[Tokens, Group] = {}
    for row, (ids, mask) in enumerate(zip(input_ids, attention_mask.bool(), strict=True)):
        prompt = tuple(ids[:-keep][mask[:-keep]].tolist())
        completion = tuple(ids[-keep:][mask[-keep:]].tolist())
        group = groups.setdefault(prompt, Group(prompt))
        group.completions.setdefault(completion, []).append(row)
    return list(groups.values())


def split_groups(groups: Iterable[Group], limit: int = MAX_PACKED) -> list[list[Group]]:
    """Deal the groups out, in their order, into parts that end when they have ``limit`` tokens."""
    parts: list[list[Group]] = []
    tokens = limit
    for group in groups:
        if tokens >= limit:
            parts.append([])
            tokens = 0
        parts[-1].append(group)
        tokens += group.tokens
    return parts


def pack_groups(groups: list[Group]) -> PackedSequence:
    """Lay groups out as one sequence in which nothing that is shared stands twice.

    First comes what all prompts begin with (the trunk), then, group by group, the rest of its
    prompt (the stem) and one branch per completion. A branch starts with its own copy of the
    prompt's last token, because what follows that token differs from branch to branch. A token sees
    the trunk, its own stem, and what came before it in its own branch: exactly what it would see in
    a sequence of its own.
    """
    trunk = common_prefix([group.prompt for group in groups])
    packed = PackedSequence(
        [], [], [], torch.zeros(_packed_length(groups, trunk), dtype=torch.bool)
    )
    _append(packed, groups[0].prompt[:trunk], first=0)
    packed.sees[trunk:, :trunk] = True
    for group in groups:
        last = len(group.prompt) - 1
        stem = _append(packed, group.prompt[trunk:last], first=trunk)
        for completion in group.completions:
            tokens = group.prompt[last:] + completion[:-1]
            branch = _append(packed, tokens, first=last, targets=completion)
            packed.sees[branch, stem] = True
    return packed


def _packed_length(groups: list[Group], trunk: int) -> tuple[int, int]:
    """The shape (L, L) of the mask: trunk, stems, and branches as long as their completions."""
    length = trunk
    for group in groups:
        stem = len(group.prompt) - 1 - trunk
        length += stem + sum(len(completion) for completion in group.completions)
    return length, length


def _append(
    packed: PackedSequence, tokens: Tokens, first: int, targets: Tokens | None = None
) -> slice:
    """Append a piece whose tokens see those before them in it; returns where it stands.

    ``first``: the position of its first token in the sequence that it stands for.
    """
    start = len(packed.ids)
    here = slice(start, start + len(tokens))
    packed.ids.extend(tokens)
    packed.positions.extend(range(first, first + len(tokens)))
    packed.targets.extend(targets if targets is not None else [NOT_SCORED] * len(tokens))
    packed.sees[here, here] = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
    return here


def run_packed(
    model: torch.nn.Module, packed: PackedSequence, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """One forward pass: logits (n, vocabulary) and targets (n) of the n scored places."""
    scored = [place for place, target in enumerate(packed.targets) if target != NOT_SCORED]
    targets = [packed.targets[place] for place in scored]
    output = model(
        input_ids=torch.tensor([packed.ids], device=device),
        attention_mask=packed.sees[None, None].to(device),
        position_ids=torch.tensor([packed.positions], device=device),
        use_cache=False,
        logits_to_keep=torch.tensor(scored, device=device),
    )
    return output.logits[0], torch.tensor(targets, device=device)


def scatter_scores(groups: list[Group], scores: torch.Tensor, keep: int) -> dict[int, torch.Tensor]:
    """For each row of the batch its scores, padded with 0 to ``keep``.

    ``scores``: those of all completions of the groups, one after another.
    """
    completions = [item for group in groups for item in group.completions.items()]
    pieces = scores.split([len(completion) for completion, _ in completions])
    found: dict[int, torch.Tensor] = {}
    for (completion, rows), piece in zip(completions, pieces, strict=True):
        for row in rows:
            found[row] = pad(piece, (0, keep - len(completion)))
    return found
