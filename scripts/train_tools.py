"""The other door into the same task: the browser as tools of `GRPOTrainer` (``environment_factory``), in text or with pictures.

    python -m scripts.train_tools --policy qwen3-vl-2b --task click-test --observation both --output runs/eyes

TRL makes one environment per rollout, offers its public methods to the policy as tools, calls them, and hands what they return
(text, pictures) to the policy and to the training pass. So the policy's template has to know tools (Qwen3, LFM2.5), and pictures
need a processor (Qwen3-VL, LFM2.5-VL). ``--observation``: tree, screenshot, both or marks (the screenshot with the numbers drawn
in). Everything else is a variable of `helpers.settings.profiles`, as in scripts/train.py.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from helpers.browser import BrowserServerError
from helpers.episodes.tools import OBSERVATIONS
from helpers.learning.run import open_browsers
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.policy.loading import PolicyError
from helpers.policy.vision import load_with_processor
from helpers.settings.machine import run_facts
from helpers.settings.profiles import ProfileError
from scripts.train import chosen_profile


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy")
    parser.add_argument("--task")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--observation", default="tree", help=", ".join(OBSERVATIONS))
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--output", default="runs/tools")
    options = parser.parse_args(arguments)
    try:
        profile = chosen_profile(options)
        model, processing_class = load_with_processor(profile.policy, profile)
        begin = time.monotonic()
        with open_browsers(replace(profile, clients=profile.batch)) as clients:
            trainer = build_tools_trainer(
                profile,
                model,
                processing_class,
                clients,
                options.output,
                options.observation,
                options.lora,
            )
            trainer.train()
    except (ProfileError, PolicyError, BrowserServerError) as error:
        print(error, file=sys.stderr)
        return 2
    trainer.save_model(str(Path(options.output) / "policy"))
    rewards = [row["reward"] for row in trainer.recorder.rows]
    result = {
        "profile": asdict(profile),
        "observation": options.observation,
        "lora": options.lora,
        "seconds": round(time.monotonic() - begin, 1),
        "rewards": rewards,
        **run_facts(),
    }
    (Path(options.output) / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
