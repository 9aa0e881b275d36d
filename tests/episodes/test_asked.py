"""A policy that is asked by hand answers what it answers in an episode of its own."""

from dataclasses import replace

import pytest

from helpers.episodes.asked import AskedPolicy
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.how_played import kept_how
from helpers.episodes.play import play_episodes
from helpers.policy.generators import TransformersGenerator
from helpers.policy.lora import load_adapter
from helpers.settings.errors import CourseError
from helpers.settings.paths import RECORDINGS

BEST = RECORDINGS / "arms" / "best"
PAGES = [EpisodeSpec("enter-password", 3), EpisodeSpec("login-user", 5)]


@pytest.fixture(scope="module")
def best():
    """The recorded adapter's policy, and how it was taught."""
    taught = kept_how(str(BEST))
    assert taught is not None
    return load_adapter(BEST), replace(taught.config, temperature=0.0)


@pytest.fixture
def asked(best):
    policy, config = best
    generator = TransformersGenerator(policy.model, policy.tokenizer)
    return AskedPolicy(generator, policy.tokenizer, config)


@pytest.mark.slow
def test_who_acts_as_it_says_sees_the_episode_that_it_plays_by_itself(best, asked, browsers):
    policy, config = best
    generator = TransformersGenerator(policy.model, policy.tokenizer)
    alone = play_episodes(PAGES, browsers[:1], generator, policy.tokenizer, config)
    assert [len(episode.turns) > 2 for episode in alone] == [True, True]
    for page, episode in zip(PAGES, alone, strict=True):
        answers = []
        seen = browsers[0].reset(page.task, page.seed)
        while not seen.ended:
            answers.append(asked(seen))
            seen = browsers[0].step(answers[-1])
        assert answers == [turn.answer for turn in episode.turns]
        assert seen.ended == episode.ended


@pytest.mark.slow
def test_asking_twice_changes_nothing_and_a_reset_begins_anew(asked, browsers):
    first = browsers[0].reset("enter-password", 3)
    answer = asked(first)
    assert asked(first) == answer
    second = asked(browsers[0].step(answer))
    begun_again = browsers[0].reset("enter-password", 3)
    assert asked(begun_again) == answer
    assert asked(browsers[0].step(answer)) == second


@pytest.mark.slow
def test_a_conversation_without_room_is_one_sentence(best, browsers):
    policy, config = best
    short = replace(config, max_length=100)
    generator = TransformersGenerator(policy.model, policy.tokenizer)
    asked = AskedPolicy(generator, policy.tokenizer, short)
    with pytest.raises(CourseError, match=r"taught with 100 at most: reset the page"):
        asked(browsers[0].reset("enter-password", 3))
