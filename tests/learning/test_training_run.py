"""Training runs as a reader starts them: real browser, real policy, real trainer; small in scale only."""

import json
import os
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file

from helpers.episodes.episode import read_episodes
from helpers.learning.recorder import read_metrics
from helpers.learning.run import last_checkpoint
from helpers.settings.machine import vllm_problem
from helpers.settings.paths import ROOT
from scripts.train import main

SMOKE = {
    "COURSE_SCALE": "smoke",
    "COURSE_EVAL_EPISODES": "4",
    "COURSE_LEARNING_RATE": "1e-4",
    "COURSE_WARMUP": "0",
}


COMMAND = [sys.executable, "-m", "scripts.train"]


def run(folder, *arguments, **environment):
    """``python -m scripts.train`` in a process of its own: vLLM never gives its memory back within one."""
    return subprocess.run(
        [*COMMAND, "--output", str(folder), *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env={**os.environ, **SMOKE, **environment},
        timeout=500,
    )


@pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed on this machine")
def test_vllm_samples_from_the_weights_that_are_trained(tmp_path):
    # The entropy bonus moves the weights even where the only group of a tiny batch ends alike.
    done = run(tmp_path, COURSE_GENERATOR="vllm", COURSE_ENTROPY="0.05")
    assert done.returncode == 0, done.stderr[-3000:]
    rows = read_metrics(tmp_path)
    assert [row["update"] for row in rows] == [1, 2]
    # Update 2 was sampled after a weight sync: its logprobs agree with the trainer's only if the sync moved the new weights.
    assert rows[0]["grad_norm"] > 0 or rows[1]["grad_norm"] > 0
    assert all(row["logprob_gap/max"] < 1e-3 for row in rows)
    assert all(row["infrastructure"] == 0 for row in rows)


TRAIN = {
    "COURSE_GENERATOR": "transformers",
    "COURSE_ENTROPY": "0.05",
}  # the bonus: a gradient where a group ends alike, too
LORA = ("--lora", "--updates", "3")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run with LoRA that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    done = run(folder, *LORA, **TRAIN)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def test_a_run_with_lora_leaves_a_result(whole):
    result = json.loads((whole / "result.json").read_text())
    assert result["after"]["n"] + result["after"]["failed_infrastructure"] == 4
    assert (whole / "policy" / "adapter_model.safetensors").exists()
    assert [e.seed for e in read_episodes(whole / "before.jsonl")] == [
        e.seed for e in read_episodes(whole / "after.jsonl")
    ]
    assert [row["update"] for row in read_metrics(whole)] == [1, 2, 3]


def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, tmp_path):
    killed = subprocess.Popen(
        [*COMMAND, "--output", str(tmp_path), *LORA, "--no-before"],
        cwd=ROOT,
        env={**os.environ, **SMOKE, **TRAIN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 300
        while (
            len(read_metrics(tmp_path)) < 2
        ):  # update 2 is logged, its checkpoint is perhaps being written
            assert killed.poll() is None and time.monotonic() < until
            time.sleep(0.01)
    finally:
        killed.kill()
        killed.wait()
    # The worst moment: a checkpoint without its last file, a line cut off.
    cut = tmp_path / "checkpoint-9"
    cut.mkdir()
    (cut / "trainer_state.json").write_text('{"global_st')
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.write('{"update": 2, "ta')

    again = run(tmp_path, *LORA, "--no-before", "--resume", **TRAIN)
    assert again.returncode == 0, again.stderr[-3000:]
    there, here = read_metrics(whole), read_metrics(tmp_path)
    for name in ("update", "reward", "loss", "grad_norm", "entropy", "learning_rate"):
        assert [row[name] for row in here] == pytest.approx(
            [row[name] for row in there], abs=1e-6
        ), name
    assert any(row["grad_norm"] > 1e-3 for row in there)
    sides = [
        load_file(folder / "policy" / "adapter_model.safetensors") for folder in (whole, tmp_path)
    ]
    assert max((sides[0][name] - sides[1][name]).abs().max().item() for name in sides[0]) <= 1e-6
    lines = [
        [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
        for folder in (whole, tmp_path)
    ]
    assert [(e["update"], e["seed"], e["ledger"]["ids"]) for e in lines[1]] == [
        (e["update"], e["seed"], e["ledger"]["ids"]) for e in lines[0]
    ]


def test_a_checkpoint_that_was_being_written_does_not_count(tmp_path):
    assert last_checkpoint(tmp_path) is None
    for step in (10, 9):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text("{}")
    (tmp_path / "checkpoint-11").mkdir()
    assert (
        last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
        and not (tmp_path / "checkpoint-11").exists()
    )


BAD = [
    (["--task", "click-nothing"], {}, "no MiniWoB task 'click-nothing'"),
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
    assert main(["--output", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_command_shows_no_traceback(tmp_path):
    done = run(tmp_path, "--task", "click-nothing", COURSE_GENERATOR="transformers")
    assert done.returncode == 2
    assert BAD[0][2] in done.stderr and "Traceback" not in done.stderr
