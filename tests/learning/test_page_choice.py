"""Dynamic sampling and the curriculum: which pages an update is played on, and nothing else."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOTrainer

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, read_recording
from helpers.episodes.rewards import strict_success, valid_format
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.tasks import train_seeds
from helpers.learning.checkpoints import last_checkpoint
from helpers.learning.configuration import grpo_config
from helpers.learning.page_choice import PageChoice, SuccessRecord, has_signal, paid_by
from helpers.learning.recorder import read_metrics
from helpers.learning.run import build_trainer
from helpers.policy.loading import load_policy
from helpers.settings.profiles import PROFILES, ProfileError
from helpers.settings.run_folder import release_folder

PLAIN = replace(PROFILES["cpu"], groups=4, group_size=2, task="click-button,click-test")
AGAIN = replace(PLAIN, resample=12)
CURRICULUM = replace(PLAIN, curriculum="success")
PAGES = [EpisodeSpec(name, seed) for seed in (1, 2) for name in ("click-button", "click-test")]


class Pages:
    """Plays groups of two whose rewards are given, in the order in which they are played."""

    def __init__(self, rewards):
        self.rewards = iter(rewards)
        self.calls = []

    def __call__(self, pages):
        self.calls.append(list(pages))
        return [
            [Episode(page.task, page.seed, reward=reward) for reward in next(self.rewards)]
            for page in pages
        ]


SIGNAL, FAILED, SOLVED, LOST = (0.0, 1.0), (0.0, 0.0), (1.0, 1.0), (None, None)
OUTCOMES = {"click-test": SOLVED, "click-option": FAILED, "click-button": SIGNAL}


def rewards_of(groups):
    return [tuple(episode.reward for episode in group) for group in groups]


def outcome_of_task(rewards):
    """Plays pages whose groups are paid as their task is in ``rewards``, and counts them."""
    played = []

    def play(pages):
        played.append([page.task for page in pages])
        return [[Episode(p.task, p.seed, reward=r) for r in rewards[p.task]] for p in pages]

    return play, played


# What is played again


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([0.0, 1.0, None], True),
        ([0.0, 0.0], False),
        ([1.0, None], False),
        ([None, None], False),
    ],
)
def test_a_group_has_a_signal_where_two_rewards_differ(rewards, expected):
    assert has_signal(rewards) is expected


def test_silent_groups_are_played_again_on_other_pages_of_their_tasks():
    left_out = []
    choice = PageChoice(AGAIN, on_extra=left_out.append)
    play = Pages([SIGNAL, FAILED, SOLVED, SIGNAL, SIGNAL, FAILED, SIGNAL])
    groups = choice.play(PAGES, play, update=3)
    assert [len(call) for call in play.calls] == [4, 2, 1]
    assert [page.task for page in play.calls[1]] == ["click-test", "click-button"]
    assert [page.task for page in play.calls[2]] == ["click-button"]
    assert rewards_of(groups) == [SIGNAL] * 4
    assert [group[0].task for group in groups] == [page.task for page in PAGES]
    assert rewards_of(left_out) == [FAILED, FAILED, SOLVED]  # as they are given up
    assert choice.played.silent_before == 0.5
    assert choice.played.silent == 0.0
    assert choice.played.extra_episodes == 6


def test_no_more_episodes_are_played_than_the_limit_says():
    choice = PageChoice(replace(AGAIN, resample=7))
    play = Pages([FAILED] * 20)
    groups = choice.play(PAGES, play, update=0)
    assert [len(call) for call in play.calls] == [4, 3]  # 6 of 7 episodes: whole groups
    assert [EpisodeSpec(group[0].task, group[0].seed) for group in groups] == PAGES
    assert choice.played.extra_episodes == 6
    assert choice.played.silent == 1.0


def test_nothing_is_played_again_where_every_group_has_a_signal():
    play = Pages([SIGNAL] * 4)
    choice = PageChoice(AGAIN)
    assert rewards_of(choice.play(PAGES, play, update=0)) == [SIGNAL] * 4
    assert len(play.calls) == 1
    assert choice.played.metrics()["pages/extra_episodes"] == 0


def test_other_pages_are_training_pages_and_differ_by_update_and_attempt():
    choice = PageChoice(replace(AGAIN, task="click-button"))
    play = Pages([FAILED] * 40)
    for update in (0, 1):
        choice.play(PAGES[:1], play, update)
    again = [call[0].seed for call in play.calls if call != PAGES[:1]]
    assert len(again) == 12
    assert len(set(again)) == 12
    assert set(again) <= set(train_seeds("click-button"))


def test_a_signal_is_one_of_the_rewards_that_are_trained_on(policy):
    """Of two failures one may have been an action."""
    group = [Episode("click-test", 1, reward=reward) for reward in (0.0, 0.0, None)]
    assert paid_by([strict_success], policy.tokenizer)(group) == [0.0, 0.0, None]

    def first_only(strict_reward, **_):
        return [0.5, 0.0, None]

    both = paid_by([strict_success, first_only], policy.tokenizer)
    assert both(group) == [0.5, 0.0, None]
    assert paid_by([strict_success, valid_format], policy.tokenizer)(group) == [0.0, 0.0, None]


# The curriculum


def test_a_task_is_as_likely_as_its_groups_have_had_a_signal():
    record = SuccessRecord()
    assert record.chance("new") == 0.5
    for signal in (True, False, True):
        record.add(EpisodeSpec("task", 1), signal)
    # 1, then 0.95 * 1 + 0, then 0.95 * 0.95 + 1 of 1, then 1.95, then 0.95 * 1.95 + 1 groups.
    signals = 0.95 * 0.95 + 1
    groups = 0.95 * 1.95 + 1
    assert record.chance("task") == pytest.approx((signals + 0.5) / (groups + 1))


def test_a_page_with_a_signal_comes_again_once_and_the_oldest_first():
    record = SuccessRecord()
    for seed, signal in ((1, True), (2, False), (3, True), (4, True), (4, False)):
        record.add(EpisodeSpec("task", seed), signal)
    assert [record.take_page("task") for _ in range(3)] == [1, 3, None]


def test_no_page_comes_more_than_twice():
    """Whatever its group earned the second time: what comes often is learned by heart."""
    choice = PageChoice(replace(CURRICULUM, task="click-button", pages="all"))
    visits = Counter()

    def play(pages):
        visits.update(page.seed for page in pages)
        return [
            [Episode(page.task, page.seed, reward=reward) for reward in SIGNAL] for page in pages
        ]

    for update in range(30):
        choice.play(PAGES, play, update)
    assert max(visits.values()) == 2
    assert list(visits.values()).count(2) > 30


def test_what_is_neither_solved_nor_out_of_reach_is_drawn_most():
    """Three tasks: solved, never solved, and solved half of the time."""
    choice = PageChoice(replace(CURRICULUM, task=",".join(OUTCOMES), groups=20))
    play, played = outcome_of_task(OUTCOMES)
    pages = [EpisodeSpec("click-test", i) for i in range(20)]
    for update in range(11):
        choice.play(pages, play, update)
    drawn = Counter(task for tasks in played[1:] for task in tasks)
    assert drawn["click-button"] > 0.75 * drawn.total()
    assert drawn["click-test"] > 0  # a task is never given up
    assert drawn["click-option"] > 0


def test_a_curriculum_plays_no_further_episode():
    play = Pages([FAILED] * 4)
    PageChoice(CURRICULUM).play(PAGES, play, update=0)
    assert [len(call) for call in play.calls] == [4]


def test_a_group_that_the_infrastructure_lost_says_nothing():
    choice = PageChoice(CURRICULUM)
    choice.play(PAGES, Pages([LOST] * 4), update=0)
    assert choice.record.groups == {}


def test_what_a_checkpoint_keeps_is_what_the_next_update_depends_on():
    profile = replace(CURRICULUM, resample=8)
    whole, begun, resumed = (PageChoice(profile) for _ in range(3))
    outcomes = [SIGNAL, FAILED, SOLVED, SIGNAL] * 10
    for choice in (whole, begun):
        choice.play(PAGES, Pages(outcomes), update=0)
    resumed.load(begun.state())
    last = [Pages(outcomes), Pages(outcomes)]
    for choice, play in zip((whole, resumed), last, strict=True):
        choice.play(PAGES, play, update=1)
    assert last[0].calls == last[1].calls
    fresh = Pages(outcomes)
    PageChoice(profile).play(PAGES, fresh, update=1)
    assert fresh.calls != last[0].calls  # the record counts


# Scouting


SCOUTING = replace(CURRICULUM, task=",".join(OUTCOMES), scout=2)


def test_scouts_go_once_to_each_task_and_those_that_say_nothing_are_left_out():
    left_out = []
    choice = PageChoice(SCOUTING, on_extra=left_out.append)
    play, played = outcome_of_task(OUTCOMES)
    groups = choice.play(PAGES, play, update=0)
    assert played[0] == [task for task in OUTCOMES for _ in range(2)]
    assert len({(group[0].task, group[0].seed) for group in left_out}) == 6  # six pages
    assert choice.played.extra_episodes == 12
    assert {group[0].task for group in groups} == {"click-button"}
    assert choice.with_signal() == ["click-button"]
    choice.play(PAGES, play, update=1)
    assert played[1:] == [["click-button"] * 4] * 2
    assert choice.played.extra_episodes == 0


def test_where_no_scout_finds_a_signal_all_tasks_are_drawn():
    play, played = outcome_of_task(dict.fromkeys(OUTCOMES, FAILED))
    choice = PageChoice(SCOUTING)
    for update in range(10):
        choice.play(PAGES, play, update)
    assert choice.with_signal() == []
    assert {task for tasks in played[1:] for task in tasks} == set(OUTCOMES)


def test_a_run_that_goes_on_does_not_scout_again():
    begun, resumed = PageChoice(SCOUTING), PageChoice(SCOUTING)
    begun.play(PAGES, outcome_of_task(OUTCOMES)[0], update=0)
    resumed.load(begun.state())
    play, played = outcome_of_task(OUTCOMES)
    resumed.play(PAGES, play, update=1)
    assert played == [["click-button"] * 4]


def test_scouts_without_a_curriculum_are_refused(policy, tmp_path):
    profile = replace(PLAIN, scout=1)
    with pytest.raises(ProfileError, match="COURSE_CURRICULUM=success"):
        build_trainer(profile, policy, [], tmp_path, progress=False)


# In the trainer, with the real policy on the real page


class Gradients(TrainerCallback):
    """Keeps the gradients of the first and the last layer."""

    def __init__(self):
        self.vector = torch.empty(0)

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        layers = [model.model.layers[0], model.model.layers[-1], model.model.norm]
        weights = [one for layer in layers for one in layer.parameters()]
        self.vector = torch.cat([one.grad.flatten().clone() for one in weights])


REAL = replace(
    PROFILES["cpu"],
    generator="transformers",
    groups=3,
    group_size=2,
    resample=12,
    updates=1,
    warmup=0,
    save_every=1_000,
)


def gradient_of(trainer):
    """The gradient of the trainer's first update."""
    seen = Gradients()
    trainer.add_callback(seen)
    trainer.train()
    return seen.vector


@pytest.mark.slow
def test_the_gradient_is_plain_grpos_on_the_groups_that_are_kept(browsers, tmp_path):
    trainer = build_trainer(REAL, load_policy(), browsers, tmp_path / "dynamic", progress=False)
    dynamic = gradient_of(trainer)
    episodes = trainer.recorder.episodes
    row = trainer.recorder.rows[-1]
    assert row["pages/extra_episodes"] > 0
    assert row["pages/silent"] < row["pages/silent_before"]
    assert row["frac_reward_zero_std"] == pytest.approx(row["pages/silent"])

    policy = load_policy()
    plain = GRPOTrainer(
        model=policy.model.float(),
        processing_class=policy.tokenizer,
        args=grpo_config(replace(REAL, resample=0), tmp_path / "plain"),
        train_dataset=Dataset.from_list([{"prompt": str(i)} for i in range(REAL.groups)]),
        reward_funcs=[strict_success],
        rollout_func=lambda prompts, trainer: rollout_columns(episodes, policy.tokenizer),
    )
    expected = gradient_of(plain)
    assert expected.abs().max() > 1e-4
    assert (dynamic - expected).abs().max() <= 1e-4 * expected.abs().max()


class Killed(TrainerCallback):
    """Stops a run when its second update begins."""

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == 1:
            raise KeyboardInterrupt


EVERYTHING = replace(
    REAL,
    task="click-button,click-test",
    curriculum="success",
    scout=1,
    advantages="turns",
    self_imitation=2,
    groups=2,
    resample=4,
    updates=2,
    save_every=1,
)


def trained(folder):
    """What a run was trained on: update, page and tokens of each episode."""
    return [(u, e.task, e.seed, e.ledger.ids) for u, e in read_recording(folder / "episodes.jsonl")]


@pytest.mark.slow
def test_a_run_goes_on_as_if_it_had_not_been_stopped(browsers, tmp_path):
    def trainer(name):
        return build_trainer(
            EVERYTHING, load_policy(), browsers, tmp_path / name, lora=True, progress=False
        )

    trainer("whole").train()
    stopped = trainer("stopped")
    stopped.add_callback(Killed())
    with pytest.raises(KeyboardInterrupt):
        stopped.train()
    resumed = trainer("stopped")
    resumed.train(resume_from_checkpoint=last_checkpoint(tmp_path / "stopped"))

    assert trained(tmp_path / "stopped") == trained(tmp_path / "whole")
    there, here = read_metrics(tmp_path / "whole"), read_metrics(tmp_path / "stopped")
    assert sum(row["pages/extra_episodes"] for row in there) > 0
    assert there[-1]["replayed"] > 0
    for name in ("update", "reward", "loss", "grad_norm", "replayed", "pages/extra_episodes"):
        assert [row[name] for row in here] == pytest.approx([row[name] for row in there], abs=1e-6)
    for name in ("whole", "stopped"):
        release_folder(tmp_path / name)
