"""A training run on the real browser whose answers come from a script.

So one process and several see the same batch. The test of several processes starts it:
``python -m tests.learning.scripted_run FOLDER POLICY``.
"""

import json
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil

import helpers.episodes.rollout_func
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.learning.run import train
from helpers.settings.profiles import get_profile


class ButtonScript:
    """The n-th time that it meets a page it clicks the page's n-th button: the members of a group
    differ, and always alike."""

    def __init__(self):
        self.met = Counter()
        self.pages = []

    def __call__(self, observation, turn):
        page = (observation.task, observation.seed)
        buttons = [e.bid for e in observation.elements if e.role == "button"]
        self.met[page] += 1
        self.pages.append(page)
        return f"click('{buttons[(self.met[page] - 1) % len(buttons)]}')"


def let_play(script):
    """Put the script in the policy's place, in the rollouts of the training."""

    def play_script(specs, clients, generator, tokenizer, config):
        return play(specs, clients, ScriptPlayer(script, tokenizer), config)

    helpers.episodes.rollout_func.play_episodes = play_script


def main(folder: Path, policy: str) -> None:
    script = ButtonScript()
    let_play(script)
    profile = replace(
        get_profile(),
        policy=policy,
        generator="transformers",
        dtype="float32",
        groups=2,
        group_size=4,
        clients=4,
        updates=2,
        learning_rate=1e-3,
        warmup=0,
        eval_episodes=1,
        workers=2,
    )
    train(profile, folder, before=False)
    children = [process.pid for process in psutil.Process().children(recursive=True)]
    record = {"pages": script.pages, "children": children}
    rank = os.environ.get("RANK", "0")
    (folder / f"process-{rank}.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
