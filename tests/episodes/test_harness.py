"""OpenEnv's harness on a real browser: its own loop, ours behind the same interface, and a policy that sees tools only."""

import pytest
from openenv.core.harness import SessionMCPBridge

from benchmarks.doors import HarnessScript, largest_gap, remembered_sessions
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.harness import (
    BrowserSession,
    BrowserSessions,
    ledger_rollout_func,
    stock_rollout_func,
)
from helpers.episodes.ledger import RolloutError, check_rollout
from helpers.episodes.play import play_episodes
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.tasks import TRAIN_SEEDS, rollout_config, specs
from helpers.evaluation.agents import text_match_agent
from helpers.evaluation.evaluate import evaluate_black_box

TASK = "enter-text"
GREEDY = rollout_config(TASK, temperature=0.0)


@pytest.fixture
def script(policy):
    """Makes a generator of an agent, for a harness."""
    watched, sessions = remembered_sessions()
    with watched:
        yield lambda agent: HarnessScript(sessions, policy.tokenizer, agent)


def test_our_adapter_hands_over_what_our_rollout_does(policy, generator, browsers):
    todo = specs(TASK, TRAIN_SEEDS, 3)
    direct = rollout_columns(
        play_episodes(todo, browsers[:1], generator, policy.tokenizer, GREEDY), policy.tokenizer
    )
    through = ledger_rollout_func(browsers[0], policy.tokenizer, GREEDY, generator)(
        [str(spec) for spec in todo], None
    )
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
    assert any(
        0 in mask for mask in through["env_mask"]
    )  # episodes of several turns are among them
    assert largest_gap(policy.model, through) < 1e-3


def test_the_stock_adapter_joins_turns_and_has_no_mask(policy, generator, browsers):
    returned = stock_rollout_func(browsers[0], policy.tokenizer, GREEDY, generator)(
        [str(s) for s in specs(TASK, TRAIN_SEEDS, 2)], None
    )
    with pytest.raises(RolloutError, match="env_mask"):
        check_rollout(returned, 1)
    gap = largest_gap(policy.model, returned)
    assert gap > 0.1  # the same measure as above


def test_the_stock_adapter_is_exact_for_one_turn(policy, generator, browsers):
    config = rollout_config("click-button")
    returned = stock_rollout_func(browsers[0], policy.tokenizer, config, generator)(
        [str(s) for s in specs("click-button", TRAIN_SEEDS, 2)], None
    )
    assert largest_gap(policy.model, returned) < 1e-3


@pytest.mark.parametrize("make", [ledger_rollout_func, stock_rollout_func])
def test_a_solved_episode_is_paid(policy, browsers, script, make):
    rollout = make(browsers[0], policy.tokenizer, GREEDY, script(text_match_agent))
    returned = rollout([str(spec) for spec in specs(TASK, TRAIN_SEEDS, 2)], None)
    assert returned.get("strict_reward", returned.get("env_reward")) == [1.0, 1.0]


def test_a_black_box_is_scored_as_any_policy(policy, browsers, script):
    todo = specs(TASK, TRAIN_SEEDS, 2)
    for agent, success in (
        (text_match_agent, 1.0),
        (lambda seen, turn: "I would rather not.", 0.0),
    ):
        result = evaluate_black_box(
            "script", todo, browsers[0], policy.tokenizer, GREEDY, script(agent)
        )
        assert (result.n, result.success) == (2, success)
    assert result.kinds == {"no_call": 2 * GREEDY.max_turns}


def test_tools_over_json_rpc(policy, browsers):
    session = BrowserSession(
        browsers[0],
        EpisodeSpec("click-button", TRAIN_SEEDS[0]),
        policy.tokenizer,
        rollout_config("click-button", turns={"click-button": 3}),
    )
    bridge = SessionMCPBridge(session)

    def ask(method, **parameters):
        return bridge.handle_request(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        )

    tools = ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["click"] and tools[0]["inputSchema"][
        "required"
    ] == ["bid"]
    assert (
        "no tool 'goto'"
        in ask("tools/call", name="goto", arguments={"url": "file:///etc"})["error"]["message"]
    )
    assert "click takes bid" in ask("tools/call", name="click", arguments={})["error"]["message"]
    unknown = ask("tools/call", name="click", arguments={"bid": "9999"})["result"]
    assert not unknown["done"] and "9999" in unknown["data"]
    right = text_match_agent(session.run.observation, 0)
    done = ask("tools/call", name="click", arguments={"bid": right.split("'")[1]})["result"]
    assert (
        done["done"] and done["metadata"] == {"reward": 1.0} and "1" not in done["data"]
    )  # no reward in the chat
    assert (
        "episode is over"
        in ask("tools/call", name="click", arguments={"bid": "13"})["error"]["message"]
    )


def test_an_episode_that_the_infrastructure_ended_keeps_no_reward(
    policy, browsers, generator, monkeypatch
):
    """The harness wants a number; ours says None beside it, and that is what the trainer's column gets."""
    client = browsers[0]
    seen = client.reset("click-button", TRAIN_SEEDS[0])
    lost = seen.model_copy(
        update={"done": True, "infrastructure_error": "the worker died", "reward": None}
    )
    monkeypatch.setattr(client, "reset", lambda *a, **n: lost)
    spec = str(EpisodeSpec("click-button", TRAIN_SEEDS[0]))
    config = rollout_config("click-button")
    assert ledger_rollout_func(client, policy.tokenizer, config, generator)([spec], None)[
        "strict_reward"
    ] == [None]
    session = BrowserSessions(client, policy.tokenizer, config).create(spec)
    assert session.verify([]).metrics["strict_reward"] is None
    result = evaluate_black_box(
        "lost", [EpisodeSpec.read(spec)], client, policy.tokenizer, config, generator
    )
    assert (result.n, result.failed_infrastructure) == (0, 1)


@pytest.mark.parametrize("make", [ledger_rollout_func, stock_rollout_func])
def test_a_trainer_samples_in_the_harness_and_learns_from_it(tiny_trainer, policy, browsers, make):
    """Without a generator of its own the model step takes the trainer's; both loops fit where a ``rollout_func`` goes."""
    config = rollout_config("click-button")
    rollout = make(browsers[0], policy.tokenizer, config)
    seen = []

    def paid(strict_reward=None, env_reward=None, **_):
        seen.append(strict_reward or env_reward)
        return [
            float(i) for i in range(len(seen[0]))
        ]  # differ, so that there is something to learn

    trainer = tiny_trainer(
        groups=1,
        group_size=2,
        rollout_func=lambda prompts, trainer: rollout(
            [f"click-button#{TRAIN_SEEDS[0]}" for _ in prompts], trainer
        ),
        reward_funcs=[paid],
    )
    before = trainer.model.lm_head.weight.detach().clone()
    trainer.train()
    assert len(seen[0]) == 2
    assert not before.equal(trainer.model.lm_head.weight)
