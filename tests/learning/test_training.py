"""The trainer's short cut: a prompt that a group shares is computed once, and nothing else changes."""

from dataclasses import replace

import pytest
import torch
from trl import GRPOTrainer
from trl.trainer.utils import pad

from helpers.episodes.tasks import train_seeds
from helpers.learning.configuration import grpo_config, training_specs
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.settings.profiles import PROFILES


def batch(tokenizer):
    """Two groups of four with prompts and completions of different lengths, one of each group twice, padded as the trainer
    pads them."""
    torch.manual_seed(1)
    prompts = [torch.randint(10, 2000, (n,)) for n in (7, 12)]
    rows = [
        (prompts[g], torch.randint(10, 2000, (n,)))
        for g, lengths in enumerate([(5, 1, 9), (3, 9, 4)])
        for n in lengths
    ]
    rows = [*rows[:3], rows[0], *rows[3:], rows[4]]
    sides = []
    for part, side in ((0, "left"), (1, "right")):
        ids = [row[part] for row in rows]
        sides.append(
            (
                pad(ids, padding_value=tokenizer.pad_token_id, padding_side=side),
                pad([torch.ones_like(i) for i in ids], padding_value=0, padding_side=side),
            )
        )
    (prompt, prompt_mask), (completion, mask) = sides
    return torch.cat([prompt, completion], 1), torch.cat([prompt_mask, mask], 1), mask


def score(trainer, share, tokenizer):
    """Logprobs and entropies of the batch where it is not padding, and the gradients of a weighted sum of the logprobs."""
    ids, attention, mask = batch(tokenizer)
    trainer.share_prompts = share
    trainer.model.zero_grad()
    logps, entropies, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, attention, mask.shape[1], compute_entropy=True
    )
    weights = torch.linspace(-1, 1, mask.numel()).view_as(mask) * mask
    (logps * weights).sum().backward()
    gradients = torch.cat([p.grad.flatten() for p in trainer.model.parameters()])
    return logps.detach()[mask.bool()], entropies.detach()[mask.bool()], gradients


def test_shared_prompts_change_no_logprob_no_entropy_and_no_gradient(tiny_trainer, policy):
    trainer = tiny_trainer()
    plain, shared = score(trainer, False, policy.tokenizer), score(trainer, True, policy.tokenizer)
    assert plain[0].std() > 0.5 and plain[2].abs().max() > 1e-2  # the comparison says something
    for a, b in zip(plain, shared, strict=True):
        assert (a - b).abs().max() <= 1e-4 * max(1.0, a.abs().max().item())


@pytest.mark.parametrize("name", PROFILES)
def test_training_samples_from_the_plain_softmax(name, tmp_path):
    """No profile truncates or sharpens what it samples from: the logprobs would no longer be the policy's."""
    config = grpo_config(
        replace(PROFILES[name], device="cpu", dtype="float32", generator="transformers"), tmp_path
    )
    assert (config.temperature, config.top_k, config.top_p, config.beta) == (1.0, 0, 1.0, 0.0)


def test_a_family_with_convolutions_keeps_the_trainers_own_path(tiny_trainer, policy, monkeypatch):
    trainer = tiny_trainer()
    trainer.model.config.model_type = "lfm2"
    monkeypatch.setattr(
        trainer,
        "_shared_prompt_logps",
        lambda *a: pytest.fail("prompts of LFM2 must not be shared"),
    )
    ids, attention, mask = batch(policy.tokenizer)
    logps, _, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, attention, mask.shape[1]
    )
    assert logps.shape == mask.shape


def test_training_pages_are_fixed_by_the_seed_and_repeat_only_when_all_were_seen():
    profile = replace(PROFILES["cpu"], task="click-button,click-test", seed=3)
    specs = training_specs(profile, 40)
    assert specs == training_specs(profile, 40) != training_specs(replace(profile, seed=4), 40)
    assert [s.task for s in specs[:4]] == ["click-button", "click-test"] * 2
    chosen = train_seeds("click-button")
    twice = [s.seed for s in training_specs(replace(profile, task="click-button"), 2 * len(chosen))]
    assert sorted(twice[: len(chosen)]) == sorted(twice[len(chosen) :]) == sorted(chosen)


@pytest.mark.parametrize(
    "advantages",
    [
        [1.0, -0.5, -1.0, 0.5, 0.0, 0.0, 0.0, 0.0],
        [0.5, -1.0, 0.5, 0.0, 1.0, -1.0, 0.0, 0.0],
        [0.0] * 8,
    ],
)
def test_what_has_no_advantage_is_left_out_and_changes_neither_loss_nor_gradient(
    tiny_trainer, policy, monkeypatch, advantages
):
    trainer = tiny_trainer(loss_type="dapo")
    trainer.current_gradient_accumulation_steps = 1  # train() sets it
    ids, attention, mask = batch(policy.tokenizer)
    keep, counted = mask.shape[1], []
    score_rows = trainer._shared_prompt_logps
    monkeypatch.setattr(
        trainer,
        "_shared_prompt_logps",
        lambda model, rows, *a: counted.append(len(rows)) or score_rows(model, rows, *a),
    )

    def gradient(compute_loss):
        inputs = {
            "prompt_ids": ids[:, :-keep],
            "prompt_mask": attention[:, :-keep],
            "completion_ids": ids[:, -keep:],
            "completion_mask": mask,
            "advantages": torch.tensor(advantages),
            "num_items_in_batch": mask.sum(),
        }
        trainer.model.zero_grad()
        loss = compute_loss(trainer, trainer.model, inputs)
        loss.backward()
        return torch.cat(
            [loss.detach()[None], *(p.grad.flatten() for p in trainer.model.parameters())]
        )

    whole, ours = gradient(GRPOTrainer._compute_loss), gradient(BrowserGRPOTrainer._compute_loss)
    assert counted == [8, max(1, sum(a != 0 for a in advantages))]
    assert (whole.abs().max() > 1e-3) == any(advantages)
    assert (whole - ours).abs().max() <= 1e-5
