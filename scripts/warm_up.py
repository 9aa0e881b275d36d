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
from helpers.settings.profiles import get_profile
from scripts.options import PolicyOption


def main(
    context: typer.Context,
    policy: PolicyOption = None,
    task: Annotated[
        str, typer.Option(help="tasks with commas; suite: the course's own list")
    ] = "suite",
    demos: Annotated[int, typer.Option(help="pages per task")] = 30,
    epochs: Annotated[float, typer.Option(help="how often each episode is learned from")] = 2,
    learning_rate: Annotated[float, typer.Option(help="at its highest")] = 5e-5,
    seed: Annotated[int, typer.Option(help="of the pages and of the training")] = 0,
    output: Annotated[str, typer.Option(help="folder for the policy and the episodes")] = (
        "runs/warm"
    ),
) -> None:
    """Teach a policy what scripts can show, before GRPO starts."""
    profile = get_profile()
    tasks = read_tasks(task)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.warm_up import warm_up
    from helpers.policy.loading import load_policy

    loaded = load_policy(policy or profile.policy, profile.dtype, profile.device)
    folder = Path(output)
    numbers = warm_up(profile, loaded, tasks, folder, demos, epochs, learning_rate, seed)
    result = {"command": shlex.join(["python", "-m", "scripts.warm_up", *context.obj]), **numbers}
    (folder / "warm_up.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(run(main))
