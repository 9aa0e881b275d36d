"""GRPO with TRL on browser episodes: the trainer, its metrics, checkpoints and resume. ``scripts/train.py`` is a whole run."""

from typing import Any

import torch

from helpers.policy.generators import common_prefix

ATTENTION_ONLY = {"llama", "qwen2", "qwen3"}


MAX_PACKED = 4_096  # tokens


def _pack_tree(
    groups: list[tuple[list[int], list[list[int]]]],
) -> tuple[list[int], list[int], list[int], Any]:
    """Lay out groups of (prompt, completions) as one sequence in which nothing that is shared stands twice.

    First comes what all prompts begin with (the trunk), then, group by group, the rest of its prompt (the stem) and one branch
    per completion. A branch starts with its own copy of the prompt's last token, whose successor differs from branch to branch.
    Returns ids, positions, targets (-100 where nothing is scored) and the boolean attention mask (L, L): a token sees the
    trunk, its own stem, and what came before it in its own branch, exactly what it sees in a sequence of its own.
    """
    prompts = [tuple(prompt) for prompt, _ in groups]
    shared = common_prefix(prompts)
    length = shared + sum(
        len(prompt) - 1 - shared + sum(map(len, completions)) for prompt, completions in groups
    )
    ids, positions, targets = list(prompts[0][:shared]), list(range(shared)), [-100] * shared
    sees = torch.zeros(length, length, dtype=torch.bool)
    sees[shared:, :shared] = True

    def add(tokens: list[int], wanted: list[int], first: int) -> slice:
        """Append a causal piece at position ``first``; returns where it stands."""
        here = slice(len(ids), len(ids) + len(tokens))
        (
            ids.extend(tokens),
            targets.extend(wanted),
            positions.extend(range(first, first + len(tokens))),
        )
        sees[here, here] = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
        return here

    sees[:shared, :shared] = torch.ones(shared, shared, dtype=torch.bool).tril()
    for prompt, completions in groups:
        stem = add(prompt[shared:-1], [-100] * (len(prompt) - 1 - shared), shared)
        for completion in completions:
            branch = add(prompt[-1:] + completion[:-1], completion, len(prompt) - 1)
            sees[branch, stem] = True
    return ids, positions, targets, sees
