"""One run on several processes: the same update as on one, whole groups in each, nothing left of
their browsers."""

import json
import os
import subprocess
import sys

import pytest
import torch
from patience import LONG_PATIENCE
from safetensors.torch import load_file
from tiny_models import tiny_policy_in

from helpers.learning.recorder import read_metrics
from helpers.settings.paths import ROOT

ENVIRONMENT = {"COURSE_SCALE": "demo", "ACCELERATE_USE_CPU": "true"}
ONE_PROCESS = [sys.executable]
TWO_PROCESSES = [
    *[sys.executable, "-m", "accelerate.commands.launch"],
    *["--multi_gpu", "--num_processes", "2", "--num_machines", "1"],
    *["--mixed_precision", "no", "--dynamo_backend", "no"],
]
GROUP = 4
UPDATES = 2


@pytest.fixture(scope="module")
def tiny_policy(policy, tmp_path_factory):
    """The folder of a two-layer Llama with random weights."""
    return tiny_policy_in(tmp_path_factory.mktemp("tiny"), policy.tokenizer)


def run(command, folder, tiny_policy):
    """What each process of a run has written down."""
    folder.mkdir()
    done = subprocess.run(
        [*command, "-m", "tests.learning.scripted_run", str(folder), str(tiny_policy)],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env=os.environ | ENVIRONMENT,
        timeout=LONG_PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(path.read_text()) for path in sorted(folder.glob("process-*.json"))]


def weights_step(before, folder):
    """How far a run has moved all weights, as one vector."""
    after = load_file(folder / "policy" / "model.safetensors")
    return torch.cat([(after[name] - before[name]).flatten() for name in before])


@pytest.mark.slow
def test_two_processes_make_the_update_of_one(tiny_policy, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    [alone] = run(ONE_PROCESS, one, tiny_policy)
    pair = run(TWO_PROCESSES, two, tiny_policy)
    assert len(pair) == 2

    # Each process played one whole group in each update, and together they played what the one
    # process played.
    for process in pair:
        for start in (0, GROUP):
            group = process["pages"][start : start + GROUP]
            assert len(set(map(tuple, group))) == 1
    together = [page for process in pair for page in process["pages"][: UPDATES * GROUP]]
    assert sorted(together) == sorted(alone["pages"][: 2 * UPDATES * GROUP])

    here, there = read_metrics(two), read_metrics(one)
    assert [row["update"] for row in here] == [1, 2]
    for name in ("reward", "loss", "grad_norm"):
        expected = [row[name] for row in there]
        assert [row[name] for row in here] == pytest.approx(expected, abs=1e-5), name
    assert any(row["grad_norm"] > 1e-3 for row in there)

    # The same step: where a gradient is nearly 0, Adam makes a step of its rounding error, so
    # single weights may differ.
    before = load_file(tiny_policy / "model.safetensors")
    step_of_one, step_of_two = weights_step(before, one), weights_step(before, two)
    assert step_of_one.norm() > 0.01
    assert (step_of_one - step_of_two).norm() < 0.01 * step_of_one.norm()

    # Servers, workers and browsers of all are gone.
    assert not any(process["children"] for process in [alone, *pair])
    assert json.loads((two / "result.json").read_text())["after"]["n"] == 1
