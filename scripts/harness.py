"""OpenEnv's harness as a door into the same task: a session offers the browser's actions as tools, a harness plays the episode.

    python -m scripts.harness --policy runs/05/policy --task click-button --n 50

The command is a black-box evaluation: the policy is a program that sees messages and tools, and nothing of the trainer. With a
trainer, `stock_rollout_func` is OpenEnv's own loop, and `ledger_rollout_func` ours behind the same interface: one sequence per
episode that only grows, and a mask.
"""

import argparse
import sys
from collections.abc import Sequence

from helpers.browser import BrowserServerError, start_browser_server
from helpers.episodes.tasks import TEST_SEEDS, evaluation_config, read_tasks, specs
from helpers.evaluation.evaluate import evaluate_black_box
from helpers.policy.choosing import standalone_generator
from helpers.policy.generators import GenerationError
from helpers.policy.loading import PolicyError
from helpers.settings.profiles import ProfileError, get_profile
from scripts.evaluate import show


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", help="a name of helpers.policy.loading, a folder or a Hub id")
    parser.add_argument("--task", default="click-button")
    parser.add_argument("--n", type=int, default=50, help="episodes per task")
    options = parser.parse_args(arguments)
    try:
        profile, tasks = get_profile(), read_tasks(options.task)
        name = options.policy or profile.policy
        tokenizer, generator = standalone_generator(name, profile)
        todo = [spec for task in tasks.split(",") for spec in specs(task, TEST_SEEDS, options.n)]
        with start_browser_server(workers=1) as server, server.client() as client:
            show(
                evaluate_black_box(
                    name,
                    todo,
                    client,
                    tokenizer,
                    evaluation_config(tasks, tasks, profile),
                    generator,
                )
            )
    except (ProfileError, PolicyError, BrowserServerError, GenerationError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
