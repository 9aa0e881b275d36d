"""Training runs as a reader starts them: real browser, real policy, real trainer; small in scale only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.episodes import read_episodes
from helpers.generation import vllm_problem
from helpers.training import main, read_metrics

ROOT = Path(__file__).resolve().parent.parent
SMOKE = {"COURSE_SCALE": "smoke", "COURSE_EVAL_EPISODES": "4", "COURSE_LEARNING_RATE": "1e-4", "COURSE_WARMUP": "0"}


def run(folder, *arguments, **environment):
    """``python -m helpers.training`` in a process of its own: vLLM never gives its memory back within one."""
    return subprocess.run([sys.executable, "-m", "helpers.training", "--output", str(folder), *arguments], cwd=ROOT, text=True,
                          capture_output=True, env={**os.environ, **SMOKE, **environment}, timeout=500)


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


def test_a_run_with_lora_leaves_a_result_and_can_be_resumed(tmp_path):
    first = run(tmp_path, "--lora", "--updates", "2", COURSE_GENERATOR="transformers")
    assert first.returncode == 0, first.stderr[-3000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["after"]["n"] + result["after"]["failed_infrastructure"] == 4
    assert (tmp_path / "policy" / "adapter_model.safetensors").exists()
    assert [e.seed for e in read_episodes(tmp_path / "before.jsonl")] == [e.seed for e in read_episodes(tmp_path / "after.jsonl")]
    kept = read_metrics(tmp_path)

    again = run(tmp_path, "--lora", "--updates", "3", "--resume", COURSE_GENERATOR="transformers")
    assert again.returncode == 0, again.stderr[-3000:]
    rows = read_metrics(tmp_path)
    assert [row["update"] for row in rows] == [1, 2, 3]
    assert rows[:2] == kept  # what was measured before the resume is kept as it was


BAD = [
    (["--task", "click-nothing"], {}, "no MiniWoB task 'click-nothing'"),
    (["--policy", "smollm9"], {}, "There is no policy 'smollm9'"),
    ([], {"COURSE_PROFILE": "tpu"}, "There is no profile 'tpu'"),
    ([], {"COURSE_UPDATES": "many"}, "COURSE_UPDATES=many"),
    ([], {"COURSE_CHROMIUM": "/nowhere/chromium"}, "COURSE_CHROMIUM"),
]


@pytest.mark.parametrize(("arguments", "environment", "words"), BAD)
def test_bad_input_gets_one_sentence_and_an_exit_code(tmp_path, monkeypatch, capsys, arguments, environment, words):
    for name, value in {**SMOKE, "COURSE_GENERATOR": "transformers", **environment}.items():
        monkeypatch.setenv(name, value)
    assert main(["--output", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_the_command_shows_no_traceback(tmp_path):
    done = run(tmp_path, "--task", "click-nothing", COURSE_GENERATOR="transformers")
    assert done.returncode == 2
    assert BAD[0][2] in done.stderr and "Traceback" not in done.stderr
