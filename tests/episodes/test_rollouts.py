"""The sequence that is trained on is the sequence that was sampled: real policy, real browser."""

import pytest
from logprobs import largest_gap

from helpers.browser import BrowserObservation
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import read_episodes, write_episodes
from helpers.episodes.how_played import rollout_config
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT, Ledger, RolloutError, check_rollout
from helpers.episodes.play import play_episodes
from helpers.episodes.rollout_func import make_rollout_func, rollout_columns
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.policy.completions import Completion
from helpers.policy.prompts import build_messages, observation_text, prompt_ids

TASKS = ("enter-text", "click-option")


class Watched:
    """A generator that also keeps every prompt it was given and every answer."""

    def __init__(self, generator):
        self.generator = generator
        self.calls = []

    def generate(self, prompts, *arguments):
        answers = self.generator.generate(prompts, *arguments)
        for prompt, answer in zip(prompts, answers, strict=True):
            self.calls.append((list(prompt), answer))
        return answers


@pytest.fixture(scope="module")
def played(policy, generator, browsers):
    """Episodes of several turns, and what the generator saw and said."""
    import torch

    torch.manual_seed(0)
    watched = Watched(generator)
    episodes = []
    for task in TASKS:
        pages = specs(task, VALIDATION_SEEDS, 2)
        config = rollout_config(task, max_tokens=12)
        episodes += play_episodes(pages, browsers, watched, policy.tokenizer, config)
    assert sum(len(e.turns) > 1 for e in episodes) >= 2
    return episodes, watched.calls


def test_recomputed_logprobs_are_the_sampled_ones(played, policy):
    episodes, _ = played
    gaps = [largest_gap(policy.model, e) for e in episodes]
    turns = sum(len(e.turns) for e in episodes)
    print(f"largest gap, transformers: {max(gaps):.1e} over {turns} turns")
    assert max(gaps) <= 1e-3


def test_every_prompt_is_the_ledger_so_far(played):
    """Append-only: what was read and answered at each turn stands in the final ledger as it was."""
    episodes, calls = played
    assert len(calls) == sum(len(e.turns) for e in episodes)
    for prompt, answer in calls:
        written = prompt + answer.ids
        at = [e.ledger for e in episodes if e.ledger.ids[: len(written)] == written]
        assert any(
            ledger.owner[len(prompt) : len(written)] == [POLICY] * len(answer.ids)
            and ledger.logprobs[len(prompt) : len(written)] == answer.logprobs
            for ledger in at
        )


def test_the_mask_covers_exactly_the_policys_tokens(played, policy):
    episodes, _ = played
    columns = rollout_columns(episodes, policy.tokenizer)
    for i, episode in enumerate(episodes):
        ledger = episode.ledger
        tokens = list(zip(columns["completion_ids"][i], columns["env_mask"][i], strict=True))
        said = [token for token, by_policy in tokens if by_policy]
        assert said == [t for t, who in zip(ledger.ids, ledger.owner, strict=True) if who == POLICY]
        assert sum(columns["env_mask"][i]) == sum(lp != 0.0 for lp in columns["logprobs"][i])
        assert (
            columns["prompt_ids"][i] + columns["completion_ids"][i]
            == ledger.ids[: ledger.prompt_length + ledger.completion_length]
        )
        rest = policy.tokenizer.decode([token for token, by_policy in tokens if not by_policy])
        assert len(episode.turns) == 1 or "<|im_start|>user" in rest
        assert set(ledger.owner[: ledger.prompt_length]) == {PROMPT}


def test_the_policy_is_told_why_an_answer_was_no_action(played, policy):
    episodes, _ = played
    told = 0
    for episode in episodes:
        text = policy.tokenizer.decode(episode.ledger.ids)
        for turn in episode.turns[:-1]:
            if not turn.parsed.ok:
                assert f"Error: {turn.parsed.reason[:200]}" in text
                told += 1
    assert told


@pytest.mark.parametrize("mixed", [False, True], ids=["same length", "mixed lengths"])
def test_a_batch_gives_the_tokens_that_one_at_a_time_gives(policy, generator, played, mixed):
    episodes, calls = played
    prompts = [prompt for prompt, _ in calls][:4]
    prompts = [*prompts, prompts[0]] if mixed else [prompts[0]] * 3
    assert (len(set(map(len, prompts))) > 1) == mixed
    together = generator.generate(prompts, 8, 0.0)
    for prompt, answer in zip(prompts, together, strict=True):
        alone = generator.generate([prompt], 8, 0.0)[0]
        assert answer.ids == alone.ids
        assert answer.logprobs == pytest.approx(alone.logprobs, abs=1e-3)


def test_a_recording_reads_back(played, tmp_path):
    episodes, _ = played
    write_episodes(tmp_path / "e.jsonl", episodes)
    again = read_episodes(tmp_path / "e.jsonl")
    assert [e.ledger for e in again] == [e.ledger for e in episodes]
    assert [e.kinds for e in again] == [e.kinds for e in episodes]


class TrainerStub:
    """The three things that `rollout_func` reads of a trainer."""

    use_vllm = False
    num_generations = 2

    def __init__(self, model):
        self.model = model
        self.accelerator = self

    def unwrap_model(self, model):
        return model


def test_rollout_func_returns_groups_that_share_task_and_seed(policy, browsers):
    seen = []
    config = rollout_config("click-button", max_tokens=8)
    rollout_func = make_rollout_func(browsers, policy.tokenizer, config, seen.append)
    prompts = [str(spec) for spec in specs("click-button", VALIDATION_SEEDS, 3) for _ in range(2)]
    columns = rollout_func(prompts, TrainerStub(policy.model))
    assert {len(column) for column in columns.values()} == {6}
    assert len(seen[0]) == 6
    for i in (0, 2, 4):
        assert columns["seed"][i] == columns["seed"][i + 1]
        assert columns["prompt_ids"][i] == columns["prompt_ids"][i + 1]
    assert len(set(columns["seed"])) == 3
    assert EpisodeSpec.read(prompts[0]) == EpisodeSpec("click-button", VALIDATION_SEEDS[0])


class LostBrowser:
    """A client whose browser dies: at once, or when the policy acts."""

    def __init__(self, at):
        self.at = at

    def _lost(self):
        return BrowserObservation(
            done=True, reward=None, ended="infrastructure_error", infrastructure_error="it died"
        )

    def reset(self, task, seed, screenshot=None):
        if self.at == "reset":
            return self._lost()
        return BrowserObservation(goal="Click.", axtree_txt="[13] button 'Ok'", text="", reward=0.0)

    def step(self, action, screenshot=None, observe=True):
        return self._lost()


class Says:
    """Answers click('13'), always."""

    def __init__(self, tokenizer):
        self.ids = [*tokenizer("click('13')")["input_ids"], tokenizer.eos_token_id]

    def generate(self, prompts, *_):
        return [Completion(list(self.ids), [-0.5] * len(self.ids)) for _ in prompts]


@pytest.mark.parametrize("at", ["reset", "step"])
def test_a_lost_browser_is_no_reward_and_still_a_sample(policy, at):
    config = rollout_config("click-button")
    pages = [EpisodeSpec("click-button", 1)] * 2
    generator = Says(policy.tokenizer)
    episodes = play_episodes(pages, [LostBrowser(at)], generator, policy.tokenizer, config)
    for episode in episodes:
        assert episode.reward is None
        assert episode.ended == "infrastructure_error"
        assert episode.infrastructure_error
    columns = rollout_columns(episodes, policy.tokenizer)
    check_rollout(columns, 2)
    assert columns["strict_reward"] == [None, None]
    assert all(columns["completion_ids"])


def good():
    return {
        "prompt_ids": [[1, 2]] * 4,
        "completion_ids": [[3, 4, 5]] * 4,
        "env_mask": [[1, 0, 1]] * 4,
        "logprobs": [[-0.5, 0.0, -0.1]] * 4,
        "task": ["a"] * 4,
        "seed": [1, 1, 2, 2],
    }


def changed(key, value, sample=1):
    rollout = good()
    rollout[key] = [value if i == sample else v for i, v in enumerate(rollout[key])]
    return rollout


@pytest.mark.parametrize(
    ("rollout", "words"),
    [
        (good() | {"seed": [1, 1]}, "Every column needs one entry per sample"),
        (
            {key: column[:3] for key, column in good().items()},
            "3 samples cannot be split into groups of 2",
        ),
        ({key: [] for key in good()}, "0 samples"),
        (changed("completion_ids", []), "Sample 1: its prompt or its completion is empty"),
        (changed("prompt_ids", []), "Sample 1: its prompt or its completion is empty"),
        (
            changed("logprobs", [-0.5]),
            "Sample 1: 3 tokens, 3 mask entries and 1 logprobs do not match",
        ),
        (changed("env_mask", [1, 1]), "do not match"),
        (changed("env_mask", [0, 1, 1]), "must begin and end with a token of the policy"),
        (changed("env_mask", [1, 1, 0]), "must begin and end with a token of the policy"),
        (changed("env_mask", [1, 2, 1]), "must begin and end with a token of the policy"),
        (changed("logprobs", [-0.5, 0.0, 0.7]), "logprob 0.7"),
        (changed("logprobs", [-0.5, 0.0, float("nan")]), "logprob nan"),
        (changed("logprobs", [float("-inf"), 0.0, -0.1]), "logprob -inf"),
        (changed("seed", 7), "Samples 0 to 1 form a group but differ in task or seed"),
        (changed("task", "b", 3), "Samples 2 to 3 form a group but differ in task or seed"),
    ],
)
def test_each_breach_of_the_contract_is_named(rollout, words):
    check_rollout(good(), 2)
    with pytest.raises(RolloutError, match=words):
        check_rollout(rollout, 2)


def test_a_missing_column_is_a_breach_too():
    rollout = good()
    del rollout["env_mask"]
    with pytest.raises(RolloutError, match="env_mask"):
        check_rollout(rollout, 2)


def test_a_ledger_refuses_a_policy_token_without_a_logprob():
    ledger = Ledger()
    ledger.append([1, 2], PROMPT)
    for arguments in (([3], POLICY), ([3], POLICY, [-0.1, -0.2]), ([3], ENVIRONMENT, [-0.1])):
        with pytest.raises(RolloutError, match="one logprob each"):
            ledger.append(*arguments)
    ledger.append([3], POLICY, [-0.1])
    ledger.append([4], ENVIRONMENT)
    assert ledger.ids == [1, 2, 3, 4]
    assert ledger.owner == [0, 0, 1, 2]
    assert (ledger.prompt_length, ledger.completion_length) == (2, 1)


def test_a_prompt_that_leaves_no_room_ends_the_episode(policy, generator, browsers):
    config = rollout_config("click-button", max_length=60)
    pages = [EpisodeSpec("click-button", 1)]
    [episode] = play_episodes(pages, browsers, generator, policy.tokenizer, config)
    assert episode.ended == "length_limit"
    assert not episode.turns
    check_rollout(rollout_columns([episode], policy.tokenizer), 1)


def test_the_prompt_is_the_encoded_conversation(policy, browsers):
    seen = browsers[0].reset("click-button", 3)
    config = rollout_config("click-button").prompt
    ids = prompt_ids(policy.tokenizer, build_messages(seen, config))
    assert policy.tokenizer.decode(ids).endswith("<|im_start|>assistant\n")
    assert observation_text(seen, config) in policy.tokenizer.decode(ids)
