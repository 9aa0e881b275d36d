"""The files of a run: what is cut short, damaged or foreign is said, and nothing is lost."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from full_disk import largest_file
from safetensors.torch import save_file

from helpers.browser.actions import parse_action
from helpers.episodes.episode import Episode, Turn, read_episodes, read_recording, write_episodes
from helpers.learning.checkpoints import (
    checkpoints,
    drop_older_checkpoints,
    keep_settings,
    last_checkpoint,
    saving,
)
from helpers.learning.configuration import grpo_config
from helpers.learning.recorder import (
    METRICS,
    append_episodes,
    drop_what_came_after,
    metrics_row,
    read_metrics,
    write_metrics,
)
from helpers.learning.resuming import prepare_folder
from helpers.learning.warm_up import demonstrate
from helpers.settings.errors import CourseError
from helpers.settings.files import RunFileError
from helpers.settings.profiles import PROFILES, ProfileError
from helpers.settings.run_folder import release_folder

PROFILE = PROFILES["cpu"]
ROWS = [{"update": update, "reward": update / 4} for update in (1, 2, 3)]


@pytest.fixture
def run(tmp_path):
    """The empty folder of a run."""
    folder = tmp_path / "run"
    folder.mkdir()
    yield folder
    release_folder(folder)


def updates_of(rows):
    return [row["update"] for row in rows]


def one_sentence(error):
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


# metrics.csv


def test_metrics_read_back(run):
    assert read_metrics(run) == []
    write_metrics(run, ROWS)
    assert read_metrics(run) == ROWS
    assert (run / "metrics.csv").read_text().splitlines()[0] == ",".join(METRICS)


def test_each_row_has_strict_and_raw_success_whatever_the_run_is_paid_for():
    rewards = [(1.0, 1.0), (0.0, 0.5), (0.0, -1.0), (0.0, 0.0), (None, None)]
    episodes = [Episode("a", 1, reward=strict, raw_reward=raw) for strict, raw in rewards]
    row = metrics_row(1, {"reward": 0.7}, episodes)
    assert (row["success/strict"], row["success/raw"]) == (0.25, 0.5)
    assert "success/raw" not in metrics_row(1, {"reward": 0.0}, episodes[-1:])


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_last_row_that_is_cut_short_is_left_out_and_said(run, capsys, cut):
    write_metrics(run, ROWS)
    path = run / "metrics.csv"
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_metrics(run) == ROWS[:2]
    assert capsys.readouterr().out == f"1 of 3 rows of {path} cannot be read: left out.\n"


@pytest.mark.parametrize(
    "row",
    [b"\x00\xff\xfe\x80" * 9, b"2,many" + b"," * (len(METRICS) - 2), b"2,0.5", b"," * 99, b""],
    ids=["binary", "a word", "too short", "too long", "empty"],
)
def test_a_row_that_is_none_is_left_out_and_said_and_the_file_is_kept(run, capsys, row):
    write_metrics(run, ROWS)
    path = run / "metrics.csv"
    lines = path.read_bytes().splitlines()
    lines[2] = row
    damaged = b"\n".join(lines) + b"\n"
    path.write_bytes(damaged)
    assert updates_of(read_metrics(run)) == [1, 3]
    assert "1 of 3 rows of" in capsys.readouterr().out
    drop_what_came_after(run, 3)
    assert "is kept as damaged-metrics.csv" in capsys.readouterr().out
    assert (run / "damaged-metrics.csv").read_bytes() == damaged


def test_an_empty_file_has_no_rows(run):
    (run / "metrics.csv").write_bytes(b"")
    assert read_metrics(run) == []


@pytest.mark.parametrize("content", [b"name,age\nAda,36\n", b"\x89PNG\r\n\x1a\n\x00", b"\n\n"])
def test_a_file_of_somebody_else_is_refused_before_the_run_and_stays(run, content):
    (run / "metrics.csv").write_bytes(content)
    with pytest.raises(RunFileError, match="is not the record of a run") as error:
        prepare_folder(run, PROFILE, lora=False, resume=False)
    assert str(run / "metrics.csv") in one_sentence(error)
    assert (run / "metrics.csv").read_bytes() == content


def test_metrics_that_cannot_be_written_keep_the_last_ones(run):
    write_metrics(run, ROWS[:2])
    with largest_file(50), pytest.raises(RunFileError, match="File too large") as error:
        write_metrics(run, ROWS)
    one_sentence(error)
    assert read_metrics(run) == ROWS[:2]


# episodes.jsonl


def episode(seed, answer="click('13')"):
    turn = Turn(['"Ok" button 13'], answer, parse_action(answer), 1.0)
    return Episode("click-test", seed, "Click.", [turn], reward=1.0, ended="solved")


STRANGE = "click('13')\u2028\u2029\x85\x0b\x0c\x1c\r 😀\ud800"


def test_what_a_policy_writes_is_read_back_whatever_its_characters(run):
    """Line ends of Unicode among them, and half of a pair of surrogates."""
    played = [episode(1, STRANGE), episode(2)]
    write_episodes(run / "after.jsonl", played)
    assert read_episodes(run / "after.jsonl") == played
    append_episodes(run, 1, played)
    drop_what_came_after(run, 1)
    assert read_recording(run / "episodes.jsonl") == [(1, played[0]), (1, played[1])]


def test_episodes_after_the_checkpoint_and_a_line_cut_short_are_dropped(run, capsys):
    for update in (1, 2, 3):
        append_episodes(run, update, [episode(update)])
    with (run / "episodes.jsonl").open("ab") as file:
        file.write('{"update": 3, "goal": "é'.encode()[:-1])
    assert [update for update, _ in read_recording(run / "episodes.jsonl")] == [1, 2, 3]
    assert "1 of 4 lines of" in capsys.readouterr().out
    drop_what_came_after(run, 2)
    assert [update for update, _ in read_recording(run / "episodes.jsonl")] == [1, 2]
    assert not (run / "damaged-episodes.jsonl").exists()


@pytest.mark.parametrize(
    "line", [b"\x00\xff\xfe", b'{"mine": 1}', b"[1, 2]", b'"update"', b'{"update": "x"}']
)
def test_lines_that_are_no_episodes_are_said_and_kept_elsewhere(run, capsys, line):
    append_episodes(run, 1, [episode(1)])
    path = run / "episodes.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes())
    before = path.read_bytes()
    assert read_recording(path) == [(1, episode(1))]
    assert "1 of 2 lines of" in capsys.readouterr().out
    drop_what_came_after(run, 1)
    assert "kept as damaged-episodes.jsonl" in capsys.readouterr().out
    assert (run / "damaged-episodes.jsonl").read_bytes() == before
    assert read_recording(path) == [(1, episode(1))]


def test_episodes_that_cannot_be_written_are_one_sentence_and_keep_the_old_ones(run):
    write_episodes(run / "after.jsonl", [episode(1)])
    append_episodes(run, 1, [episode(1)])
    size = (run / "episodes.jsonl").stat().st_size
    with largest_file(size + 10):
        with pytest.raises(RunFileError, match="after.jsonl cannot be written") as error:
            write_episodes(run / "after.jsonl", [episode(1), episode(2)])
        one_sentence(error)
        with pytest.raises(RunFileError, match="episodes.jsonl cannot be written"):
            append_episodes(run, 2, [episode(2)])
    assert read_episodes(run / "after.jsonl") == [episode(1)]
    drop_what_came_after(run, 1)
    assert read_recording(run / "episodes.jsonl") == [(1, episode(1))]


# Checkpoints


def checkpoint(run, update, lora=False, profile=PROFILE):
    """A small checkpoint as the trainer writes it."""
    folder = run / f"checkpoint-{update}"
    folder.mkdir()
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    save_file({"weight": torch.zeros(100, 100)}, folder / name)
    for part in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        torch.save({"state": torch.zeros(100)}, folder / part)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": update}))
    keep_settings(folder, profile)
    return folder


def test_the_newest_checkpoint_is_the_one_with_the_highest_number(run):
    assert last_checkpoint(run) is None
    for update in (9, 100, 10):
        checkpoint(run, update)
    assert last_checkpoint(run) == str(run / "checkpoint-100")


def damage_state(folder, content):
    (folder / "trainer_state.json").write_text(content)


def cut_in_half(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


DAMAGES = {
    "an empty object": lambda folder: damage_state(folder, "{}"),
    "no object": lambda folder: damage_state(folder, "[1]"),
    "another update's state": lambda folder: damage_state(folder, '{"global_step": 7}'),
    "a state cut short": lambda folder: damage_state(folder, '{"global_st'),
    "weights cut short": lambda folder: cut_in_half(folder / "model.safetensors"),
    "optimizer cut short": lambda folder: cut_in_half(folder / "optimizer.pt"),
    "scheduler cut short": lambda folder: cut_in_half(folder / "scheduler.pt"),
    "random state empty": lambda folder: (folder / "rng_state.pth").write_bytes(b""),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "no optimizer": lambda folder: (folder / "optimizer.pt").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_of_damaged_checkpoints_the_newest_whole_one_is_taken_and_none_is_lost(run, capsys, damage):
    for update in (5, 10, 20):
        checkpoint(run, update)
    damage(run / "checkpoint-20")
    files = {path.name for path in (run / "checkpoint-20").iterdir()}
    assert last_checkpoint(run) == str(run / "checkpoint-10")
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert f"{run / 'checkpoint-20'} is not whole (" in said
    assert "damaged-checkpoint-20." in said
    assert {path.name for path in (run / "damaged-checkpoint-20").iterdir()} == files
    assert last_checkpoint(run) == str(run / "checkpoint-10")
    assert capsys.readouterr().out == ""


def test_what_a_save_that_was_interrupted_leaves_is_deleted_and_said(run, capsys):
    checkpoint(run, 10)
    (checkpoint(run, 20) / "trainer_state.json").unlink()
    (run / "checkpoint-30").mkdir()
    assert last_checkpoint(run) == str(run / "checkpoint-10")
    said = capsys.readouterr().out
    assert said.count("was not written to its end") == 2
    assert [path.name for path in run.iterdir()] == ["checkpoint-10"]


def test_what_stands_beside_the_checkpoints_is_left_alone(run):
    checkpoint(run, 9)
    shutil.copytree(checkpoint(run, 10), run / "checkpoint-backup")
    shutil.copytree(run / "checkpoint-10", run / "checkpoint-10-good")
    (run / "checkpoint-11").write_text("a file")
    assert last_checkpoint(run) == str(run / "checkpoint-10")
    drop_older_checkpoints(run, 10)
    drop_what_came_after(run, 9)
    left = {path.name for path in run.iterdir()}
    assert left == {"checkpoint-backup", "checkpoint-10-good", "checkpoint-11", "episodes.jsonl"}


def test_an_older_checkpoint_goes_only_when_the_newer_one_is_whole(run):
    checkpoint(run, 10)
    cut_in_half(checkpoint(run, 20) / "optimizer.pt")
    drop_older_checkpoints(run, 20)
    assert [path.name for path in checkpoints(run)] == ["checkpoint-10", "checkpoint-20"]
    checkpoint(run, 30)
    drop_older_checkpoints(run, 30)
    assert [path.name for path in checkpoints(run)] == ["checkpoint-30"]


WRITERS = {
    "weights": lambda path: save_file({"weight": torch.zeros(500, 500)}, path),
    "optimizer": lambda path: torch.save({"state": torch.zeros(500, 500)}, path),
    "a text": lambda path: path.write_text("x" * 1_000_000),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_save_that_the_disk_refuses_is_one_sentence_from_every_library(run, write):
    with largest_file(100_000), pytest.raises(RunFileError) as error, saving(run):
        write(run / "file")
    sentence = one_sentence(error)
    assert str(run) in sentence
    assert "inline_container" not in sentence


def test_a_mistake_while_saving_stays_what_it_is(run):
    with pytest.raises(RuntimeError, match="size mismatch"), saving(run):
        raise RuntimeError("size mismatch")


# What a folder that holds a run allows


def finish(run, updates):
    (run / "result.json").write_text(json.dumps({"profile": {"updates": updates}}))


def refused(run, profile=PROFILE, lora=False, resume=True):
    with pytest.raises(CourseError) as error:
        prepare_folder(run, profile, lora, resume)
    return one_sentence(error)


def test_a_run_goes_on_where_it_was_stopped(run):
    assert prepare_folder(run, PROFILE, lora=False, resume=True) is None
    checkpoint(run, 10)
    here = str(run / "checkpoint-10")
    assert prepare_folder(run, PROFILE, lora=False, resume=True) == here
    on_another_machine = replace(
        PROFILE, clients=4, workers=1, updates=40, generator="transformers"
    )
    assert prepare_folder(run, on_another_machine, lora=False, resume=True) == here


@pytest.mark.parametrize(
    ("name", "value"),
    [("policy", "lfm2-350m"), ("task", "click-tab"), ("seed", 7), ("learning_rate", 1e-3)],
)
def test_a_run_with_other_settings_is_not_gone_on_with(run, name, value):
    checkpoint(run, 10)
    sentence = refused(run, replace(PROFILE, **{name: value}))
    made = getattr(PROFILE, name)
    assert f"was made with {name}={made}, not {value}" in sentence
    assert f"COURSE_{name.upper()}={made}" in sentence


@pytest.mark.parametrize("lora", [True, False])
def test_adapters_and_all_weights_are_not_mixed(run, lora):
    checkpoint(run, 10, lora=lora)
    words = "was made with LoRA" if lora else "was made without LoRA"
    assert words in refused(run, lora=not lora)
    assert prepare_folder(run, PROFILE, lora, resume=True)


def test_a_checkpoint_without_settings_is_taken(run):
    (checkpoint(run, 10) / "settings.json").unlink()
    assert prepare_folder(run, replace(PROFILE, seed=7), lora=False, resume=True)


def test_a_run_that_is_over_is_not_gone_on_with_unless_more_is_asked_for(run):
    checkpoint(run, PROFILE.updates)
    finish(run, PROFILE.updates)
    assert f"is over ({PROFILE.updates} updates)" in refused(run)
    more = replace(PROFILE, updates=PROFILE.updates + 5)
    assert prepare_folder(run, more, lora=False, resume=True)


def test_a_run_that_was_stopped_after_its_last_update_is_evaluated(run):
    checkpoint(run, PROFILE.updates)
    assert prepare_folder(run, PROFILE, lora=False, resume=True)


def test_a_new_run_does_not_take_the_place_of_one_that_can_go_on(run):
    checkpoint(run, 10)
    sentence = refused(run, resume=False)
    assert "was stopped after update 10: go on with --resume" in sentence
    finish(run, 5)  # an earlier end, before more was asked for
    assert sentence == refused(run, resume=False)
    finish(run, 10)
    assert prepare_folder(run, PROFILE, lora=False, resume=False) is None
    assert last_checkpoint(run)  # nothing has been deleted yet


@pytest.mark.parametrize("content", ["", "[]", '{"profile": 3}', '{"profile": {"updates": "x"}}'])
def test_a_result_that_says_nothing_ends_no_run(run, content):
    checkpoint(run, 10)
    (run / "result.json").write_text(content)
    assert prepare_folder(run, PROFILE, lora=False, resume=True)


def test_what_a_run_that_was_here_has_left_goes_when_the_new_one_begins(run):
    checkpoint(run, 20)
    finish(run, 20)
    append_episodes(run, 1, [episode(1)])
    drop_what_came_after(run, 0)
    assert [path.name for path in run.iterdir()] == ["episodes.jsonl"]
    assert read_recording(run / "episodes.jsonl") == []


def test_metrics_go_to_what_is_known_only(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_REPORT_TO", " tensorboard,, mlflow ")
    assert grpo_config(PROFILE, tmp_path).report_to == ["tensorboard", "mlflow"]
    monkeypatch.setenv("COURSE_REPORT_TO", "trackoi")
    with pytest.raises(ProfileError, match="COURSE_REPORT_TO=trackoi is unknown: use one of"):
        grpo_config(PROFILE, tmp_path)
    monkeypatch.setenv("COURSE_REPORT_TO", "wandb")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ProfileError, match="pip install wandb"):
        grpo_config(PROFILE, tmp_path)


def test_more_demonstrations_than_there_are_pages_are_refused():
    with pytest.raises(ProfileError, match="click-button has 600 training pages, and 601 were"):
        demonstrate("click-button", 601, [], tokenizer=None)
