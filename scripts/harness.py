"""Evaluate a policy as a black box, through OpenEnv's harness.

The policy is a program then that sees messages and tools, and nothing of the trainer; see
`helpers.episodes.harness`.
"""

import sys
from typing import Annotated

import typer

from helpers.browser import start_browser_server
from helpers.command_line import run
from helpers.episodes.how_played import evaluation_config
from helpers.episodes.tasks import TEST_SEEDS, read_tasks, specs
from helpers.evaluation.evaluate import evaluate_black_box
from helpers.evaluation.report import task_report
from helpers.policy.at_hand import with_policy_at_hand
from helpers.policy.choosing import standalone_generator
from helpers.settings.profiles import get_profile
from scripts.options import EpisodesOption, PolicyOption


def main(
    policy: PolicyOption = None,
    task: Annotated[
        str, typer.Option(help="tasks with commas; suite and unseen: the course's own lists")
    ] = "click-button",
    n: EpisodesOption = 50,
) -> None:
    """Evaluate a policy as a black box, through OpenEnv's harness.

    \b
    python -m scripts.harness --policy runs/05/policy --task click-button --n 50
    """
    profile = get_profile()
    tasks = read_tasks(task)
    name = policy or with_policy_at_hand(profile).policy
    tokenizer, generator = standalone_generator(name, profile)
    pages = [spec for each in tasks for spec in specs(each, TEST_SEEDS, n)]
    config = evaluation_config(tasks, tasks, profile)
    with start_browser_server(workers=1) as server, server.client() as client:
        result = evaluate_black_box(name, pages, client, tokenizer, config, generator)
    print(task_report(result))


if __name__ == "__main__":
    sys.exit(run(main))
