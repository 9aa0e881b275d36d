"""What a vLLM engine in fewer bits has of a policy that was trained a little."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from in_python import run_script

from helpers.learning.recorder import Recorder
from helpers.learning.run import start_trainer
from helpers.policy.vllm_weights import hand_over_in, stochastically_rounded
from helpers.settings.machine import vllm_problem
from helpers.settings.profiles import PROFILES

STEP = 3e-5  # Adam's first step at the learning rate of the profiles


def weights_of(kind):
    """A million weights around 0.02, as they are published: in bf16, in 4 bits, or in fp32."""
    drawn = 0.02 * torch.randn(1_000_000, generator=torch.Generator().manual_seed(1))
    if kind == "published in bf16":
        return drawn.bfloat16().float()
    if kind == "half-way between two numbers of bf16":
        last_bit_dropped = torch.full_like(drawn, 0x8000, dtype=torch.int32)
        return (drawn.bfloat16().float().view(torch.int32) | last_bit_dropped).view(torch.float32)
    return drawn


kinds = pytest.mark.parametrize(
    "kind", ["published in bf16", "half-way between two numbers of bf16", "fp32"]
)


@kinds
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_engine_goes_as_far_as_the_policy(kind, dtype):
    """Along the policy's step: 1 where the copy has moved as far, 0 where it has stayed."""
    before = weights_of(kind)
    step = STEP * torch.randn(before.shape, generator=torch.Generator().manual_seed(2)).sign()
    copied = [stochastically_rounded(weights, dtype) for weights in (before, before + step)]
    moved = copied[1].float() - copied[0].float()
    assert (moved @ step / (step @ step)).item() == pytest.approx(1, abs=0.02)


@kinds
def test_each_weight_becomes_one_of_its_two_neighbours(kind):
    weights = weights_of(kind)
    copied = stochastically_rounded(weights.reshape(1000, 1000), "bfloat16")
    assert copied.dtype == torch.bfloat16
    assert copied.shape == (1000, 1000)
    off = (copied.float().flatten() - weights).abs()
    apart = torch.exp2(weights.abs().log2().floor() - 7)  # bf16 has 7 bits behind the first
    assert (off < apart).all()
    if kind == "published in bf16":
        assert not off.any()


def test_the_same_weights_are_rounded_alike():
    weights = weights_of("fp32")
    kept = weights.clone()
    copied = stochastically_rounded(weights, "bfloat16")
    assert torch.equal(copied, stochastically_rounded(weights, "bfloat16"))
    assert torch.equal(weights, kept)
    changed = weights.clone()
    changed[::2] += STEP
    assert torch.equal(copied[1::2], stochastically_rounded(changed, "bfloat16")[1::2])


class Handing:
    """What of TRL's ``VLLMGeneration`` hands weights over."""

    def _iter_named_params(self):
        yield "weight", torch.tensor([0.1])


def test_an_engine_in_fp32_gets_the_weights_as_they_are():
    engine = Handing()
    hand_over_in("float32", engine)
    [(name, weights)] = engine._iter_named_params()
    assert name == "weight"
    assert torch.equal(weights, torch.tensor([0.1]))


def test_a_trainer_is_started_so_that_it_hands_its_weights_over_in_vllms_precision(tmp_path):
    profile = replace(PROFILES["h100"], device="cpu", generator="transformers")
    model = torch.nn.Linear(1, 1)
    model.config = SimpleNamespace(model_type="llama")
    trainer = start_trainer(
        lambda **_: SimpleNamespace(
            use_vllm=True, vllm_generation=Handing(), remove_callback=lambda _: None
        ),
        profile,
        Recorder(tmp_path, profile, progress=False),
        model=model,
        processing_class=None,
    )
    [(_, weights)] = trainer.vllm_generation._iter_named_params()
    assert profile.vllm_dtype == "bfloat16"
    assert weights.dtype == torch.bfloat16


SCRIPT = """
import json, sys
from pathlib import Path
sys.path.insert(0, "tests/learning")
from dataclasses import replace
from logprobs import recomputed_logprobs
from one_update import embedded, on_a_cpu, recorded_episodes, trainer_of
from helpers.learning.run import sync_policy
from helpers.policy.choosing import trainer_generator
from helpers.policy.loading import load_policy
from helpers.settings.profiles import PROFILES

folder, policy = Path(sys.argv[1]), load_policy()
first_of_a_run = {"learning_rate": 7.5e-6}  # a quarter, while the rate is warmed up
profile = replace(on_a_cpu(PROFILES["h100"], **first_of_a_run), generator="vllm")
model = embedded("float32", layers=8)  # all 30 take minutes on a processor without bf16
model.name_or_path = str(folder / "policy")  # from where the engine starts
model.save_pretrained(model.name_or_path)
policy.tokenizer.save_pretrained(model.name_or_path)
trainer = trainer_of(profile, model, policy.tokenizer, folder)
ledgers = [episode.ledger for episode in recorded_episodes()]
prompts = [ledger.ids[: ledger.prompt_length] for ledger in ledgers[:4]] * 6  # read once each
trainer.args.save_strategy = "no"

def mean_gap():
    sync_policy(trainer)
    gaps, model = [], trainer.model.eval()
    answers = trainer_generator(trainer, policy.tokenizer).generate(prompts, 6)
    for prompt, answer in zip(prompts, answers, strict=True):
        again = recomputed_logprobs(model, prompt + answer.ids)[len(prompt) :]
        gaps += [abs(one - other) for one, other in zip(again, answer.logprobs, strict=True)]
    return sum(gaps) / len(gaps)

found = {"before": mean_gap()}
trainer.train()
found["after"] = mean_gap()
(folder / "found.json").write_text(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed here")
def test_after_an_update_an_engine_in_bf16_is_as_near_to_the_policy_as_before(tmp_path):
    """A policy that was published in bf16, and its first small step, which rounding to the nearest
    would undo."""
    run_script(SCRIPT, tmp_path)
    gap = json.loads((tmp_path / "found.json").read_text())
    assert 0.001 < gap["before"] < 0.05  # it does sample in bf16
    assert gap["after"] < 2 * gap["before"]
