"""Logprobs computed again, to compare with those that were sampled."""


def recomputed_logprobs(model, ids):
    """Logprob of every token of ``ids`` after the first, under the model: a list of len(ids) with
    0.0 in front."""
    import torch

    with torch.inference_mode():
        logprobs = (
            model(torch.tensor([ids], device=model.device)).logits[0, :-1].float().log_softmax(-1)
        )
    return [
        0.0,
        *logprobs.gather(1, torch.tensor(ids[1:], device=model.device)[:, None])[:, 0].tolist(),
    ]


def largest_gap(model, episode):
    """Between sampled and recomputed logprobs, over the policy's tokens of an episode."""
    from helpers.episodes.ledger import POLICY

    ledger = episode.ledger
    again = recomputed_logprobs(model, ledger.ids)
    return max(
        abs(a - b)
        for a, b, who in zip(again, ledger.logprobs, ledger.owner, strict=True)
        if who == POLICY
    )
