"""Adapters that are handed on: what a folder holds, and what is trained or merged from it."""

import json

import pytest
import torch
from peft import get_peft_model
from safetensors.torch import load_file
from tiny_models import tiny_llama

from benchmarks.published_configs import ARCHITECTURES
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play_episodes
from helpers.policy.generators import TransformersGenerator
from helpers.policy.loading import load_policy
from helpers.policy.lora import load_adapter, lora_of_rank, merged, name_base, small_adapter

TOKENS = torch.arange(40)[None]
Q_PROJ = "base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight"
LORA_B = "lora_B.default"


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
    for file in path.glob("*token*"):
        file.unlink()
    alone = load_policy(str(path))
    assert alone.tokenizer.encode("Click on OK") == policy.tokenizer.encode("Click on OK")
    for loaded in (alone.model, load_adapter(path).model):
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


def test_adapters_are_part_of_the_weights_while_a_block_runs_and_no_bit_is_lost(policy):
    model = with_random_adapters(tiny_llama(policy.tokenizer))
    answers, before = logits_of(model), {k: v.clone() for k, v in model.state_dict().items()}
    trained = [name for name, weights in model.named_parameters() if weights.requires_grad]
    below = model.base_model.model.model.layers[0].self_attn.q_proj
    with pytest.raises(KeyError), merged(model):
        assert not torch.equal(below.base_layer.weight, before[Q_PROJ])
        assert torch.allclose(logits_of(model), answers, atol=1e-4)
        torch.nn.init.zeros_(below.lora_B["default"].weight)  # which is not asked any more
        assert torch.allclose(logits_of(model), answers, atol=1e-4)
        below.lora_B["default"].weight.data.copy_(before[Q_PROJ.replace("base_layer", LORA_B)])
        raise KeyError
    after = model.state_dict()
    assert all(torch.equal(after[name], weights) for name, weights in before.items())
    assert trained == [name for name, weights in model.named_parameters() if weights.requires_grad]
    assert torch.equal(logits_of(model), answers)


def test_a_rollout_is_sampled_from_merged_weights(policy, browsers):
    """And what is sampled has the logprobs of the policy with its adapters, which are trained."""
    model = with_random_adapters(load_policy().model)
    generator = TransformersGenerator(model, policy.tokenizer)
    below = model.base_model.model.model.layers[0].self_attn.q_proj.base_layer
    weight, seen = below.weight.detach().clone(), []
    hook = below.register_forward_pre_hook(lambda *_: seen.append(below.weight.detach().clone()))
    pages = [EpisodeSpec("click-test", seed) for seed in (1, 2)]
    episodes = play_episodes(pages, browsers, generator, policy.tokenizer, RolloutConfig())
    hook.remove()
    assert seen
    assert not any(torch.equal(each, weight) for each in seen)
    assert torch.equal(below.weight, weight)
    for episode in episodes:
        ids, begin = episode.ledger.ids, episode.ledger.prompt_length
        with torch.inference_mode():
            scores = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        for i in range(begin, begin + episode.ledger.completion_length):
            if episode.ledger.owner[i] == POLICY:
                assert scores[i - 1, ids[i]].item() == pytest.approx(
                    episode.ledger.logprobs[i], abs=1e-3
                )


def test_a_model_without_adapters_stays_as_it_is(policy):
    model = tiny_llama(policy.tokenizer)
    answers = logits_of(model)
    with merged(model):
        assert torch.equal(logits_of(model), answers)


@pytest.mark.parametrize("name", ["LFM2-VL-450M", "Qwen3-VL-2B"])
def test_eyes_get_no_adapter(name):
    with torch.device("meta"):
        model = ARCHITECTURES[name].build()
    wrapped = get_peft_model(model, lora_of_rank(2, model.config.model_type))
    adapted = [name for name, _ in wrapped.named_parameters() if "lora_" in name]
    assert adapted
    assert all(".language_model.layers." in name for name in adapted)
