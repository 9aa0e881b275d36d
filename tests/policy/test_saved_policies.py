"""A policy that was saved in a folder and is not whole: one sentence says what is wrong with it."""

import json
import math

import pytest
from safetensors.torch import load_file, save_file
from tiny_models import tiny_llama

from helpers import command_line
from helpers.policy.loading import PolicyError, load_policy
from scripts import evaluate

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(policy, tmp_path):
    """A whole policy: a tiny Llama with the tokenizer of the course's own."""
    tiny_llama(policy.tokenizer).save_pretrained(tmp_path / "policy")
    policy.tokenizer.save_pretrained(tmp_path / "policy")
    return tmp_path / "policy"


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut_in_half(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def remove_tokenizer(folder):
    for path in folder.glob("*token*"):
        path.unlink()


def lose_a_shard(folder):
    (folder / WEIGHTS).rename(folder / "model-00001-of-00002.safetensors")
    files = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps({"weight_map": files}))


def change_weights(folder, change):
    weights = load_file(folder / WEIGHTS)
    save_file(change(weights), folder / WEIGHTS, metadata={"format": "pt"})


def with_a_weight(value):
    """A function that puts ``value`` among the weights of a model."""

    def change(weights):
        weights["model.norm.weight"][3] = value
        return weights

    return change


def with_other_names(weights):
    return {f"encoder.{name}": tensor for name, tensor in weights.items()}


DAMAGES = {
    "no configuration": (
        lambda folder: (folder / "config.json").unlink(),
        "config.json is missing",
    ),
    "a configuration cut short": (
        lambda folder: cut_in_half(folder / "config.json"),
        "config.json is missing, or no configuration",
    ),
    "no tokenizer": (remove_tokenizer, "there is no tokenizer"),
    "a tokenizer cut short": (
        lambda folder: cut_in_half(folder / "tokenizer.json"),
        "tokenizer.json is cut short",
    ),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "there are no weights"),
    "weights cut short": (
        lambda folder: cut_in_half(folder / WEIGHTS),
        "model.safetensors is cut short or damaged",
    ),
    "empty weights": (
        lambda folder: (folder / WEIGHTS).write_bytes(b""),
        "model.safetensors is cut short or damaged",
    ),
    "weights that are none": (
        lambda folder: (folder / WEIGHTS).write_bytes(b"<html>not found</html>" * 99),
        "model.safetensors is cut short or damaged",
    ),
    "a part missing": (lose_a_shard, "model-00002-of-00002.safetensors is missing"),
    "another architecture": (
        lambda folder: change_config(folder, model_type="vit"),
        "is no language model that transformers can load",
    ),
    "an unknown architecture": (
        lambda folder: change_config(folder, model_type="nonsense"),
        "is no language model that transformers can load",
    ),
    "another width": (
        lambda folder: change_config(folder, intermediate_size=128),
        "are not those of the model in its config.json",
    ),
    "more layers": (
        lambda folder: change_config(folder, num_hidden_layers=3),
        "are not those of the model in its config.json",
    ),
    "weights of another model": (
        lambda folder: change_weights(folder, with_other_names),
        "are not those of the model in its config.json",
    ),
    **{
        f"a weight that is {value}": (
            lambda folder, value=value: change_weights(folder, with_a_weight(value)),
            "hold values that are no numbers (model.norm.weight)",
        )
        for value in (math.nan, math.inf, -math.inf)
    },
}


def test_a_whole_one_is_loaded(folder):
    assert load_policy(str(folder)).family == "llama"


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_whole_is_refused_in_one_sentence(folder, damage, words):
    damage(folder)
    with pytest.raises(PolicyError) as error:
        load_policy(str(folder))
    sentence = str(error.value)
    assert words in sentence
    assert str(folder) in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")


def test_an_adapter_that_is_cut_short_is_refused_in_one_sentence(folder):
    (folder / WEIGHTS).rename(folder / "adapter_model.safetensors")
    cut_in_half(folder / "adapter_model.safetensors")
    with pytest.raises(PolicyError, match="adapter_model.safetensors is cut short or damaged"):
        load_policy(str(folder))


def test_a_command_says_it_too(folder, capsys):
    cut_in_half(folder / WEIGHTS)
    assert command_line.run(evaluate.main, ["--policy", str(folder), "--n", "1"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "is cut short or damaged" in said
