"""A run whose disk refuses stops with a sentence and keeps its last checkpoint; a second run in the
same folder is refused, whoever holds it."""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from datasets import Dataset
from full_disk import largest_file, no_rights
from jupyter_client.manager import start_new_kernel
from patience import PATIENCE
from tiny_models import tiny_llama

from helpers import command_line
from helpers.learning.checkpoints import last_checkpoint
from helpers.learning.configuration import grpo_config
from helpers.learning.recorder import Recorder, read_metrics
from helpers.learning.run import start_trainer
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.settings.files import RunFileError
from helpers.settings.paths import ROOT
from helpers.settings.profiles import PROFILES
from helpers.settings.run_folder import release_folder
from scripts import evaluate, train, train_tools, warm_up

PROFILE = replace(
    PROFILES["cpu"], generator="transformers", groups=1, group_size=2, updates=4, save_every=1
)


@pytest.fixture
def folder(tmp_path):
    yield tmp_path / "run"
    release_folder(tmp_path / "run")


def rewards(completions, **_):
    """Never the same for all, so that there is something to learn."""
    return [random.random() for _ in completions]


def trainer(folder, tokenizer, updates=PROFILE.updates):
    """A run of a tiny policy that plays no episodes: it continues texts of a few tokens."""
    profile = replace(PROFILE, updates=updates)
    arguments = grpo_config(profile, folder)
    arguments.max_completion_length = 4
    return start_trainer(
        BrowserGRPOTrainer,
        profile,
        Recorder(folder, profile, progress=False),
        model=tiny_llama(tokenizer),
        processing_class=tokenizer,
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": str(i)} for i in range(updates)]),
        reward_funcs=[rewards],
    )


def test_a_run_whose_disk_fills_up_keeps_its_last_checkpoint_and_goes_on(folder, policy, capsys):
    """The limit lets small files be written and the optimizer's state not."""
    trainer(folder, policy.tokenizer, updates=2).train()
    assert last_checkpoint(folder) == str(folder / "checkpoint-2")
    assert json.loads((folder / "checkpoint-2" / "settings.json").read_text())["updates"] == 2

    more = trainer(folder, policy.tokenizer)
    with largest_file(1_000_000), pytest.raises(RunFileError) as error:
        more.train(resume_from_checkpoint=last_checkpoint(folder))
    sentence = str(error.value)
    assert "\n" not in sentence
    assert str(folder) in sentence
    assert [row["update"] for row in read_metrics(folder)] == [1, 2, 3]
    assert last_checkpoint(folder) == str(folder / "checkpoint-2")
    assert "checkpoint-3 was not written to its end" in capsys.readouterr().out

    trainer(folder, policy.tokenizer).train(resume_from_checkpoint=last_checkpoint(folder))
    assert [row["update"] for row in read_metrics(folder)] == [1, 2, 3, 4]
    assert [path.name for path in folder.glob("checkpoint-*")] == ["checkpoint-4"]


COMMANDS = {
    "train": (train.main, []),
    "train_tools": (train_tools.main, []),
    "warm_up": (warm_up.main, []),
    "evaluate": (evaluate.main, ["--agent", "random"]),
}


def refusal(capsys, command, output):
    """What a command says, in a sentence, about a folder that it cannot have."""
    main, options = COMMANDS[command]
    assert command_line.run(main, [*options, "--output", str(output)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(output) in said
    return said


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_cannot_be_written_is_one_sentence_before_anything_is_done(
    tmp_path, capsys, command
):
    (tmp_path / "file").write_text("mine")
    assert "a file stands there" in refusal(capsys, command, tmp_path / "file")
    with no_rights() as folder:
        assert "Permission denied" in refusal(capsys, command, folder)


NOTEBOOK = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
from pathlib import Path
from helpers.policy.loading import load_policy
from test_run_refusals import trainer
trainer(Path({folder!r}), load_policy(weights=False).tokenizer)
"""


@pytest.fixture
def notebook(folder):
    """A kernel in which a trainer was made for the folder."""
    manager, client = start_new_kernel()
    tests = str(ROOT / "tests" / "learning")
    code = NOTEBOOK.format(root=str(ROOT), tests=tests, folder=str(folder))
    code = code.replace(
        "from pathlib", f"sys.path.insert(0, {str(ROOT / 'tests')!r})\nfrom pathlib"
    )
    reply = client.execute_interactive(code, timeout=PATIENCE, output_hook=lambda _: None)
    assert reply["content"]["status"] == "ok", reply["content"]
    yield manager
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_the_folder_of_a_notebooks_run_is_its_own_until_its_kernel_ends(
    notebook, folder, policy, capsys
):
    for command in COMMANDS:
        said = refusal(capsys, command, folder)
        assert f"process {notebook.provisioner.pid} on " in said
        assert "(a notebook)" in said
    with pytest.raises(RunFileError, match=r"\(a notebook\)"):
        trainer(folder, policy.tokenizer)
    notebook.shutdown_kernel(now=True)
    trainer(folder, policy.tokenizer)


@pytest.mark.slow
def test_the_folder_of_a_command_is_its_own(folder):
    """Two of the same command: the second one says who has the folder, and changes nothing."""
    command = [sys.executable, "-m", "scripts.train", "--output", str(folder), "--updates", "2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as first:
        try:
            lock = folder.with_name(f".{folder.name}.lock")
            while not (lock.exists() and lock.read_text()):
                assert first.poll() is None
                time.sleep(0.1)
            first.send_signal(signal.SIGSTOP)  # it holds the folder, and leaves the machine to us
            second = subprocess.run(
                command, cwd=ROOT, text=True, capture_output=True, timeout=PATIENCE
            )
        finally:
            first.kill()
    assert second.returncode == 2
    assert f"{folder} belongs to a run of process {first.pid} on " in second.stderr
    assert "(train.py)" in second.stderr
    assert "Traceback" not in second.stderr
