"""One run on several processes: the same update as on one, whole groups in each, nothing left of their browsers."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from helpers.learning.recorder import read_metrics
from helpers.settings.paths import ROOT

ENVIRONMENT = {"COURSE_SCALE": "demo", "ACCELERATE_USE_CPU": "true"}


@pytest.fixture(scope="module")
def tiny_policy(policy, tmp_path_factory):
    """The folder of a two-layer Llama with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(policy.tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            initializer_range=0.3,
            tie_word_embeddings=True,
        )
    ).save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return folder


def run(command, folder, tiny_policy):
    done = subprocess.run(
        [*command, "-m", "tests.learning.scripted_run", str(folder), str(tiny_policy)],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env=os.environ | ENVIRONMENT,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(path.read_text()) for path in sorted(folder.glob("process-*.json"))]


def test_two_processes_make_the_update_of_one(tiny_policy, tmp_path):
    launch = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
    ]
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir(), two.mkdir()
    [alone], pair = run([sys.executable], one, tiny_policy), run(launch, two, tiny_policy)
    assert len(pair) == 2

    # Each process played one whole group of four in each of the two updates, and together they played what the one played.
    for process in pair:
        groups = [process["specs"][i : i + 4] for i in (0, 4)]
        assert all(len(set(map(tuple, group))) == 1 for group in groups)
    assert sorted(spec for process in pair for spec in process["specs"][:8]) == sorted(
        alone["specs"][:16]
    )

    here, there = read_metrics(two), read_metrics(one)
    assert [row["update"] for row in here] == [1, 2]
    for name in ("reward", "loss", "grad_norm"):
        assert [row[name] for row in here] == pytest.approx(
            [row[name] for row in there], abs=1e-5
        ), name
    assert any(row["grad_norm"] > 1e-3 for row in there)
    # The same step: where a gradient is nearly 0, Adam makes a step of its rounding error, so single weights may differ.
    before, *after = (
        load_file(folder / "model.safetensors")
        for folder in (tiny_policy, one / "policy", two / "policy")
    )
    steps = [
        torch.cat([(weights[name] - before[name]).flatten() for name in before])
        for weights in after
    ]
    assert steps[0].norm() > 0.01 and (steps[0] - steps[1]).norm() < 0.01 * steps[0].norm()

    assert not any(
        process["children"] for process in [alone, *pair]
    )  # servers, workers and browsers of all are gone
    assert json.loads((two / "result.json").read_text())["after"]["n"] == 1
