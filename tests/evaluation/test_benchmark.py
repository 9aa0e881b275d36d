"""A benchmark run: stopped and gone on with, episodes that are lost, agents that raise, and what is
written and recorded."""

import json
from dataclasses import replace
from typing import get_args

import pytest

from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.episodes.how_played import Taught, keep_how, rollout_config
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.evaluation import benchmark
from helpers.evaluation.agents import random_agent, text_match_agent
from helpers.evaluation.baselines import AGENTS
from helpers.evaluation.benchmark import FILE, PART, agent_plays, parts, play_set
from helpers.evaluation.outcomes import Outcome, read_outcomes, summary
from helpers.evaluation.scripted import OUT_OF_REACH
from helpers.evaluation.standard_sets import SETS, StandardSet
from helpers.evaluation.statistics import macro_mean, wilson_interval
from helpers.settings.profiles import get_profile
from scripts import benchmark as command
from scripts.benchmark import AgentName, SetName, label_of, weights_of

PAGES = tuple(
    EpisodeSpec(task, seed) for task in ("click-test-2", "click-button") for seed in range(6)
)
SET = StandardSet("some", "two tasks", PAGES, 2)


def outcome(place, reward=1.0, raw=None, task="click-test", ended="solved"):
    return Outcome(place, task, place, reward, raw, ended, 1, {"ok": 1})


def written(folder):
    """What the lines of a run's file say, but for the order in which they were written."""
    return sorted((folder / FILE).read_text().splitlines())


@pytest.fixture
def short_parts(monkeypatch):
    monkeypatch.setattr(benchmark, "PART", 4)


# ---- parts, and going on ----


def test_parts_hold_every_page_once_and_do_not_depend_on_what_is_done(short_parts):
    assert list(parts(PAGES, one_task_each=False)) == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
    ]
    assert [len(part) for part in parts(PAGES, one_task_each=False, size=5)] == [5, 5, 2]
    own = list(parts(PAGES, one_task_each=True))
    assert own == [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9], [10, 11]]
    assert all(len({PAGES[place].task for place in part}) == 1 for part in own)
    assert PART >= 32  # or many browsers would wait for the last episode of each


def test_a_run_that_was_stopped_has_the_result_of_one_that_was_not(browsers, tmp_path, short_parts):
    plays = agent_plays(random_agent(), SET, browsers)
    whole = play_set(SET, plays, tmp_path_of(tmp_path, "whole"))

    def stopped(pages, report):
        if pages[0] == PAGES[8]:
            raise KeyboardInterrupt
        return plays(pages, report)

    folder = tmp_path_of(tmp_path, "stopped")
    with pytest.raises(KeyboardInterrupt):
        play_set(SET, stopped, folder)
    assert len(written(folder)) == 8
    with (folder / FILE).open("a") as file:
        file.write('{"place": 8, "task": "click-bu')  # the machine went off in a line
    played = []

    def goes_on(pages, report):
        played.extend(pages)
        return plays(pages, report)

    assert play_set(SET, goes_on, folder) == whole
    assert played == list(PAGES[8:])
    assert 0 < sum(o.reward == 1.0 for o in whole) < len(whole)  # random: some of each


def tmp_path_of(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_a_part_that_was_not_finished_is_played_again_as_a_whole(tmp_path, short_parts):
    asked = []

    def plays(pages, report):
        asked.append(list(pages))
        return [Episode(page.task, page.seed, reward=1.0, ended="solved") for page in pages]

    play_set(SET, plays, tmp_path)
    lines = (tmp_path / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(lines[:6]))
    asked.clear()
    play_set(SET, plays, tmp_path)
    assert asked == [list(PAGES[4:8]), list(PAGES[8:])]


def test_what_the_infrastructure_lost_is_tried_again_and_counted_apart(tmp_path):
    tries = {}

    def plays(pages, report):
        episodes = []
        for page in pages:
            tries[page] = tries.get(page, 0) + 1
            fails = page == PAGES[3] or (page == PAGES[5] and tries[page] == 1)
            reward, ended = (None, "infrastructure_error") if fails else (1.0, "solved")
            episodes.append(Episode(page.task, page.seed, reward=reward, ended=ended))
        return episodes

    outcomes = play_set(SET, plays, tmp_path)
    assert tries == dict.fromkeys(PAGES, 1) | {PAGES[3]: benchmark.TRIES, PAGES[5]: 2}
    numbers = summary(outcomes)
    assert (numbers["n"], numbers["lost"]) == (11, 1)
    assert numbers["by_task"]["click-test-2"]["n"] == 5
    assert numbers["by_task"]["click-test-2"]["solved"] == 5


def test_an_agent_that_raises_loses_its_episode_and_not_the_run(browsers, tmp_path):
    def agent(seen, turn):
        if (seen.task, seen.seed) == ("click-button", 2):
            raise ZeroDivisionError("a mistake of the script")
        return text_match_agent(seen, turn)

    outcomes = play_set(SET, agent_plays(agent, SET, browsers), tmp_path)
    lost = outcomes[PAGES.index(EpisodeSpec("click-button", 2))]
    assert (lost.reward, lost.ended, lost.turns) == (0.0, "turn_limit", 2)
    others = [o for o in outcomes if o is not lost and o.task == "click-button"]
    assert all(o.reward == 1.0 for o in others)


def test_outcomes_of_other_pages_are_left_out(tmp_path, short_parts):
    other = StandardSet("other", "", tuple(reversed(PAGES)), 2)

    def plays(pages, report):
        return [Episode(page.task, page.seed, ended="failed") for page in pages]

    play_set(other, plays, tmp_path)
    assert read_outcomes(tmp_path / FILE, other.pages).keys() == set(range(len(PAGES)))
    assert read_outcomes(tmp_path / FILE, PAGES) == {}


# ---- the numbers ----


def test_the_summary_counts_strictly_and_as_the_leaderboard_does():
    solved = [outcome(i, 1.0, 1.0) for i in range(6)]
    tipped = [outcome(i, 0.0, 0.4, ended="failed") for i in range(6, 8)]
    failed = [outcome(i, 0.0, -1.0, ended="failed") for i in range(8, 10)]
    other = [outcome(i, 0.0, 0.0, task="focus-text", ended="turn_limit") for i in range(5)]
    lost = [outcome(10, None, None, ended="infrastructure_error")]
    numbers = summary([*solved, *tipped, *failed, *other, *lost])
    assert numbers["macro"] == pytest.approx(macro_mean([(0.6, 10), (0.0, 5)]), abs=1e-4)
    assert numbers["macro_raw"] == pytest.approx(macro_mean([(0.8, 10), (0.0, 5)]), abs=1e-4)
    row = numbers["by_task"]["click-test"]
    assert (row["solved"], row["raw_above_0"], row["n"], row["lost"]) == (6, 8, 10, 1)
    assert (row["low"], row["high"]) == pytest.approx(wilson_interval(6, 10), abs=1e-4)
    assert row["kinds"] == {"ok": 10}


def test_the_leaderboard_counts_what_stock_pays():
    """Nothing after a click on a link to "#", where a server says so."""
    followed = replace(outcome(0, 1.0, 1.0), stock_reward=0.0)
    paid = replace(outcome(1, 1.0, 1.0), stock_reward=1.0)
    row = summary([followed, paid])["by_task"]["click-test"]
    assert (row["solved"], row["raw_above_0"]) == (2, 1)


# ---- the command ----


@pytest.fixture
def short_set(monkeypatch, tmp_path):
    """A set of two tasks in the place of webgum56, and recordings in a folder of the test's."""
    pages = (*PAGES[:3], EpisodeSpec("click-color", 0))
    chosen = StandardSet("webgum56", "short", pages, 2)
    monkeypatch.setattr(command, "standard_set", lambda name, n: chosen)
    monkeypatch.setattr(command, "RECORDINGS", tmp_path / "recordings")
    return chosen


def test_the_command_writes_records_and_goes_on(short_set, tmp_path, capsys):
    words = ["--agent", "scripted", "--output", str(tmp_path / "run"), "--record"]
    assert run(command.main, words) == 0
    said = capsys.readouterr().out
    assert "mean over 2 tasks, strict" in said
    assert OUT_OF_REACH["click-color"] in said
    recorded = tmp_path / "recordings" / "benchmark" / "webgum56-scripted"
    result = json.loads((recorded / "result.json").read_text())
    assert result["command"] == f"python -m scripts.benchmark {' '.join(words)}"
    assert result["by_task"]["click-test-2"]["solved"] == 3
    assert set(result["out_of_reach"]) == {"click-color"}
    assert {"versions", "machine", "seconds"} <= result.keys()
    assert len((recorded / FILE).read_text().splitlines()) == 4
    # Nothing is left to be played.
    assert run(command.main, words) == 0
    assert len((recorded / FILE).read_text().splitlines()) == 4
    again = json.loads((recorded / "result.json").read_text())
    assert again["by_task"] == result["by_task"]
    # Another agent's episodes are no part of this run.
    assert run(command.main, ["--agent", "random", *words[2:]]) == 2
    assert "other settings (who)" in capsys.readouterr().err


def test_a_policy_that_was_trained_anew_is_another_one(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"first")
    first = weights_of(str(tmp_path))
    assert weights_of(str(tmp_path)) == first != ""
    (tmp_path / "model.safetensors").write_bytes(b"later")
    assert weights_of(str(tmp_path)) != first
    assert weights_of("smollm2-135m") == ""


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("random", "suite-random"),
        ("recordings/one-policy/policy", "suite-one-policy"),
        ("runs/suite/policy", "suite-suite"),
        ("owner/a_model-1B", "suite-owner-a-model-1B"),
        ("policy", "suite-policy"),
    ],
)
def test_a_runs_folder_says_who_plays(name, label):
    assert label_of("suite", name) == label


def test_a_policy_and_an_agent_are_refused_together(capsys):
    assert run(command.main, ["--agent", "random", "--policy", "smollm2-135m"]) == 2
    assert "--policy and --agent" in capsys.readouterr().err


def test_the_command_knows_the_sets_and_agents():
    assert get_args(SetName) == tuple(SETS)
    assert set(get_args(AgentName)) - {"scripted"} == set(AGENTS) - {"oracle"}


def test_a_policy_is_asked_as_its_folder_says_and_gives_up_where_it_was_taught_to(
    policy, browsers, tmp_path, monkeypatch
):
    """What a policy of another prompt, with 1 and 30 turns for two tasks, reads and is granted."""
    how = replace(
        rollout_config("enter-text", examples=False),
        max_turns=30,
        turns={"click-test-2": 1, "click-button": 30},
    )
    keep_how(tmp_path, Taught(("click-test-2", "click-button"), how))
    waits = ScriptPlayer(lambda seen, turn: "noop(10)", policy.tokenizer)
    read = []

    def play_episodes(pages, clients, generator, tokenizer, config, report=None):
        read.append(config)
        return play(pages, clients, waits, config, report)

    monkeypatch.setattr(benchmark, "standalone_generator", lambda *_: (policy.tokenizer, None))
    monkeypatch.setattr(benchmark, "play_episodes", play_episodes)
    pages = (PAGES[0], PAGES[6], EpisodeSpec("click-test", 0))
    chosen = StandardSet("some", "", pages, 3)
    plays = benchmark.policy_plays(str(tmp_path), chosen, browsers, get_profile(), 0.0, "")
    assert [outcome.turns for outcome in play_set(chosen, plays, tmp_path)] == [1, 3, 3]
    assert [(config.prompt, config.temperature) for config in read] == [(how.prompt, 0.0)]


@pytest.mark.slow
def test_a_policys_run_is_sampled_alike_when_it_goes_on(
    policy, generator, browsers, tmp_path, monkeypatch
):
    """Sampled answers, stopped between two parts: the second run samples what the first would
    have."""
    monkeypatch.setattr(benchmark, "standalone_generator", lambda *_: (policy.tokenizer, generator))
    monkeypatch.setattr(benchmark, "PART", 2)
    chosen = StandardSet("some", "", PAGES[:4], 1)
    plays = benchmark.policy_plays(
        "any", chosen, browsers, get_profile(scale="smoke"), 1.0, benchmark.OWN_PROMPTS
    )
    whole = play_set(chosen, plays, tmp_path_of(tmp_path, "whole"), one_task_each=True)
    folder = tmp_path_of(tmp_path, "stopped")
    lines = (tmp_path / "whole" / FILE).read_text().splitlines(keepends=True)
    (folder / FILE).write_text("".join(lines[:2]))
    assert play_set(chosen, plays, folder, one_task_each=True) == whole
