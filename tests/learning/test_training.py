"""The trainer's short cuts change nothing, and the configuration says what the course trains."""

from dataclasses import replace

import pytest
import torch
from trl import GRPOTrainer
from trl.trainer.utils import pad

from helpers.episodes.tasks import train_seeds
from helpers.learning import prefix_tree
from helpers.learning.configuration import grpo_config, training_specs
from helpers.learning.prefix_tree import grow_trees, rows_of
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.settings.profiles import PROFILES


def padded(ids, value, side):
    """Token ids of different lengths as the trainer pads them, and their mask."""
    masks = [torch.ones_like(one) for one in ids]
    return (
        pad(ids, padding_value=value, padding_side=side),
        pad(masks, padding_value=0, padding_side=side),
    )


def batch(tokenizer):
    """Two groups with prompts and completions of different lengths: ids, attention mask and
    completion mask. One completion of each group is there twice; of another, one row has only the
    beginning, and one goes on from there in another way."""
    torch.manual_seed(1)
    first, second = [torch.randint(10, 2000, (n,)) for n in (7, 12)]
    rows = [(first, torch.randint(10, 2000, (n,))) for n in (5, 1, 9)]
    rows += [(second, torch.randint(10, 2000, (n,))) for n in (3, 9, 4)]
    begun = rows[4][1][:6]
    rows = [*rows[:3], rows[0], *rows[3:], rows[4]]
    rows += [(second, begun), (second, torch.cat([begun, torch.randint(10, 2000, (5,))]))]
    prompts, completions = zip(*rows, strict=True)
    prompt, prompt_mask = padded(list(prompts), tokenizer.pad_token_id, "left")
    completion, mask = padded(list(completions), tokenizer.pad_token_id, "right")
    return torch.cat([prompt, completion], 1), torch.cat([prompt_mask, mask], 1), mask


def gradients_of(model):
    """All gradients as one vector."""
    return torch.cat([weights.grad.flatten() for weights in model.parameters()])


def score(trainer, share, tokenizer):
    """Logprobs and entropies of the batch where it is not padding, and the gradients of a weighted
    sum of the logprobs."""
    ids, attention, mask = batch(tokenizer)
    trainer.share_prefixes = share
    trainer.model.zero_grad()
    logps, entropies, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, attention, mask.shape[1], compute_entropy=True
    )
    weights = torch.linspace(-1, 1, mask.numel()).view_as(mask) * mask
    (logps * weights).sum().backward()
    kept = mask.bool()
    return logps.detach()[kept], entropies.detach()[kept], gradients_of(trainer.model)


@pytest.mark.parametrize("enough", [1, 10_000], ids=["a tree for each prompt", "one tree"])
def test_shared_prefixes_change_no_logprob_no_entropy_and_no_gradient(
    tiny_trainer, policy, monkeypatch, enough
):
    monkeypatch.setattr(prefix_tree, "ENOUGH_ON_A_CPU", enough)
    trainer = tiny_trainer()
    plain = score(trainer, False, policy.tokenizer)
    shared = score(trainer, True, policy.tokenizer)
    logprobs, _, gradients = plain
    assert logprobs.std() > 0.5  # the comparison says something
    assert gradients.abs().max() > 1e-2
    for a, b in zip(plain, shared, strict=True):
        assert (a - b).abs().max() <= 1e-4 * max(1.0, a.abs().max().item())


def test_what_rows_begin_with_in_common_goes_through_the_model_once(policy):
    ids, attention, mask = batch(policy.tokenizer)
    rows = rows_of(ids, attention, mask.shape[1])
    prefixes = {row.read[:n] for row in rows for n in range(1, len(row.read) + 1)}
    assert len(prefixes) < 0.7 * sum(len(row.read) for row in rows)
    [tree] = grow_trees(rows, enough=10_000)
    assert len(tree.ids) == len(prefixes)
    trees = grow_trees(rows, enough=1)
    assert sum(len(tree.ids) for tree in trees) == len(prefixes)  # the prompts share nothing
    assert len(trees) == 2


@pytest.mark.parametrize("name", PROFILES)
def test_training_samples_from_the_plain_softmax(name, tmp_path):
    """No profile truncates or sharpens what it samples from: the logprobs would no longer be the
    policy's."""
    profile = replace(PROFILES[name], device="cpu", dtype="float32", generator="transformers")
    config = grpo_config(profile, tmp_path)
    assert (config.temperature, config.top_k, config.top_p, config.beta) == (1.0, 0, 1.0, 0.0)


def test_a_family_with_convolutions_keeps_the_trainers_own_path(tiny_trainer, policy, monkeypatch):
    def refuse(*_):
        pytest.fail("prompts of LFM2 must not be shared")

    trainer = tiny_trainer()
    trainer.model.config.model_type = "lfm2"
    monkeypatch.setattr(trainer, "_tree_logps", refuse)
    ids, attention, mask = batch(policy.tokenizer)
    logps, _, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, attention, mask.shape[1]
    )
    assert logps.shape == mask.shape


def test_training_pages_are_fixed_by_the_seed_and_repeat_only_when_all_were_seen():
    profile = replace(PROFILES["cpu"], task="click-button,click-test", seed=3)
    specs = training_specs(profile, 40)
    assert specs == training_specs(profile, 40)
    assert specs != training_specs(replace(profile, seed=4), 40)
    assert [s.task for s in specs[:4]] == ["click-button", "click-test"] * 2
    chosen = train_seeds("click-button")
    alone = replace(profile, task="click-button")
    twice = [s.seed for s in training_specs(alone, 2 * len(chosen))]
    assert sorted(twice[: len(chosen)]) == sorted(chosen)
    assert sorted(twice[len(chosen) :]) == sorted(chosen)


def count_scored_rows(trainer, monkeypatch):
    """How many rows each forward pass scores, as a list that is filled by the trainer."""
    counted = []
    score_rows = trainer._tree_logps

    def count(model, rows, *arguments):
        counted.append(len(rows))
        return score_rows(model, rows, *arguments)

    monkeypatch.setattr(trainer, "_tree_logps", count)
    return counted


def columns_of(ids, attention, mask):
    """What TRL keeps of a batch of `batch`: prompts and completions, each with their mask."""
    keep = mask.shape[1]
    return {
        "prompt_ids": ids[:, :-keep],
        "prompt_mask": attention[:, :-keep],
        "completion_ids": ids[:, -keep:],
        "completion_mask": mask,
    }


def loss_and_gradient(trainer, compute_loss, rows):
    """The loss of the rows and its gradient, as one vector."""
    trainer.model.zero_grad()
    loss = compute_loss(trainer, trainer.model, rows)
    loss.backward()
    return torch.cat([loss.detach()[None], gradients_of(trainer.model)])


@pytest.mark.parametrize(
    "advantages",
    [
        [1.0, -0.5, -1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.5, -1.0, 0.5, 0.0, 1.0, -1.0, 0.0, 0.0, 0.5, -0.5],
        [0.0] * 10,
    ],
)
def test_what_has_no_advantage_is_left_out_and_changes_neither_loss_nor_gradient(
    tiny_trainer, policy, monkeypatch, advantages
):
    trainer = tiny_trainer(loss_type="dapo")
    trainer.current_gradient_accumulation_steps = 1  # train() sets it
    ids, attention, mask = batch(policy.tokenizer)
    counted = count_scored_rows(trainer, monkeypatch)

    rows = {
        **columns_of(ids, attention, mask),
        "advantages": torch.tensor(advantages),
        "num_items_in_batch": mask.sum(),
    }
    whole = loss_and_gradient(trainer, GRPOTrainer._compute_loss, rows)
    ours = loss_and_gradient(trainer, BrowserGRPOTrainer._compute_loss, rows)
    with_advantage = sum(advantage != 0 for advantage in advantages)
    assert counted == [10, max(1, with_advantage)]
    assert (whole.abs().max() > 1e-3) == (with_advantage > 0)
    assert (whole - ours).abs().max() <= 1e-5


def test_the_tokens_of_pages_are_not_scored_and_change_neither_loss_nor_gradient(
    tiny_trainer, policy, monkeypatch
):
    """Also where an older policy found them impossible, which the padded batch would pay for."""
    trainer = tiny_trainer(loss_type="dapo")
    trainer.current_gradient_accumulation_steps = 1
    ids, attention, mask = batch(policy.tokenizer)
    keep = mask.shape[1]
    by_policy = torch.arange(keep) % 3 == 0  # two tokens of a page after each of the policy's
    with torch.no_grad():
        old, _, _ = GRPOTrainer._get_per_token_logps_and_entropies(
            trainer, trainer.model, ids, attention, keep
        )
    scored = []
    run_tree = prefix_tree.run_tree

    def count(model, tree, device):
        scored.append(len(tree.scored))
        return run_tree(model, tree, device)

    monkeypatch.setattr(prefix_tree, "run_tree", count)

    rows = {
        **columns_of(ids, attention, mask),
        "tool_mask": by_policy.long().expand_as(mask),
        "advantages": torch.linspace(-1, 1, len(ids)),
        "num_items_in_batch": (mask * by_policy).sum(),
    }
    trainer.share_prefixes = False
    rows["old_per_token_logps"] = torch.where(by_policy, old - 0.1, old)
    whole = loss_and_gradient(trainer, GRPOTrainer._compute_loss, rows)
    trainer.share_prefixes = True
    rows["old_per_token_logps"] = torch.where(by_policy, old - 0.1, -200.0)
    ours = loss_and_gradient(trainer, BrowserGRPOTrainer._compute_loss, rows)
    assert whole.abs().max() > 1e-3
    assert (whole - ours).abs().max() <= 1e-5
    tokens = {
        (row.prompt + row.completion[: n + 1])
        for row in rows_of(ids, attention, keep)
        for n in range(0, len(row.completion), 3)
    }
    assert sum(scored) == len(tokens)
