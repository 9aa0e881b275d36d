"""A training run outside a notebook: evaluate, train, evaluate. ``make train`` calls it.

    python -m scripts.train --task click-button --updates 20 --output runs/train
    python -m scripts.train --task suite --policy runs/warm/policy
    python -m scripts.train --task taught --policy runs/one/policy --lora
    accelerate launch --num_processes 2 -m scripts.train --task click-button

The second trains one policy on every task of the suite and tests it on each; the third goes on with
an adapter, on the tasks that its folder says it was taught. The fourth deals the groups out to two
processes, each with browsers of its own. What is not an option here is an environment variable, see
`helpers.settings.profiles`. `helpers.learning.trainer` has the algorithm.
"""

import json
import sys
from typing import Annotated

import typer

from helpers.command_line import run
from helpers.episodes.tasks import read_tasks
from scripts.options import (
    LoraOption,
    OutputOption,
    PolicyOption,
    SeedOption,
    TaskOption,
    UpdatesOption,
    chosen_profile,
)


def main(
    policy: PolicyOption = None,
    task: TaskOption = None,
    test: Annotated[
        str, typer.Option(help="tasks to evaluate on, as --task; default: the same")
    ] = "",
    updates: UpdatesOption = None,
    seed: SeedOption = None,
    lora: LoraOption = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="go on from the last checkpoint in --output, if any"),
    ] = False,
    no_before: Annotated[
        bool, typer.Option("--no-before", help="do not evaluate the policy before training")
    ] = False,
    output: OutputOption = "runs/train",
) -> None:
    """Train a policy on browser tasks with GRPO."""
    profile = chosen_profile(policy, task, updates, seed)
    tests = read_tasks(test) if test else ()
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.run import train

    result = train(profile, output, lora, resume, not no_before, tests)
    if result and result["difference"]:  # of several processes, the first one's
        print(json.dumps(result["difference"]))


if __name__ == "__main__":
    sys.exit(run(main))
