"""Adapters that are handed on: what a folder holds, and what is trained or merged from it."""

import json

import pytest
import torch
from peft import get_peft_model
from safetensors.torch import load_file
from tiny_models import tiny_llama

from helpers.policy.loading import load_policy
from helpers.policy.lora import load_adapter, lora_of_rank, merged, name_base, small_adapter

TOKENS = torch.arange(40)[None]


def logits_of(model):
    """What a model says to forty tokens."""
    with torch.inference_mode():
        return model.eval()(TOKENS).logits


def with_random_adapters(model, rank=2):
    """A model with adapters that change its answers."""
    torch.manual_seed(0)
    wrapped = get_peft_model(model, lora_of_rank(rank, "llama"))
    for name, weight in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    return wrapped


@pytest.fixture
def folder(policy, tmp_path):
    """An adapter of the policy that comes in a package, as a run leaves it."""
    wrapped = with_random_adapters(load_policy().model)
    wrapped.save_pretrained(tmp_path / "adapter")
    policy.tokenizer.save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter", logits_of(wrapped)


def test_a_small_adapter_has_half_the_size_and_answers_alike_on_any_machine(folder, policy):
    path, expected = folder
    weights = path / "adapter_model.safetensors"
    size = weights.stat().st_size
    small_adapter(path, "smollm2-135m")
    assert weights.stat().st_size < 0.55 * size
    named = json.loads((path / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert named == "smollm2-135m"
    untrained = logits_of(policy.model)
    for loaded in (load_policy(str(path)).model, load_adapter(path).model):
        answers = logits_of(loaded)
        # bf16 has 8 bits: what the adapter adds is off by a few hundredths at most.
        assert (answers - expected).norm() < 0.05 * (untrained - expected).norm()


def test_a_policy_without_a_short_name_keeps_its_path(folder):
    path, _ = folder
    named = (path / "adapter_config.json").read_text()
    name_base(path, "runs/my-policy")
    assert (path / "adapter_config.json").read_text() == named
    name_base(path.parent, "smollm2-135m")  # a folder without an adapter
    assert not (path.parent / "adapter_config.json").exists()


def test_what_is_loaded_to_train_on_trains_the_adapter_alone(folder):
    path, _ = folder
    adapted = load_adapter(path)
    trained = {name for name, weight in adapted.model.named_parameters() if weight.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)
    assert len(trained) == len(load_file(path / "adapter_model.safetensors"))
    assert {weight.dtype for weight in adapted.model.parameters()} == {torch.float32}
    assert adapted.model.peft_config["default"].r == 2


def test_adapters_are_part_of_the_weights_while_a_block_runs(policy):
    model = with_random_adapters(tiny_llama(policy.tokenizer))
    layer = model.base_model.model.model.layers[0].self_attn.q_proj
    before, answers = layer.weight.clone(), logits_of(model)
    with pytest.raises(KeyError), merged(model):
        assert layer.merged
        assert not torch.allclose(layer.weight, before)
        assert torch.allclose(logits_of(model), answers, atol=1e-4)
        raise KeyError
    assert not layer.merged
    assert torch.allclose(layer.weight, before, atol=1e-6)


def test_a_model_without_adapters_stays_as_it_is(policy):
    model = tiny_llama(policy.tokenizer)
    answers = logits_of(model)
    with merged(model):
        assert torch.equal(logits_of(model), answers)
