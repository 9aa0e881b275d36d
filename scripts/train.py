"""A training run outside a notebook: evaluate, train, evaluate. ``make train`` calls it.

    python -m scripts.train --task click-button --updates 20 --output runs/train
    python -m scripts.train --task suite --policy runs/warm/policy      every task of the suite in one policy, tested on each
    accelerate launch --num_processes 2 -m scripts.train --task click-button      groups are dealt out, each process has browsers

What is not an option here is an environment variable, see `helpers.settings.profiles`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from helpers.browser import BrowserServerError
from helpers.episodes.tasks import read_tasks
from helpers.learning.run import train
from helpers.policy.generators import GenerationError
from helpers.policy.loading import PolicyError
from helpers.settings.profiles import Profile, ProfileError, get_profile


def chosen_profile(options: argparse.Namespace) -> Profile:
    """The profile of this machine with the command's --policy, --task, --updates and --seed; raises `ProfileError`."""
    chosen = {
        k: getattr(options, k)
        for k in ("policy", "task", "updates", "seed")
        if getattr(options, k) is not None
    }
    profile = replace(get_profile(), **chosen)
    return replace(profile, task=read_tasks(profile.task))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.train", description="Train a policy on browser tasks with GRPO."
    )
    parser.add_argument("--policy", help="a name of helpers.policy.loading, a folder or a Hub id")
    parser.add_argument(
        "--task",
        help="a MiniWoB task, or several separated by commas; suite: the course's own list",
    )
    parser.add_argument(
        "--test", default="", help="tasks to evaluate on, as --task; default: the same"
    )
    parser.add_argument("--updates", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--lora", action="store_true", help="train adapters, not all weights")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint in --output, if any"
    )
    parser.add_argument(
        "--no-before", action="store_true", help="do not evaluate the policy before training"
    )
    parser.add_argument(
        "--output", default="runs/train", help="folder for metrics, checkpoints and the policy"
    )
    options = parser.parse_args(arguments)
    try:
        profile = chosen_profile(options)
        result = train(
            profile,
            options.output,
            options.lora,
            options.resume,
            not options.no_before,
            read_tasks(options.test) if options.test else "",
        )
    except (ProfileError, PolicyError, BrowserServerError, GenerationError) as error:
        print(error, file=sys.stderr)
        return 2
    if result:  # of several processes, the first one's
        print(json.dumps(result["difference"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
