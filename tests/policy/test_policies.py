"""Policies by name, and LoRA on every linear module of each family."""

import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, Lfm2Config, LlamaConfig

from helpers.policy.loading import PolicyError, load_policy, policy_path
from helpers.policy.lora import LORA_TARGETS, lora_coverage, lora_targets
from helpers.policy.vision import small_policy_with_eyes


def shell(config):
    """A model without weights."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


LLAMA = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, vocab_size=64
)
LFM2 = Lfm2Config(
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=64,
    layer_types=["conv", "full_attention", "conv", "conv"],
)


@pytest.mark.parametrize("config", [LLAMA, LFM2], ids=lambda config: config.model_type)
def test_lora_reaches_every_kind_of_linear_module(config):
    rows = lora_coverage(shell(config), lora_targets(config.model_type))
    assert rows
    assert all(row["matched"] == row["count"] > 0 for row in rows)
    assert {row["module"] for row in rows} == set(lora_targets(config.model_type))


def test_the_llama_list_misses_most_of_lfm2():
    rows = {row["module"]: row for row in lora_coverage(shell(LFM2), LORA_TARGETS["llama"])}
    assert {name for name, row in rows.items() if row["matched"]} == {"q_proj", "k_proj", "v_proj"}
    # Three convolutions, one attention.
    assert rows["in_proj"]["count"] == 3
    assert rows["q_proj"]["count"] == 1
    for name in ("out_proj", "w1", "w2", "w3"):
        assert rows[name]["count"] == 4


def test_peft_agrees_with_the_coverage(policy):
    """What `lora_coverage` counts is what PEFT wraps."""
    from peft import LoraConfig, get_peft_model

    for config in (LLAMA, LFM2):
        model = shell(config)
        targets = lora_targets(config.model_type)
        expected = sum(row["matched"] for row in lora_coverage(model, targets))
        wrapped = get_peft_model(model, LoraConfig(r=2, target_modules=list(targets)))
        names = [name for name, _ in wrapped.named_modules()]
        assert sum(name.endswith(".lora_A.default") for name in names) == expected
    rows = lora_coverage(policy.model, lora_targets(policy.family))
    assert sum(row["count"] for row in rows) == 30 * 7


def test_the_default_policy_ends_a_turn_with_the_token_that_its_template_writes(policy):
    assert policy.tokenizer.decode([policy.tokenizer.eos_token_id]) == "<|im_end|>"
    text = policy.tokenizer.apply_chat_template(
        [{"role": "assistant", "content": "click('13')"}], tokenize=False
    )
    assert text.rstrip().endswith(policy.tokenizer.eos_token)
    assert policy.model.dtype == torch.float32
    assert policy.family == "llama"


@pytest.mark.parametrize("name", ["smollm9", "/nowhere/weights", "a/b/c"])
def test_an_unknown_policy_is_named_with_those_that_exist(name):
    with pytest.raises(PolicyError, match="There is no policy .*smollm2-135m"):
        load_policy(name)


def test_a_folder_and_a_hub_id_are_policies(tmp_path):
    assert policy_path(str(tmp_path)) == str(tmp_path.resolve())
    assert policy_path("owner/name") == "owner/name"


def logits_of(model):
    """What a model says to ten tokens."""
    with torch.inference_mode():
        return model.eval()(torch.arange(10)[None]).logits


def train_at_random(wrapped, scale):
    """Give the adapters of a PEFT model weights, which makes it another policy."""
    for name, weight in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=scale)


def test_a_policy_trained_with_lora_is_whole_weights_that_answer_alike(
    tmp_path, monkeypatch, policy
):
    """As `save_result` leaves it: an adapter and a tokenizer.

    Other weights in the same folder are another policy.
    """
    from peft import LoraConfig, get_peft_model

    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    base, folder = tmp_path / "base", tmp_path / "policy"
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(LLAMA).save_pretrained(base)
    untrained = logits_of(AutoModelForCausalLM.from_pretrained(base))
    lora = LoraConfig(r=2, target_modules=list(LORA_TARGETS["llama"]), task_type="CAUSAL_LM")
    paths = set()
    for scale in (0.5, 1.0):
        wrapped = get_peft_model(AutoModelForCausalLM.from_pretrained(base), lora)
        train_at_random(wrapped, scale)
        wrapped.save_pretrained(folder)
        policy.tokenizer.save_pretrained(folder)
        loaded = load_policy(str(folder))
        trained = logits_of(wrapped)
        assert torch.allclose(trained, logits_of(loaded.model), atol=1e-5)
        assert not torch.allclose(trained, untrained, atol=1e-2)
        assert not any("lora" in name for name, _ in loaded.model.named_modules())
        paths.add(loaded.path)
    assert len(paths) == 2
    shutil.rmtree(base)
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "elsewhere"))
    with pytest.raises(PolicyError, match="does not go with the weights"):
        load_policy(str(folder))


@pytest.mark.slow
def test_an_adapter_of_a_policy_with_eyes_becomes_whole_weights_too(tmp_path, monkeypatch):
    from peft import LoraConfig, get_peft_model

    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "cache"))
    model, processor = small_policy_with_eyes()
    model.save_pretrained(tmp_path / "base")
    model = AutoModelForImageTextToText.from_pretrained(tmp_path / "base")
    untrained = logits_of(model)
    wrapped = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "down_proj"]))
    train_at_random(wrapped, 1.0)
    wrapped.save_pretrained(tmp_path / "policy")
    processor.tokenizer.save_pretrained(tmp_path / "policy")
    loaded = AutoModelForImageTextToText.from_pretrained(policy_path(str(tmp_path / "policy")))
    trained = logits_of(wrapped)
    assert torch.allclose(trained, logits_of(loaded), atol=1e-5)
    assert not torch.allclose(trained, untrained, atol=1e-2)


def test_an_unknown_family_is_named():
    with pytest.raises(PolicyError, match="'mamba'.*LORA_TARGETS"):
        lora_targets("mamba")
