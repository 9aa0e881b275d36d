"""What the metrics of a run say is wrong with it, in a sentence, while it can still be stopped.

Each function takes the rows of ``metrics.csv`` so far and returns a sentence, "" where there is
nothing to say.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence

from helpers.settings.language import say

Row = Mapping[str, float]

STEPS = 3  # updates at a learning rate above 0 that are looked at before the weights are judged
FEW_MOVED = 0.2  # share of the weights; fp32 moves nearly all, bf16 at 1e-4 16 % of them
WINDOW = 10  # updates whose mean reward is held against that of as many before them
SOLVED = 0.9  # from this mean reward on there is little left to learn
SILENT = 0.8  # share of groups that ended alike
SMALL_STEP = 2e-5  # of the weights' norm
APART = 0.3  # of the episodes: as many more are paid something than are solved
APART_WINDOW = 5  # updates that this is a mean of


def still_weights(rows: Sequence[Row], precisions: Collection[str] = ("float32",)) -> str:
    """Says that the weights do not move, at the latest after five updates.

    ``precisions``: those in which the trained weights are kept. The first updates count only once
    the learning rate, which is warmed up from 0, has left it.
    """
    steps = [row for row in rows if row.get("learning_rate", 0) > 0 and "update/moved" in row]
    recent = steps[-STEPS:]
    if len(recent) < STEPS:
        return ""
    moved = max(row["update/moved"] for row in recent)
    if moved >= FEW_MOVED:
        return ""
    if not any(row.get("grad_norm", 0) for row in recent):
        why = _why_no_gradient(recent)
    else:
        why = _why_no_step(recent, precisions)
    return say(
        "The weights do not move: the last {updates} updates changed at most {share:.1f} % of "
        "them, because {why}.",
        updates=STEPS,
        share=100 * moved,
        why=why,
    )


def _why_no_gradient(rows: Sequence[Row]) -> str:
    """Every group was silent; of what kind they were decides what helps."""
    reward = statistics.mean(row["reward"] for row in rows)
    return say(
        "every group ended alike (mean reward {reward:.2f}) and has no gradient: {help}",
        reward=reward,
        help=_help(reward),
    )


def _why_no_step(rows: Sequence[Row], precisions: Collection[str]) -> str:
    """There was a gradient, and what the optimiser made of it was rounded away."""
    rate = rows[-1]["learning_rate"]
    coarse = sorted(set(precisions) - {"float32"})
    if coarse:
        return say(
            "they are kept in {precisions}, where a step of {rate:.2g} is rounded away: "
            "train weights in float32",
            precisions=say(" and ").join(coarse),
            rate=rate,
        )
    return say(
        "a step of {rate:.2g} is too small even for float32: raise COURSE_LEARNING_RATE", rate=rate
    )


def still_reward(rows: Sequence[Row]) -> str:
    """Says that the reward has not risen lately, and what in the metrics may be the reason.

    The last `WINDOW` updates are held against those before them. A rise counts from one standard
    error on: what is more likely a rise than not is no reason to stop a run. Where most groups are
    silent, which is a reason by itself, it counts from two. So does a rise that has only begun, in
    the last half of the window. Where the reward is high already, nothing is missed.
    """
    if len(rows) < 2 * WINDOW or len(rows) % WINDOW:
        return ""
    earlier = [row["reward"] for row in rows[-2 * WINDOW : -WINDOW]]
    recent = rows[-WINDOW:]
    later = [row["reward"] for row in recent]
    mean = statistics.mean(later)
    errors = 2 if _mean(recent, "frac_reward_zero_std") >= SILENT else 1
    has_risen = _rises(earlier, later, errors) or _rises(earlier, later[WINDOW // 2 :], 2)
    if mean >= SOLVED or has_risen:
        return ""
    return say(
        "The reward has risen by no more than its noise in {updates} updates "
        "({earlier:.2f} -> {later:.2f}). Perhaps {why}.",
        updates=2 * WINDOW,
        earlier=statistics.mean(earlier),
        later=mean,
        why=_why_no_rise(recent),
    )


def _rises(earlier: Sequence[float], later: Sequence[float], errors: float) -> bool:
    """Whether the mean rises by more than so many standard errors of the difference."""
    parts = (statistics.variance(part) / len(part) for part in (earlier, later))
    rise = statistics.mean(later) - statistics.mean(earlier)
    return rise > errors * sum(parts) ** 0.5


def success_apart(rows: Sequence[Row]) -> str:
    """Says that episodes are paid something by the page which do not solve their task.

    A policy that is paid for that learns it, and its reward looks healthy: only the two kinds of
    success beside each other show it.
    """
    recent = [row for row in rows if "success/raw" in row][-APART_WINDOW:]
    strict, raw = _mean(recent, "success/strict"), _mean(recent, "success/raw")
    if len(recent) < APART_WINDOW or raw - strict < APART:
        return ""
    return say(
        "In the last {updates} updates the page paid {raw:.0f} % of the episodes something and "
        "{strict:.0f} % solved their task: look at what the others did (episodes.jsonl), and "
        "train on strict success.",
        updates=APART_WINDOW,
        raw=100 * raw,
        strict=100 * strict,
    )


def _why_no_rise(rows: Sequence[Row]) -> str:
    """The most telling of the reasons that metrics can show."""
    reward, silent = _mean(rows, "reward"), _mean(rows, "frac_reward_zero_std")
    if _mean(rows, "infrastructure") >= 1:
        return say("the browsers lose episodes: look at the column infrastructure of metrics.csv")
    if silent >= SILENT:
        return say(
            "{share:.0f} % of the groups end alike and teach nothing: {help}",
            share=100 * silent,
            help=_help(reward),
        )
    no_action = 1 - _mean(rows, "valid", 1.0)
    if no_action > 0.5:
        return say(
            "{share:.0f} % of the answers are no action: show the format first (make warmup, or "
            "COURSE_EXAMPLES=task)",
            share=100 * no_action,
        )
    if _mean(rows, "sampling/sampling_logp_difference/mean") > 0.1:
        return say(
            "what is sampled is too far from what is trained (see logprob_gap/max): set "
            "COURSE_VLLM_DTYPE=float32"
        )
    size = _mean(rows, "update/size", 1.0)
    if size < SMALL_STEP:
        return say(
            "the steps are too small ({size:.1e} of the weights): raise COURSE_LEARNING_RATE",
            size=size,
        )
    return say(
        "the steps are too coarse or too few for what the groups show: another "
        "COURSE_LEARNING_RATE, more COURSE_GROUPS, or an easier task"
    )


def _help(reward: float) -> str:
    """What makes groups differ again, by the reward at which they agree."""
    if reward < 0.1:
        return say("the task is too hard yet, so warm up first (make warmup) or take an easier one")
    if reward > SOLVED:
        return say("the task is solved, so take a harder one")
    return say(
        "each page is always solved or never, so take pages that differ (COURSE_PAGES=chosen), a "
        "larger COURSE_GROUP_SIZE or COURSE_ENTROPY=0.01"
    )


def _mean(rows: Sequence[Row], name: str, otherwise: float = 0.0) -> float:
    """The mean of a column; ``otherwise`` where no row has it."""
    values = [row[name] for row in rows if name in row]
    return statistics.mean(values) if values else otherwise
