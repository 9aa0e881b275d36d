"""Prompts for a stream, as a rollout would bring them."""

from helpers.policy.streams import Request


def ask(stream, prompts, wait=0, seeds=None):
    """What a stream answers to prompts that come in one at a time, ``wait`` steps apart."""
    requests = [
        Request(prompt, seed, lane)
        for lane, (prompt, seed) in enumerate(
            zip(prompts, seeds or range(len(prompts)), strict=True)
        )
    ]
    answered = {}
    for request in requests:
        stream.add(request)
        for _ in range(wait):
            answered.update(stream.step())
    while len(answered) < len(requests):
        answered.update(stream.step())
    assert stream.step() == []
    return [answered[request] for request in requests]
