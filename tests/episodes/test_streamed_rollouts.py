"""Pages that are answered when they are there: real policy, real browser."""

import signal

import pytest
import torch
from logprobs import largest_gap

from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play, play_episodes
from helpers.episodes.players import StreamPlayer, open_stream
from helpers.episodes.tasks import VALIDATION_SEEDS, specs

TASKS = ("enter-text", "click-option")


def play_streamed(pages, clients, generator, tokenizer, config, together):
    """`play_episodes` with a seed, answering each page when it is there or all together."""
    torch.manual_seed(0)
    stream = open_stream(generator, config)
    episodes = play(pages, clients, StreamPlayer(stream, tokenizer, together), config)
    stream.close()
    return episodes


@pytest.fixture(scope="module")
def played(policy, generator, browsers):
    """The same episodes, more than there are browsers, in both ways."""
    pages = [spec for task in TASKS for spec in specs(task, VALIDATION_SEEDS, 2)]
    config = rollout_config(TASKS, max_tokens=8)
    arguments = (pages, browsers[:3], generator, policy.tokenizer, config)
    return play_streamed(*arguments, True), play_streamed(*arguments, False)


def test_the_ledgers_are_those_of_answers_that_wait_for_each_other(played):
    together, one_by_one = played
    assert sum(len(episode.turns) > 1 for episode in one_by_one) >= 2
    for expected, episode in zip(together, one_by_one, strict=True):
        assert (episode.task, episode.seed) == (expected.task, expected.seed)
        assert episode.ledger.ids == expected.ledger.ids
        assert episode.ledger.owner == expected.ledger.owner
        assert episode.ledger.logprobs == pytest.approx(expected.ledger.logprobs, abs=1e-3)
        assert episode.kinds == expected.kinds
        assert (episode.ended, episode.reward) == (expected.ended, expected.reward)


def test_recomputed_logprobs_are_the_sampled_ones(played, policy):
    _, episodes = played
    assert max(largest_gap(policy.model, episode) for episode in episodes) <= 1e-3


def test_members_of_a_group_are_sampled_each_for_itself(policy, generator, browsers):
    torch.manual_seed(0)
    config = rollout_config("click-button", max_tokens=8)
    group = specs("click-button", VALIDATION_SEEDS, 1) * 4
    episodes = play_episodes(group, browsers, generator, policy.tokenizer, config)
    answers = {tuple(turn.answer for turn in episode.turns) for episode in episodes}
    assert len(answers) > 1
    again = play_episodes(group, browsers, generator, policy.tokenizer, config)
    assert [e.ledger.ids for e in again] != [e.ledger.ids for e in episodes]


class Interrupted:
    """A stream in whose ``at``-th step somebody presses Ctrl-C; None: nobody does."""

    def __init__(self, stream, at):
        self.stream = stream
        self.at = at
        self.steps = 0
        self.closed = False

    def add(self, request):
        self.stream.add(request)

    def step(self):
        self.steps += 1
        if self.steps == self.at:
            signal.raise_signal(signal.SIGINT)
        return self.stream.step()

    def close(self):
        self.closed = True
        self.stream.close()


class InterruptedGenerator:
    """A generator whose streams are interrupted."""

    def __init__(self, generator, at):
        self.generator = generator
        self.at = at

    def stream(self, sampling):
        self.opened = Interrupted(self.generator.stream(sampling), self.at)
        return self.opened


def test_after_an_interrupt_the_same_clients_play_on(policy, generator, browsers):
    """It comes while some browsers are at work and other pages are being answered."""
    config = rollout_config("enter-text", max_tokens=8)
    pages = specs("enter-text", VALIDATION_SEEDS, 5)
    few = (pages[:2], browsers, generator, policy.tokenizer, config)
    expected = play_streamed(*few, together=False)
    interrupted = InterruptedGenerator(generator, at=14)
    with pytest.raises(KeyboardInterrupt):
        play_episodes(pages, browsers, interrupted, policy.tokenizer, config)
    assert interrupted.opened.closed
    after = play_streamed(*few, together=False)
    assert [e.ledger.ids for e in after] == [e.ledger.ids for e in expected]
    assert [e.kinds for e in after] == [e.kinds for e in expected]
