"""A run says what its weights do: how far each update moves them, and in a sentence that they do
not move or that the reward stands still."""

from dataclasses import replace

import pytest
import torch
from one_update import on_a_cpu, tiny, trainer_of

from helpers.learning.diagnosis import (
    APART_WINDOW,
    WINDOW,
    still_reward,
    still_weights,
    success_apart,
)
from helpers.learning.recorder import Recorder, read_metrics
from helpers.learning.steps import StepMeter
from helpers.settings.paths import RECORDINGS
from helpers.settings.profiles import PROFILES


def layers():
    """Two trained matrices and one that is not, large enough that only a sample is looked at."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(700, 700, bias=False) for _ in range(3)])
    model[1].weight.requires_grad_(False)
    return model


def test_the_meter_sees_on_a_sample_what_a_whole_copy_would_show():
    model = layers()
    meter = StepMeter(model)
    meter.before()
    before = [layer.weight.detach().clone() for layer in model]
    with torch.no_grad():
        model[0].weight[:350] += 1e-4 * torch.randn(350, 700)
        model[1].weight += 1.0  # not trained: none of the meter's business
    step = meter.after()
    changes = [model[i].weight - before[i] for i in (0, 2)]
    norm = torch.stack([change.norm() for change in changes]).norm()
    whole = torch.stack([before[i].norm() for i in (0, 2)]).norm()
    assert step.size == pytest.approx((norm / whole).item(), rel=0.05)
    assert step.moved == pytest.approx(0.25, abs=0.02)
    assert meter.after() is None  # nothing was remembered


def test_the_meter_tells_a_rounded_step_from_a_whole_one():
    """The size does so less: the few weights in bf16 that move jump far."""
    shares, sizes = {}, {}
    for dtype in (torch.float32, torch.bfloat16):
        model = layers().to(dtype)
        meter = StepMeter(model)
        meter.before()
        with torch.no_grad():
            for weights in model.parameters():
                weights += 5e-6 * torch.randn_like(weights).sign()
        step = meter.after()
        shares[dtype], sizes[dtype] = step.moved, step.size
    assert shares[torch.float32] > 0.95
    assert shares[torch.bfloat16] < 0.2
    left = {
        what: of[torch.bfloat16] / of[torch.float32]
        for what, of in (("moved", shares), ("size", sizes))
    }
    assert left["size"] > 2 * left["moved"]


# The weights, in a run


def test_a_run_whose_weights_are_kept_in_bf16_says_so_within_five_updates(policy, tmp_path, capsys):
    """With the learning rate that the profiles had, and weights that nobody has cast to fp32."""
    profile = replace(
        on_a_cpu(PROFILES["h100"]), updates=5, warmup=1, learning_rate=5e-6, dtype="float32"
    )
    trainer = trainer_of(profile, tiny(policy.tokenizer, "float32"), policy.tokenizer, tmp_path)
    trainer.model.bfloat16()
    trainer.train()
    said = [line for line in capsys.readouterr().out.splitlines() if "do not move" in line]
    assert len(said) == 1  # once in a run
    assert "kept in bfloat16, where a step of 5e-06 is rounded away" in said[0]
    assert int(said[0].split()[1].rstrip(":")) <= 5


def test_a_run_whose_weights_move_says_nothing_and_records_by_how_much(policy, tmp_path, capsys):
    profile = replace(on_a_cpu(PROFILES["h100"]), updates=5, warmup=1)
    trainer = trainer_of(profile, tiny(policy.tokenizer, "float32"), policy.tokenizer, tmp_path)
    trainer.train()
    assert "do not move" not in capsys.readouterr().out
    rows = read_metrics(tmp_path)
    assert rows[0]["update/moved"] == 0  # the warm-up of the learning rate begins at 0
    assert all(row["update/moved"] > 0.5 for row in rows[1:])
    assert all(row["update/size"] > 1e-6 for row in rows[1:])


def moving(**changes):
    """The row of an update in which all went well."""
    return {
        "reward": 0.5,
        "frac_reward_zero_std": 0.4,
        "valid": 1.0,
        "infrastructure": 0,
        "grad_norm": 1.0,
        "learning_rate": 3e-5,
        "update/size": 3e-4,
        "update/moved": 0.99,
    } | changes


@pytest.mark.parametrize(
    ("changes", "precisions", "words"),
    [
        ({"update/moved": 0.01}, {"bfloat16"}, "bfloat16, where a step of 3e-05 is rounded away"),
        ({"update/moved": 0.0, "learning_rate": 1e-12}, {"float32"}, "raise COURSE_LEARNING_RATE"),
        ({"update/moved": 0, "grad_norm": 0, "reward": 0}, {"float32"}, "make warmup"),
        ({"update/moved": 0, "grad_norm": 0, "reward": 1}, {"float32"}, "take a harder one"),
    ],
)
def test_weights_that_stand_still_are_explained(changes, precisions, words):
    warm_up = moving(**{"learning_rate": 0.0, "update/moved": 0.0})
    rows = [warm_up] + [moving(**changes) for _ in range(4)]
    sentence = still_weights(rows, precisions)
    assert words in sentence
    assert "\n" not in sentence
    assert still_weights(rows[:2], precisions) == ""  # too early to say
    assert still_weights([*rows, moving()], precisions) == ""


def test_rows_of_an_older_run_without_the_columns_are_not_judged():
    rows = [{"reward": 0.5, "learning_rate": 3e-5, "grad_norm": 1.0}] * 10
    assert still_weights(rows) == ""


# The reward


def wobbling(mean, n, **changes):
    """Rows whose reward goes up and down around a mean."""
    return [moving(**{"reward": mean + 0.05 * (-1) ** i} | changes) for i in range(n)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"infrastructure": 2}, "lose episodes"),
        ({"frac_reward_zero_std": 0.9}, "90 % of the groups end alike"),
        ({"valid": 0.2}, "80 % of the answers are no action"),
        ({"sampling/sampling_logp_difference/mean": 0.4}, "COURSE_VLLM_DTYPE=float32"),
        ({"update/size": 1e-6}, "steps are too small (1.0e-06 of the weights)"),
        ({}, "COURSE_GROUPS"),
    ],
)
def test_a_reward_that_stands_still_is_explained(changes, words):
    rows = wobbling(0.4, 2 * WINDOW, **changes)
    sentence = still_reward(rows)
    assert "has risen by no more than its noise in 20 updates (0.40 -> 0.40)" in sentence
    assert words in sentence
    assert still_reward(rows[:-1]) == ""  # only when a window is full


def test_a_reward_that_rises_or_is_high_is_left_alone():
    assert still_reward(wobbling(0.3, WINDOW) + wobbling(0.5, WINDOW)) == ""
    assert still_reward(wobbling(0.93, 2 * WINDOW)) == ""


def test_a_rise_that_has_only_begun_is_left_alone():
    half = WINDOW // 2
    silent = {"frac_reward_zero_std": 0.9}
    before = wobbling(0.4, WINDOW + half, **silent)
    assert still_reward(before + wobbling(0.48, half, **silent)) == ""
    assert "90 % of the groups" in still_reward(before + wobbling(0.41, half, **silent))


@pytest.mark.parametrize(
    "run",
    [f"click-button-{kind}-seed{seed}" for kind in ("full", "lora") for seed in range(3)],
)
def test_the_recorded_runs_that_learned_are_left_alone(run):
    rows = read_metrics(RECORDINGS / run)
    assert len(rows) == 2 * WINDOW
    assert still_reward(rows) == ""


@pytest.mark.parametrize("arm", ["grpo", "own-solved", "self-imitation"])
def test_a_recorded_rise_that_noise_nearly_hides_is_left_alone(arm):
    """From 0.64, 0.68 and 0.67 in updates 11 to 20 to 0.73, 0.76 and 0.74 in the ten after them."""
    rows = read_metrics(RECORDINGS / "arms" / "runs" / f"{arm}-16-seed0")
    assert len(rows) == 3 * WINDOW
    assert still_reward(rows) == ""


def test_the_recorded_run_that_stood_still_is_told_why():
    """It trained on every page: notebook 5 shows that its groups soon agreed."""
    rows = read_metrics(RECORDINGS / "click-button-full-seed0-all-pages-12-groups")
    assert "of the groups end alike" in still_reward(rows)


def test_each_thing_is_said_once(tmp_path, capsys):
    recorder = Recorder(tmp_path, replace(PROFILES["cpu"], updates=40), progress=False)
    for row in wobbling(0.4, 40):
        recorder.rows.append({"update": len(recorder.rows) + 1, **row})
        recorder._say_what_is_wrong()
    assert capsys.readouterr().out.count("no more than its noise") == 1


def two_successes(strict, raw, n=APART_WINDOW):
    return [{"success/strict": strict, "success/raw": raw}] * n


def test_a_page_that_pays_for_what_does_not_solve_its_task_is_told():
    sentence = success_apart(two_successes(0.1, 0.8))
    assert "paid 80 % of the episodes something and 10 % solved their task" in sentence
    assert success_apart(two_successes(0.8, 0.9)) == ""
    assert success_apart(two_successes(0.1, 0.8, APART_WINDOW - 1)) == ""
    assert success_apart(wobbling(0.4, WINDOW)) == ""  # a record from before the columns
