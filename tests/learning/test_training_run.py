"""Training runs as a reader starts them: real browser, real trainer, and the real policy where vLLM
samples; small in scale only."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from patience import LONG_PATIENCE
from safetensors.torch import load_file
from tiny_models import tiny_adapter, tiny_policy_in

from helpers import command_line
from helpers.episodes.episode import read_episodes
from helpers.episodes.how_played import Taught, keep_how, kept_how, rollout_config
from helpers.learning.recorder import read_metrics
from helpers.settings.machine import vllm_problem
from helpers.settings.paths import ROOT
from scripts.train import main

pytestmark = pytest.mark.slow

SMOKE = {
    "COURSE_SCALE": "smoke",
    "COURSE_EVAL_EPISODES": "4",
    "COURSE_LEARNING_RATE": "1e-4",
    "COURSE_WARMUP": "0",
}
# The entropy bonus moves the weights even where the only group of a tiny batch ends alike.
BONUS = {"COURSE_ENTROPY": "0.05"}
TRAIN = {"COURSE_GENERATOR": "transformers", **BONUS}
COMMAND = [sys.executable, "-m", "scripts.train"]


def run(folder, *arguments, **environment):
    """``python -m scripts.train`` in a process of its own: vLLM never gives its memory back within
    one."""
    return subprocess.run(
        [*COMMAND, "--output", str(folder), *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env={**os.environ, **SMOKE, **environment},
        timeout=LONG_PATIENCE,
    )


@pytest.mark.slow
@pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed on this machine")
def test_vllm_samples_from_the_weights_that_are_trained(tmp_path):
    done = run(tmp_path, COURSE_GENERATOR="vllm", COURSE_EVAL_EPISODES="1", **BONUS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "leaked" not in done.stderr  # Triton's last words
    rows = read_metrics(tmp_path)
    assert [row["update"] for row in rows] == [1, 2]
    # Update 2 was sampled after a weight sync: its logprobs agree with the trainer's only if the
    # sync moved the new weights.
    assert any(row["grad_norm"] > 0 for row in rows)
    assert all(row["logprob_gap/max"] < 1e-3 for row in rows)
    assert all(row["infrastructure"] == 0 for row in rows)


WITH_VLLM = """
import os, sys
from dataclasses import replace
from helpers.learning.run import build_trainer
from helpers.policy.loading import load_policy
from helpers.settings.profiles import PROFILES

before = dict(os.environ)
profile = replace(PROFILES["cpu"], groups=1, group_size=2, updates=1)
trainer = build_trainer(profile, load_policy(sys.argv[1]), [], sys.argv[2], progress=False)
assert trainer.use_vllm
print(sorted(name for name in os.environ if name in {left!r} and name not in before))
"""
LEFT_BY_TRL = ["LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"]


@pytest.mark.slow
@pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed on this machine")
def test_what_a_process_starts_is_not_taken_for_a_rank_of_its_trainer(policy, tmp_path):
    """Who finds a rank in the environment listens at the port at which the trainer listens."""
    tiny = tiny_policy_in(tmp_path / "tiny", policy.tokenizer)
    code = WITH_VLLM.format(left=LEFT_BY_TRL)
    command = [sys.executable, "-c", code, str(tiny), str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONG_PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture(scope="module")
def lora(policy, tmp_path_factory):
    """The options of a run with LoRA, of a policy of two layers: how a run is stopped and goes on
    does not depend on what the policy is, and the real one takes three minutes."""
    tiny = tiny_policy_in(tmp_path_factory.mktemp("tiny"), policy.tokenizer)
    return ["--policy", str(tiny), "--lora", "--updates", "3"]


@pytest.fixture(scope="module")
def whole(lora, tmp_path_factory):
    """The folder of a run with LoRA that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    done = run(folder, *lora, **TRAIN)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_a_run_with_lora_leaves_a_result(whole):
    result = json.loads((whole / "result.json").read_text())
    assert result["after"]["n"] + result["after"]["failed_infrastructure"] == 4
    assert (whole / "policy" / "adapter_model.safetensors").exists()
    before, after = (read_episodes(whole / f"{name}.jsonl") for name in ("before", "after"))
    assert [e.seed for e in before] == [e.seed for e in after]
    assert [row["update"] for row in read_metrics(whole)] == [1, 2, 3]


def test_an_adapter_goes_on_learning_and_is_asked_as_it_was_taught(policy, tmp_path):
    start = tiny_adapter(tmp_path, policy.tokenizer)
    how = rollout_config("enter-text", examples=False, max_turns=1)
    keep_how(Path(start), Taught(("click-test",), how))
    folder = tmp_path / "run"
    done = run(folder, "--policy", start, "--task", "taught", "--lora", "--updates", "1", **TRAIN)
    assert done.returncode == 0, done.stderr[-3000:]

    before, after = (
        load_file(Path(name) / "adapter_model.safetensors") for name in (start, folder / "policy")
    )
    assert before.keys() == after.keys()  # no second adapter on top of the first one
    assert any((before[name] != after[name]).any() for name in before)
    assert all(weight.dtype is torch.bfloat16 for weight in after.values())  # as handed on
    saved = json.loads((folder / "policy" / "adapter_config.json").read_text())
    assert saved["base_model_name_or_path"] == str(tmp_path / "base")
    assert kept_how(str(folder / "policy")).config == how
    for name in ("before", "episodes", "after"):
        prompt = policy.tokenizer.decode(read_episodes(folder / f"{name}.jsonl")[0].ledger.ids)
        assert "fill(" in prompt, name  # the default prompt of click-test has no fields
        assert prompt.count("Goal:") == 1, name  # and worked examples


def kill_after_two_updates(folder, lora):
    """Start a run and kill it when update 2 is logged, its checkpoint perhaps half written."""
    killed = subprocess.Popen(
        [*COMMAND, "--output", str(folder), *lora, "--no-before"],
        cwd=ROOT,
        env={**os.environ, **SMOKE, **TRAIN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + LONG_PATIENCE
        while len(read_metrics(folder)) < 2:
            assert killed.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        killed.kill()
        killed.wait()


def leave_the_worst_behind(folder):
    """A checkpoint without its last file, a line cut off."""
    cut = folder / "checkpoint-9"
    cut.mkdir()
    (cut / "trainer_state.json").write_text('{"global_st')
    with (folder / "episodes.jsonl").open("a") as file:
        file.write('{"update": 2, "ta')


def trained_episodes(folder):
    """Update, seed and tokens of every episode that a run was trained on."""
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [(e["update"], e["seed"], e["ledger"]["ids"]) for e in records]


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, lora, tmp_path):
    kill_after_two_updates(tmp_path, lora)
    leave_the_worst_behind(tmp_path)
    again = run(tmp_path, *lora, "--no-before", "--resume", **TRAIN)
    assert again.returncode == 0, again.stderr[-3000:]

    there, here = read_metrics(whole), read_metrics(tmp_path)
    for name in ("update", "reward", "loss", "grad_norm", "entropy", "learning_rate"):
        expected = [row[name] for row in there]
        assert [row[name] for row in here] == pytest.approx(expected, abs=1e-6), name
    assert any(row["grad_norm"] > 1e-3 for row in there)

    expected = load_file(whole / "policy" / "adapter_model.safetensors")
    weights = load_file(tmp_path / "policy" / "adapter_model.safetensors")
    assert weights.keys() == expected.keys()
    for name in expected:
        assert (weights[name] - expected[name]).abs().max().item() <= 1e-6, name

    assert trained_episodes(tmp_path) == trained_episodes(whole)


NO_TASK = "no MiniWoB task 'click-nothing'"
BAD = [
    (["--task", "click-nothing"], {}, NO_TASK),
    (["--policy", "smollm9"], {}, "There is no policy 'smollm9'"),
    ([], {"COURSE_PROFILE": "tpu"}, "There is no profile 'tpu'"),
    ([], {"COURSE_UPDATES": "many"}, "COURSE_UPDATES=many"),
    ([], {"COURSE_CHROMIUM": "/nowhere/chromium"}, "COURSE_CHROMIUM"),
]


@pytest.mark.parametrize(("arguments", "environment", "words"), BAD)
def test_bad_input_gets_one_sentence_and_an_exit_code(
    tmp_path, monkeypatch, capsys, arguments, environment, words
):
    for name, value in {**SMOKE, "COURSE_GENERATOR": "transformers", **environment}.items():
        monkeypatch.setenv(name, value)
    assert command_line.run(main, ["--output", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_command_shows_no_traceback(tmp_path):
    done = run(tmp_path, "--task", "click-nothing", COURSE_GENERATOR="transformers")
    assert done.returncode == 2
    assert NO_TASK in done.stderr
    assert "Traceback" not in done.stderr
