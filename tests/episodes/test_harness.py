"""OpenEnv's harness on a real browser.

Its own loop, ours behind the same interface, and a policy that sees tools only.
"""

import pytest
from openenv.core.harness import SessionMCPBridge

from benchmarks.door_scripts import HarnessScript, remembered_sessions
from benchmarks.doors import largest_gap
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.harness import (
    BrowserSession,
    BrowserSessions,
    ledger_rollout_func,
    stock_rollout_func,
)
from helpers.episodes.how_played import rollout_config
from helpers.episodes.ledger import RolloutError, check_rollout
from helpers.episodes.play import play_episodes
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.tasks import TRAIN_SEEDS, specs
from helpers.evaluation.agents import text_match_agent
from helpers.evaluation.evaluate import evaluate_black_box

pytestmark = pytest.mark.slow

TASK = "enter-text"
GREEDY = rollout_config(TASK, temperature=0.0)


@pytest.fixture
def script(policy):
    """Makes a generator of an agent, for a harness."""
    watched, sessions = remembered_sessions()
    with watched:
        yield lambda agent: HarnessScript(sessions, policy.tokenizer, agent)


def test_our_adapter_hands_over_what_our_rollout_does(policy, generator, browsers):
    pages = specs(TASK, TRAIN_SEEDS, 2)
    episodes = play_episodes(pages, browsers[:1], generator, policy.tokenizer, GREEDY)
    direct = rollout_columns(episodes, policy.tokenizer)
    rollout = ledger_rollout_func(browsers[0], policy.tokenizer, GREEDY, generator)
    through = rollout([str(spec) for spec in pages], None)
    assert set(through) == set(direct)
    for name in (
        "prompt_ids",
        "completion_ids",
        "env_mask",
        "strict_reward",
        "kinds",
        "ended",
        "task",
        "seed",
    ):
        assert through[name] == direct[name], name
    # Episodes of several turns are among them.
    assert any(0 in mask for mask in through["env_mask"])
    assert largest_gap(policy.model, through) < 1e-3


def test_the_stock_adapter_joins_turns_and_has_no_mask(policy, generator, browsers):
    rollout = stock_rollout_func(browsers[0], policy.tokenizer, GREEDY, generator)
    returned = rollout([str(spec) for spec in specs(TASK, TRAIN_SEEDS, 2)], None)
    with pytest.raises(RolloutError, match="env_mask"):
        check_rollout(returned, 1)
    gap = largest_gap(policy.model, returned)
    assert gap > 0.1  # the same measure as above


def test_the_stock_adapter_is_exact_for_one_turn(policy, generator, browsers):
    config = rollout_config("click-button")
    rollout = stock_rollout_func(browsers[0], policy.tokenizer, config, generator)
    returned = rollout([str(spec) for spec in specs("click-button", TRAIN_SEEDS, 2)], None)
    assert largest_gap(policy.model, returned) < 1e-3


@pytest.mark.parametrize("make", [ledger_rollout_func, stock_rollout_func])
def test_a_solved_episode_is_paid(policy, browsers, script, make):
    rollout = make(browsers[0], policy.tokenizer, GREEDY, script(text_match_agent))
    returned = rollout([str(spec) for spec in specs(TASK, TRAIN_SEEDS, 2)], None)
    assert returned.get("strict_reward", returned.get("env_reward")) == [1.0, 1.0]


def test_a_black_box_is_scored_as_any_policy(policy, browsers, script):
    def unwilling_agent(observation, turn):
        return "I would rather not."

    pages = specs(TASK, TRAIN_SEEDS, 2)
    for agent, success in ((text_match_agent, 1.0), (unwilling_agent, 0.0)):
        result = evaluate_black_box(
            "script", pages, browsers[0], policy.tokenizer, GREEDY, script(agent)
        )
        assert (result.n, result.success) == (2, success)
    assert result.kinds == {"no_call": 2 * GREEDY.max_turns}


def test_tools_over_json_rpc(policy, browsers):
    spec = EpisodeSpec("click-button", TRAIN_SEEDS[0])
    config = rollout_config("click-button", turns={"click-button": 3})
    session = BrowserSession(browsers[0], spec, policy.tokenizer, config)
    bridge = SessionMCPBridge(session)

    def ask(method, **parameters):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        return bridge.handle_request(request)

    def call(name, **arguments):
        return ask("tools/call", name=name, arguments=arguments)

    tools = ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["click"]
    assert tools[0]["inputSchema"]["required"] == ["bid"]
    assert "no tool 'goto'" in call("goto", url="file:///etc")["error"]["message"]
    assert "click takes bid" in call("click")["error"]["message"]
    unknown = call("click", bid="9999")["result"]
    assert not unknown["done"]
    assert "9999" in unknown["data"]
    right = text_match_agent(session.running.observation, 0)
    done = call("click", bid=right.split("'")[1])["result"]
    assert done["done"]
    assert done["metadata"] == {"reward": 1.0}
    assert "1" not in done["data"]  # no reward in the chat
    assert "episode is over" in call("click", bid="13")["error"]["message"]


def test_an_episode_that_the_infrastructure_ended_keeps_no_reward(
    policy, browsers, generator, monkeypatch
):
    """The harness needs a number; ours says None beside it, and the trainer's column gets that."""
    client = browsers[0]
    seen = client.reset("click-button", TRAIN_SEEDS[0])
    lost = seen.model_copy(
        update={"done": True, "infrastructure_error": "the worker died", "reward": None}
    )
    monkeypatch.setattr(client, "reset", lambda *arguments, **options: lost)
    spec = EpisodeSpec("click-button", TRAIN_SEEDS[0])
    config = rollout_config("click-button")
    rollout = ledger_rollout_func(client, policy.tokenizer, config, generator)
    assert rollout([str(spec)], None)["strict_reward"] == [None]
    session = BrowserSessions(client, policy.tokenizer, config).create(str(spec))
    assert session.verify([]).metrics["strict_reward"] is None
    result = evaluate_black_box("lost", [spec], client, policy.tokenizer, config, generator)
    assert (result.n, result.failed_infrastructure) == (0, 1)


@pytest.mark.parametrize("make", [ledger_rollout_func, stock_rollout_func])
def test_a_trainer_samples_in_the_harness_and_learns_from_it(tiny_trainer, policy, browsers, make):
    """Without a generator of its own the model step takes the trainer's.

    Both loops fit where a ``rollout_func`` goes.
    """
    config = rollout_config("click-button")
    rollout = make(browsers[0], policy.tokenizer, config)
    seen = []

    def paid(strict_reward=None, env_reward=None, **_):
        seen.append(strict_reward or env_reward)
        # They differ, so that there is something to learn.
        return [float(i) for i in range(len(seen[0]))]

    def rollout_func(prompts, trainer):
        return rollout([f"click-button#{TRAIN_SEEDS[0]}" for _ in prompts], trainer)

    trainer = tiny_trainer(groups=1, group_size=2, rollout_func=rollout_func, reward_funcs=[paid])
    before = trainer.model.lm_head.weight.detach().clone()
    trainer.train()
    assert len(seen[0]) == 2
    assert not before.equal(trainer.model.lm_head.weight)
