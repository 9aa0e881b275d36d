"""The loop that plays episodes, and what one answer does through each door; no real browser."""

import signal
import sys
import threading

import pytest
from patience import PATIENCE
from stop_button import Interrupted, on_alarm
from tiny_models import tiny_llama

from helpers.browser import BrowserObservation
from helpers.browser.models import Element
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.harness import BrowserSession
from helpers.episodes.how_played import rollout_config
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play, play_agent, play_episodes
from helpers.episodes.players import ScriptPlayer, StreamPlayer
from helpers.episodes.replay import replay
from helpers.episodes.running import RunningEpisode
from helpers.episodes.tools import browser_tools
from helpers.policy.completions import Completion
from helpers.policy.generators import TransformersGenerator
from helpers.policy.prompts import PromptConfig

THOUGHT = "a line of thought"  # what a prompt asks for


class Page:
    """A client whose page has one button; the episode is solved when it is clicked."""

    def __init__(self):
        self.calls = []

    def observation(self, **fields):
        return BrowserObservation(
            goal="Click Ok.",
            text="",
            axtree_txt="[13] button 'Ok'",
            elements=[Element(bid="13", role="button", name="Ok", box=(1, 2, 3, 4))],
            **{"reward": 0.0, "raw_reward": 0.0, "screenshot": b"page"} | fields,
        )

    def reset(self, task="click-button", seed=0, screenshot=None):
        self.calls.append(f"reset {task} {seed}")
        return self.observation()

    def step(self, action, screenshot=None, observe=True):
        self.calls.append(action)
        if action == "click('13')":
            return self.observation(done=True, reward=1.0, raw_reward=1.0, ended="solved")
        return self.observation()

    def close(self):
        pass


SPEC = EpisodeSpec("click-button", 7)
PROSE = "I would rather not."
ANSWERS = [PROSE, "click('99')", "click('13')"]
REASONS = ["answer with one action", "no element '99'"]


def play_with_agent(client, tokenizer):
    """The answers given by an agent; what it is told, and the episode."""
    told = []

    def agent(observation, turn):
        told.append(observation.error)
        return ANSWERS[turn]

    [episode] = play_agent(agent, [SPEC], [client])
    return told[1:], episode


def play_with_policy(client, tokenizer):
    """The same, sampled by a policy; it is told what stands in its ledger."""

    class Sampler:
        def __init__(self):
            self.answers = iter(ANSWERS)

        def generate(self, prompts, *_):
            ids = tokenizer(next(self.answers))["input_ids"] + [tokenizer.eos_token_id]
            return [Completion(ids, [-0.5] * len(ids)) for _ in prompts]

    config = RolloutConfig(max_turns=3)
    [episode] = play_episodes([SPEC], [client], Sampler(), tokenizer, config)
    text = tokenizer.decode(episode.ledger.ids)
    return text.split("Error: ")[1:], episode


class OneByOne:
    """A stream that gives the answers in their order, and only with the second step."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.answers = iter(ANSWERS)
        self.requests = []
        self.new = True

    def add(self, request):
        self.requests.append(request)
        self.new = True

    def step(self):
        was_new, self.new = self.new, False
        if was_new:
            return []
        ids = [*self.tokenizer(next(self.answers))["input_ids"], self.tokenizer.eos_token_id]
        return [(self.requests.pop(), Completion(ids, [-0.5] * len(ids)))]


def play_with_stream(client, tokenizer):
    """The same, sampled by a policy that answers in a stream."""
    config = RolloutConfig(max_turns=3)
    player = StreamPlayer(OneByOne(tokenizer), tokenizer)
    [episode] = play([SPEC], [client], player, config)
    text = tokenizer.decode(episode.ledger.ids)
    return text.split("Error: ")[1:], episode


def play_with_script(client, tokenizer):
    """The same by a script in a policy's place."""
    player = ScriptPlayer(lambda observation, turn: ANSWERS[turn], tokenizer)
    [episode] = play([SPEC], [client], player, RolloutConfig(max_turns=3))
    text = tokenizer.decode(episode.ledger.ids)
    return text.split("Error: ")[1:], episode


def play_with_harness(client, tokenizer):
    """The same through the session that a harness drives."""
    session = BrowserSession(client, SPEC, tokenizer, RolloutConfig(max_turns=3))
    told = [
        session.call_tool("no_action", {"answer": PROSE}).data,
        session.call_tool("click", {"bid": "99"}).data,
    ]
    session.call_tool("click", {"bid": "13"})
    return told, session.running.episode


def play_with_tools(client, tokenizer):
    """The same through the tools that TRL calls; prose is no call, so that one cannot be given."""
    config = rollout_config("click-button", max_turns=2)
    tools = browser_tools([client], config)()
    tools.reset(str(SPEC))
    told = [tools.click(bid="99")]
    tools.click(bid="13")
    return told, tools.session.episode


@pytest.fixture(scope="module")
def tokenizer(policy):
    return policy.tokenizer


@pytest.mark.parametrize(
    "play_through",
    [
        play_with_agent,
        play_with_policy,
        play_with_stream,
        play_with_script,
        play_with_harness,
        play_with_tools,
    ],
)
def test_an_answer_that_is_no_action_is_never_sent_and_the_reason_is_told(play_through, tokenizer):
    client = Page()
    told, episode = play_through(client, tokenizer)
    assert client.calls == ["reset click-button 7", "click('13')"]
    prose_first = play_through is not play_with_tools
    assert episode.kinds == (["no_call"] if prose_first else []) + ["unknown_bid", "ok"]
    for heard, turn, reason in zip(
        told, episode.turns, REASONS if prose_first else REASONS[1:], strict=False
    ):
        assert reason in heard
        assert turn.error in heard
        assert turn.reward == 0.0
    assert len(told) == len(episode.turns) - 1
    assert (episode.reward, episode.raw_reward, episode.ended) == (1.0, 1.0, "solved")
    assert episode.turns[-1].box == (1, 2, 3, 4)


def test_a_scripts_answers_stand_in_the_ledger_as_a_policys_would(tokenizer):
    _, episode = play_with_script(Page(), tokenizer)
    ledger = episode.ledger
    written = [t for t, who in zip(ledger.ids, ledger.owner, strict=True) if who == POLICY]
    assert tokenizer.decode(written) == "".join(a + tokenizer.eos_token for a in ANSWERS)
    assert set(ledger.logprobs) == {0.0}


class Recorder:
    """A player that always waits, and notes who it was asked about."""

    def __init__(self, answers_together):
        self.answers_together = answers_together
        self.asked = []

    def read(self, running):
        pass

    def answer(self, new):
        self.asked.append([running.episode.seed for running in new])
        return [(running, "noop(1)") for running in new]


def test_one_call_answers_all_that_are_running_and_the_next_takes_a_free_client():
    player = Recorder(answers_together=True)
    config = RolloutConfig(max_turns=1, turns={"long": 2})
    specs = [EpisodeSpec("long" if seed == 0 else "short", seed) for seed in range(5)]
    done = []
    episodes = play(specs, [Page(), Page()], player, config, lambda *at: done.append(at))
    assert player.asked == [[0, 1], [0, 2], [3, 4]]
    assert [(episode.task, episode.seed) for episode in episodes] == [
        (spec.task, spec.seed) for spec in specs
    ]
    assert [len(episode.turns) for episode in episodes] == [2, 1, 1, 1, 1]
    assert all(episode.ended == "turn_limit" for episode in episodes)
    assert done == [(n, 5) for n in range(1, 6)]


class SlowPage(Page):
    """A client that loads its page only when the event has come."""

    def __init__(self, event):
        super().__init__()
        self.event = event
        self.came = False

    def reset(self, *arguments, **options):
        self.came = self.event.wait(PATIENCE)
        return super().reset(*arguments, **options)


def test_an_agent_answers_each_page_when_it_is_there():
    """It would never answer the first page if it waited for the second."""
    answered = threading.Event()
    slow = SlowPage(answered)

    def agent(observation, turn):
        answered.set()
        return "click('13')"

    specs = [EpisodeSpec("click-button", seed) for seed in range(2)]
    episodes = play_agent(agent, specs, [slow, Page()])
    assert slow.came
    assert [episode.solved for episode in episodes] == [True, True]


def test_a_slow_page_does_not_hold_up_the_others(tokenizer):
    """Its page is there when all other episodes have ended: nobody may wait for it before."""
    others_ended = threading.Event()
    slow = SlowPage(others_ended)

    def progress(ended, of):
        if ended == of - 1:
            others_ended.set()

    generator = TransformersGenerator(tiny_llama(tokenizer), tokenizer)
    config = RolloutConfig(max_turns=3, max_tokens=4)
    pages = [EpisodeSpec("click-button", seed) for seed in range(6)]
    episodes = play_episodes(pages, [slow, Page(), Page()], generator, tokenizer, config, progress)
    assert slow.came
    assert [len(episode.turns) for episode in episodes] == [3] * 6
    assert len(slow.calls) == 1


@pytest.mark.parametrize("thoughts", [True, False])
def test_the_action_is_the_last_line_where_thoughts_are_asked_for(thoughts):
    prompt = PromptConfig(thoughts=thoughts)
    running = RunningEpisode.of(SPEC, Page(), RolloutConfig(prompt=prompt))
    running.reset()
    parsed = running.parse("click('99') is not there: \"Ok\" button 13\nclick('13')\n")
    assert parsed.ok == thoughts
    assert running.parse("click('13')").ok


@pytest.mark.parametrize(
    ("task", "thinks"),
    [("click-button", True), ("click-button+text:Go:Stop", True), ("click-test", False)],
)
def test_one_task_thinks_where_another_does_not(tokenizer, task, thinks):
    """What is read and how an answer is read both follow the task, through each door."""
    config = RolloutConfig(thinks=("click-button",))
    session = BrowserSession(Page(), EpisodeSpec(task, 1), tokenizer, config)
    asked = [session.initial_messages()[0]["content"]]
    asked.append(tokenizer.decode(session.running.episode.ledger.ids))
    assert [THOUGHT in text for text in asked] == [thinks] * 2
    assert session.running.parse("\"Ok\" button 13\nclick('13')").ok == thinks


def test_what_a_browser_raises_is_raised():
    class Broken(Page):
        def step(self, *arguments, **options):
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        play([SPEC] * 3, [Broken(), Page()], Recorder(answers_together=True), RolloutConfig())


def interrupted_at(moment, call):
    """Make the call, and interrupt it the ``moment``-th time that Python looks for signals: it does
    as a function begins, and as one of C's ends. Returns whether the call lasted until then."""
    left = moment

    def count(frame, event, _):
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if not left:
                sys.setprofile(None)
                raise Interrupted

    try:
        sys.setprofile(count)
        call()
    except Interrupted:
        pass
    except RuntimeError as error:  # Python's own, from a thread that was about to start
        assert "release unlocked lock" in str(error)
    finally:
        sys.setprofile(None)
    return left <= 0


def test_a_rollout_ends_at_whatever_moment_it_is_interrupted():
    """A lock that an interrupt leaves locked would let it wait for its threads for ever."""

    def give_up(*_):
        raise TimeoutError("the interrupted rollout did not end")

    def rollout():
        signal.alarm(PATIENCE)
        specs = [EpisodeSpec("click-button", seed) for seed in range(3)]
        episodes = play_agent(lambda seen, turn: "click('13')", specs, [Page(), Page()])
        assert [episode.solved for episode in episodes] == [True] * 3

    moment = 1
    with on_alarm(give_up):
        while interrupted_at(moment, rollout):
            moment += 1
    assert moment > 100


def test_episodes_without_a_browser_are_refused():
    assert play([], [], Recorder(answers_together=True), RolloutConfig()) == []
    with pytest.raises(ValueError, match="browser session"):
        play([SPEC], [], Recorder(answers_together=True), RolloutConfig())


def test_a_recording_gets_its_pictures_back(tokenizer):
    _, episode = play_with_agent(Page(), tokenizer)
    recorded = Episode.from_json(episode.to_json())
    assert [turn.screenshot for turn in recorded.turns] == [None] * 3
    client = Page()
    again = replay(recorded, client)
    assert client.calls == ["reset click-button 7", "click('13')"]
    assert [turn.screenshot for turn in recorded.turns] == [b"page"] * 3
    assert recorded.last_screenshot == b"page"
    assert (again.reward, again.kinds) == (recorded.reward, recorded.kinds)
    assert replay(Episode("click-button", 7), client).turns == []
