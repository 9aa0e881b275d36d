"""Practice: GRPO. A policy with eyes practises on training pages and is paid by the pages.

What it has learned of questions and answers it now does, one click for each page. TRL plays and
trains (`helpers.learning.tools_trainer`), with the pictures in the training pass.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from helpers.learning.checkpoints import saving
from helpers.learning.eyes.played import play_tasks
from helpers.learning.resuming import prepare_folder
from helpers.learning.run import open_browsers
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.policy.eyes import policy_with_eyes
from helpers.settings.files import new_folder
from helpers.settings.profiles import with_options

if TYPE_CHECKING:
    from transformers import LlavaForConditionalGeneration, LlavaProcessor

    from helpers.settings.profiles import Profile

ADAPTER = "policy"  # what practice adds to the eyes, in the folder of its run
SETTINGS: dict[str, Any] = {
    "policy": "smollm2-135m",
    "task": "identify-shape,count-sides",
    "generator": "transformers",
    "pages": "all",
    "examples": "none",
    "groups": 12,
    "group_size": 4,
    "updates": 40,
    "lora_rank": 8,
    "lora_learning_rate": 3e-4,
    "clients": 48,
}


def practice_profile(profile: Profile, **chosen: Any) -> Profile:
    """The machine's profile with the settings of this lesson, and those that were ``chosen``: None
    chooses nothing."""
    return with_options(replace(profile, **SETTINGS), **chosen)


def practise(
    profile: Profile, eyes: Path, folder: Path, play: int, resume: bool = False
) -> dict[str, Any]:
    """Practise with the ``eyes`` of a folder, into ``folder``; returns what is to be said of it.

    ``play``: test pages of each task that are played before and after, greedily.
    """
    checkpoint = prepare_folder(folder, profile, lora=True, resume=resume)
    model, processor = policy_with_eyes(eyes)
    result: dict[str, Any] = {"profile": asdict(profile)}
    if play:
        result["before"] = play_tasks(model, processor, profile.tasks, play, blind=False)
    begin = time.monotonic()
    with open_browsers(replace(profile, clients=profile.batch)) as clients:
        trainer = build_tools_trainer(
            profile, cast(Any, model), processor, clients, folder, "picture", lora=True
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        with new_folder(folder / ADAPTER) as policy, saving(folder):
            trainer.save_model(str(policy))
    result["seconds"] = round(time.monotonic() - begin)
    result["rewards"] = [row["reward"] for row in trainer.recorder.rows]
    if play:
        practised, processor = practised_policy(eyes, folder / ADAPTER)
        result["after"] = play_tasks(practised, processor, profile.tasks, play, blind=False)
    return result


def beside(before: dict[str, Any], runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was played before practice and after each of the ``runs``, for `show_played`."""
    return {
        task: {
            "before": played["seeing"],
            **{name: after[task]["seeing"] for name, after in runs.items()},
        }
        for task, played in before.items()
    }


def practised_policy(
    eyes: Path | str, adapter: Path | str
) -> tuple[LlavaForConditionalGeneration, LlavaProcessor]:
    """The policy with eyes and what practice has added to them, merged."""
    from peft import PeftModel

    model, processor = policy_with_eyes(eyes)
    adapted = PeftModel.from_pretrained(cast(Any, model), str(adapter))
    return cast(Any, adapted).merge_and_unload(), processor
