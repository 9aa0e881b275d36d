"""Supervised warm-up before GRPO, on episodes that scripts play. ``make warmup`` calls it.

    python -m scripts.warm_up --task suite --demos 30 --output runs/warm
    COURSE_EXAMPLES=none make train POLICY=runs/warm/policy TASK=suite

The policy learns the format and what scripts can show; its prompt has no worked examples, so it is
trained on without them, too. `helpers.learning.warm_up` says how.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from helpers.command_line import run
from helpers.episodes.tasks import read_tasks
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.files import write_whole
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import hold_folder, release_folder
from scripts.options import EpochsOption, PolicyOption, RateOption


def main(
    context: typer.Context,
    policy: PolicyOption = None,
    task: Annotated[
        str, typer.Option(help="tasks with commas; suite: the course's own list")
    ] = "suite",
    demos: Annotated[int, typer.Option(min=1, help="pages per task")] = 30,
    epochs: EpochsOption = 2,
    learning_rate: RateOption = 5e-5,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="of the pages and of the training")
    ] = 0,
    output: Annotated[str, typer.Option(help="folder for the policy and the episodes")] = (
        "runs/warm"
    ),
) -> None:
    """Teach a policy what scripts can show, before GRPO starts."""
    profile = get_profile()
    if policy is None:
        profile = with_policy_at_hand(profile)
    tasks = read_tasks(task)
    hold_folder(output)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.warm_up import warm_up
    from helpers.policy.loading import load_policy

    loaded = load_policy(policy or profile.policy, "float32", profile.device)
    folder = Path(output)
    numbers = warm_up(profile, loaded, tasks, folder, demos, epochs, learning_rate, seed)
    result = {"command": shlex.join(["python", "-m", "scripts.warm_up", *context.obj]), **numbers}
    write_whole(folder / "warm_up.json", json.dumps(result, indent=1) + "\n")
    release_folder(folder)


if __name__ == "__main__":
    sys.exit(run(main))
