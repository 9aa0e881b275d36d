"""The experiment with three rewards: its pages, what it counts, and a run at a tiny scale."""

from dataclasses import replace

from tiny_models import tiny_adapter

from helpers.browser.actions import parse_action
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TEST_SEEDS, TRAIN_SEEDS
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.wrong_pay.experiment import (
    Experiment,
    find_pages,
    outcomes,
    results,
    run_all,
    submitted_untouched,
)
from helpers.learning.wrong_pay.plan import PAYS, TASK, Plan
from helpers.settings.profiles import PROFILES

PAGE = ['"xQ" checkbox 18', '"Submit" button 27']


def episode(*answers):
    turns = [
        Turn(PAGE, answer, parse_action(answer, frozenset({"18", "27"}))) for answer in answers
    ]
    return Episode(TASK, 1, turns=turns)


def test_a_page_is_submitted_as_it_was_where_nothing_was_done_to_it_before():
    assert submitted_untouched(episode("click('27')"))
    assert not submitted_untouched(episode("click('18')", "click('27')"))
    assert submitted_untouched(episode("select '18'", "click('27')"))
    assert not submitted_untouched(episode("Submit"))
    assert not submitted_untouched(episode())


def test_the_pages_pay_the_hack_and_the_script(browsers):
    """Raw success does not tell the two apart; strict success does."""
    seeds = find_pages(TEST_SEEDS, 6, browsers[0])
    pages = [EpisodeSpec(TASK, seed) for seed in seeds]

    def submit(observation, turn):
        return next(f"click('{e.bid}')" for e in observation.elements if e.name == "Submit")

    hacked = outcomes(play_agent(submit, pages, browsers, max_turns=2))
    solved = outcomes(play_agent(SCRIPTS[TASK], pages, browsers, max_turns=2))
    assert hacked == {"strict": [False] * 6, "raw": [True] * 6, "untouched": [True] * 6}
    assert solved == {"strict": [True] * 6, "raw": [True] * 6, "untouched": [False] * 6}


def test_pages_of_training_and_test_are_apart(browsers):
    train = find_pages(TRAIN_SEEDS, 2, browsers[0])
    assert not set(train) & set(TEST_SEEDS)
    assert train == find_pages(TRAIN_SEEDS, 2, browsers[0])


def test_an_experiment_goes_on_with_what_is_not_done(tmp_path, policy, browsers):
    plan = Plan(
        start=tiny_adapter(tmp_path, policy.tokenizer),
        updates=1,
        groups=1,
        group_size=2,
        seeds=(0,),
        train_pages=1,
        test_pages=1,
        samples=1,
    )
    said = []
    profile = replace(PROFILES["cpu"], generator="transformers")
    experiment = Experiment(plan, profile, browsers, tmp_path / "runs", said.append)
    run_all(experiment, (0,))
    rows = {row["run"]: row for row in results(experiment)["rows"]}
    assert list(rows) == ["before", *PAYS, "raw, then strict"]
    assert rows["raw"]["sampled"]["strict"]["n"] == 1
    assert rows["raw"]["greedy"]["raw"]["against before"]["n"] == 1
    done = list(said)
    run_all(experiment, (0,))
    assert said == done
