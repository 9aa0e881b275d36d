"""Training through the other door: the browser as tools of the policy, in text or with pictures.

    python -m scripts.train_tools --policy qwen3-vl-2b --task click-test --observation both

`helpers.learning.tools_trainer` says which policies can; ``--observation`` marks is the screenshot
with the elements' numbers drawn in. What is not an option here is an environment variable, as in
scripts/train.py.
"""

import sys
from typing import Annotated

import typer

from helpers.command_line import run
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
    updates: UpdatesOption = None,
    seed: SeedOption = None,
    observation: Annotated[
        str, typer.Option(help="what is shown: tree, screenshot, both, marks, picture")
    ] = "tree",
    lora: LoraOption = False,
    output: OutputOption = "runs/tools",
) -> None:
    """Train a policy that calls the browser's actions as tools."""
    profile = chosen_profile(policy, task, updates, seed)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.tools_trainer import train_with_tools

    train_with_tools(profile, output, observation, lora)


if __name__ == "__main__":
    sys.exit(run(main))
