"""A step arrives: the weights move as fp32 says, whatever precision a profile has."""

from dataclasses import replace

import pytest
import torch
from one_update import embedded, on_a_cpu, tiny, update

import helpers.learning.run
from helpers.learning.precision import head_in_fp32
from helpers.settings.machine import has_fast_bf16
from helpers.settings.profiles import PROFILES

CLOSE = 0.99  # cosine of the step and fp32's
MOVED = 0.95  # share of the weights that fp32 moves

all_weights_and_lora = pytest.mark.parametrize("lora", [False, True], ids=["all weights", "LoRA"])


@pytest.fixture(scope="module")
def fp32_step(policy, tmp_path_factory):
    """A function that makes an update of the tiny model in fp32, each only once."""
    steps = {}

    def step(profile, lora):
        rate = profile.lora_learning_rate if lora else profile.learning_rate
        key = (lora, rate, profile.lora_rank)
        if key not in steps:
            exact = replace(profile, dtype="float32")
            model = tiny(policy.tokenizer, "float32")
            folder = tmp_path_factory.mktemp("fp32")
            steps[key] = update(exact, model, policy.tokenizer, folder, lora).step
        return steps[key]

    return step


def cosine(step, reference):
    """1 where two steps have the same direction."""
    return torch.nn.functional.cosine_similarity(step, reference, dim=0).item()


def share_moved(step, reference):
    """Of the weights that the reference moves, the share that the step moves as well."""
    return (step[reference != 0] != 0).float().mean().item()


@all_weights_and_lora
@pytest.mark.parametrize("name", PROFILES)
def test_an_update_of_every_profile_moves_the_weights_as_fp32_does(
    name, lora, policy, fp32_step, tmp_path
):
    """The model is loaded as notebook 5 loads it, in the profile's ``dtype``."""
    profile = on_a_cpu(PROFILES[name])
    reference = fp32_step(profile, lora)
    assert reference.norm() > 0
    model = tiny(policy.tokenizer, profile.dtype)
    move = update(profile, model, policy.tokenizer, tmp_path, lora)
    assert cosine(move.step, reference) > CLOSE
    assert share_moved(move.step, reference) >= MOVED
    assert move.precisions == {torch.float32}


@all_weights_and_lora
def test_whoever_computes_in_bf16_moves_fp32_weights(lora, policy, fp32_step, tmp_path):
    """A policy that was loaded in bf16, and ``COURSE_DTYPE=bfloat16``."""
    profile = on_a_cpu(PROFILES["h100"], dtype="bfloat16")
    reference = fp32_step(profile, lora)
    model = tiny(policy.tokenizer, "bfloat16")
    move = update(profile, model, policy.tokenizer, tmp_path, lora)
    assert move.precisions == {torch.float32}
    assert share_moved(move.step, reference) >= MOVED
    assert not torch.equal(move.step, reference)  # it did compute in bf16
    if not lora:
        assert cosine(move.step, reference) > CLOSE


@pytest.mark.slow
def test_the_embedded_policy_moves_only_where_its_weights_are_fp32(policy, tmp_path, monkeypatch):
    """In an update that computes in bf16. Where that takes minutes, fp32 weights are moved in fp32;
    what bf16 makes of their step is then seen on the small model alone."""
    profile = on_a_cpu(PROFILES["h100"], dtype="bfloat16")
    profile = replace(profile, groups=1, group_size=2)
    quick = profile if has_fast_bf16("cpu") else replace(profile, dtype="float32")
    kept_in_fp32 = update(quick, embedded("float32"), policy.tokenizer, tmp_path / "fp32")
    monkeypatch.setattr(helpers.learning.run, "prepare_weights", lambda model, dtype: None)
    kept_in_bf16 = update(profile, embedded("bfloat16"), policy.tokenizer, tmp_path / "bf16")
    assert kept_in_fp32.row["update/moved"] > MOVED
    assert kept_in_bf16.row["update/moved"] < 0.2
    assert kept_in_bf16.precisions == {torch.bfloat16}


def test_a_head_in_fp32_takes_rounding_out_of_the_logits(policy):
    """Autocast would round what the head computes, and the logits with it."""
    model = tiny(policy.tokenizer, "float32")
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        exact = model(ids).logits
        with torch.autocast("cpu", torch.bfloat16):
            rounded = model(ids).logits
            head_in_fp32(model)
            head_in_fp32(model)  # twice is once
            kept = model(ids).logits
    assert rounded.dtype == torch.bfloat16
    assert kept.dtype == torch.float32
    assert (kept - exact).abs().mean() < (rounded.float() - exact).abs().mean()
