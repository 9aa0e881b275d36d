"""Logprobs of completions without computing anything twice: one forward pass over a tree.

All prompts of a task begin with the same words, the episodes of a group with the same page, and
those of them that answered alike went on to the same next page. What rows of a batch begin with in
common is one branch of a tree (a prefix tree, or trie), and goes through the model once: a token
sees its own row and nothing else, whatever stands beside it. Three steps: `grow_trees` finds what
is shared, `run_tree` lays a tree out as one sequence, and `tree_scores` gives every row of the
batch its numbers back.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from accelerate import Accelerator
from trl.trainer.utils import selective_log_softmax_and_entropy

from helpers.policy.lengths import length_in_common

# Families (``config.model_type``) whose layers are attention and nothing else. A layer that keeps a
# state, such as LFM2's short convolution, would carry it from one branch into the next.
ATTENTION_ONLY = {"llama", "qwen2", "qwen3"}

# Tokens after which a tree takes no further prompt. Attention grows with their square, also where
# one branch does not see the other: in a SmolLM2-135M of 3,100 tokens it is as many operations as
# all its matrices. On a GPU many small passes are what takes time.
ENOUGH_ON_A_CPU = 768
ENOUGH_ON_A_GPU = 4_096

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One row of a batch without its padding; ``number``: which one."""

    number: int
    prompt: Tokens
    completion: Tokens
    scored: tuple[bool, ...]
    """Which tokens of the completion."""

    @cached_property
    def read(self) -> Tokens:
        """What the model reads: nothing follows the last token, so it need not be read."""
        return self.prompt + self.completion[:-1]


@dataclass
class PrefixTree:
    """Rows as one sequence of L tokens, in which nothing that they share stands twice."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """The position of each token in the rows that it belongs to."""
    branches: list[tuple[slice, int]] = field(default_factory=list)
    """Where each branch stands, and the place of the token that it grows from (-1: a root)."""
    scored: dict[tuple[int, int], int] = field(default_factory=dict)
    """{(place, token that follows there): its number among what is scored}."""
    wanted: list[tuple[int, int, int]] = field(default_factory=list)
    """(row, place in its completion, number among what is scored) of each score of the batch."""
    last: Row = field(default_factory=lambda: Row(-1, (), (), ()))
    """The row that was added last."""
    path: list[int] = field(default_factory=list)
    """The places of its tokens."""

    def add(self, row: Row) -> None:
        """Add a row. Rows come sorted by what is read: what a row shares with an earlier one it
        shares with the last one."""
        shared = length_in_common(self.last.read, row.read)
        start = len(self.ids)
        self.ids.extend(row.read[shared:])
        branch = slice(start, len(self.ids))
        if branch.stop > start:
            self.branches.append((branch, self.path[shared - 1] if shared else -1))
        self.positions.extend(range(shared, len(row.read)))
        self.path = [*self.path[:shared], *range(start, branch.stop)]
        self.last = row
        for column, token in enumerate(row.completion):
            if row.scored[column]:
                before = self.path[len(row.prompt) - 1 + column]
                score = self.scored.setdefault((before, token), len(self.scored))
                self.wanted.append((row.number, column, score))

    def sees(self) -> torch.Tensor:
        """Boolean (L, L): what each token attends to."""
        mask = torch.zeros(len(self.ids), len(self.ids), dtype=torch.bool)
        for branch, parent in self.branches:
            if parent >= 0:
                mask[branch] = mask[parent]
            length = branch.stop - branch.start
            mask[branch, branch] = torch.ones(length, length, dtype=torch.bool).tril()
        return mask


def tree_scores(
    model: torch.nn.Module,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    keep: int,
    temperature: float,
    accelerator: Accelerator,
    scored: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logprobs and entropies, each (batch, ``keep``), of the last ``keep`` tokens of every row.

    ``input_ids`` and ``attention_mask``: (batch, length), prompts padded on the left, completions
    on the right. ``accelerator``: knows the precision of the forward pass. ``scored``: boolean
    (batch, ``keep``), by default all. What is padding or not scored comes out as 0. The values and
    their gradients are those of a forward pass over the padded batch.
    """
    device = input_ids.device
    enough = ENOUGH_ON_A_CPU if device.type == "cpu" else ENOUGH_ON_A_GPU
    logprobs = torch.zeros(len(input_ids), keep, device=device)
    entropies = torch.zeros(len(input_ids), keep, device=device)
    for tree in grow_trees(rows_of(input_ids, attention_mask, keep, scored), enough):
        if not tree.scored:
            continue
        with accelerator.autocast():
            logits, following = run_tree(model, tree, device)
        tree_logprobs, tree_entropies = selective_log_softmax_and_entropy(
            logits.float(), following, temperature=temperature
        )
        rows, columns, scores = torch.tensor(tree.wanted, device=device).T
        logprobs = logprobs.index_put((rows, columns), tree_logprobs[scores])
        entropies = entropies.index_put((rows, columns), tree_entropies[scores])
    return logprobs, entropies


def rows_of(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    keep: int,
    scored: torch.Tensor | None = None,
) -> list[Row]:
    """The rows of a padded batch; the arguments are those of `tree_scores`."""
    if scored is None:
        scored = torch.ones_like(input_ids[:, -keep:], dtype=torch.bool)
    rows = []
    for number, (ids, mask) in enumerate(zip(input_ids, attention_mask.bool(), strict=True)):
        in_prompt, in_completion = mask[:-keep], mask[-keep:]
        rows.append(
            Row(
                number,
                prompt=tuple(ids[:-keep][in_prompt].tolist()),
                completion=tuple(ids[-keep:][in_completion].tolist()),
                scored=tuple(scored[number][in_completion].tolist()),
            )
        )
    return rows


def grow_trees(rows: Iterable[Row], enough: int) -> list[PrefixTree]:
    """Deal the rows out to trees: one that has ``enough`` tokens takes no further prompt."""
    trees = [PrefixTree()]
    for row in sorted(rows, key=lambda row: row.read):
        if len(trees[-1].ids) >= enough and trees[-1].last.prompt != row.prompt:
            trees.append(PrefixTree())
        trees[-1].add(row)
    return trees


def run_tree(
    model: torch.nn.Module, tree: PrefixTree, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """One forward pass: for the n scores of a tree the logits (n, vocabulary), and the tokens (n)
    that follow there."""
    places, following = torch.tensor(list(tree.scored), device=device).T
    output = model(
        input_ids=torch.tensor([tree.ids], device=device),
        attention_mask=tree.sees()[None, None].to(device),
        position_ids=torch.tensor([tree.positions], device=device),
        use_cache=False,
        logits_to_keep=places,
    )
    return output.logits[0], following
