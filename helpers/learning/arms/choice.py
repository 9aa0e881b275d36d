"""Which tasks the arms are about: chosen by a rule, before reinforcement learning has begun."""

from __future__ import annotations

from collections.abc import Mapping

from helpers.learning.arms.needs import Needs
from helpers.learning.arms.plan import Plan
from helpers.settings.errors import ProfileError

TURNS = 2  # from so many on a task is one of several turns


def affordable(needs: Mapping[str, Needs], plan: Plan) -> dict[str, Needs]:
    """The candidates that are short enough, and that their scripts solve reliably enough."""
    return {
        task: need
        for task, need in needs.items()
        if need.episode_tokens <= plan.most_tokens and need.solved >= need.played / 2
    }


def chosen_tasks(
    success: Mapping[str, float], needs: Mapping[str, Needs], plan: Plan
) -> tuple[str, ...]:
    """The rule: sampled success within the plan's limits, tasks of several turns first.

    Within each kind those come first whose success is nearest to the middle, where a group is most
    likely to have a signal; of equals the first in the alphabet. There are no more tasks of one
    turn than of several, unless the plan's fewest could not be reached otherwise. Raises
    `ProfileError` where fewer tasks than that lie within the limits.
    """
    within = [task for task, rate in success.items() if plan.low <= rate <= plan.high]
    middle = (plan.low + plan.high) / 2
    within.sort(key=lambda task: (abs(success[task] - middle), task))
    several = [task for task in within if needs[task].mean_turns >= TURNS][: plan.most]
    single = [task for task in within if needs[task].mean_turns < TURNS]
    room = max(min(len(several) - 1, plan.most - len(several)), plan.fewest - len(several))
    chosen = several + single[: max(0, room)]
    if len(chosen) < plan.fewest:
        raise ProfileError(
            f"Only {len(chosen)} tasks have a success of {plan.low:.0%} to {plan.high:.0%} after "
            f"the warm-up, and the plan needs {plan.fewest}: change its low and high, or fewest."
        )
    return tuple(sorted(chosen))
