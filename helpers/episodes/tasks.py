"""The tasks of the course, and the seeds that keep training, validation and test apart.

`TaskSpec` also says how a task is played by default; `how_played` makes a `RolloutConfig` of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.browser.models import list_tasks, no_such_task
from helpers.browser.orders import base_task
from helpers.episodes.config import EpisodeSpec
from helpers.settings.errors import ProfileError
from helpers.settings.names import split_names

# A seed fixes the instance of a task (texts, positions, the answer). The three ranges never meet.
TEST_SEEDS = range(1_000)
VALIDATION_SEEDS = range(1_000, 2_000)
TRAIN_SEEDS = range(10_000, 1_000_000)

# Tasks that are trained on some of their pages only: {task: {"seeds": [...], ...}}.
_TRAIN_PAGES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("train_pages.json").read_text()
)

BUTTONS = ("button", "button-2", "button-3")  # names of `helpers.policy.prompts.EXAMPLES`


@dataclass(frozen=True)
class TaskSpec:
    """What a task is, and how it is played by default."""

    tier: int
    """1: one click; 2: one click with a choice; 3: several turns, most with typing."""
    about: str
    """What is to be done, in a few words."""
    max_turns: int = 1
    max_tokens: int = 12
    """Of one answer."""
    actions: tuple[str, ...] = ("click",)
    """Those that the prompt teaches."""
    examples: tuple[str, ...] = BUTTONS
    """Those that the prompt shows."""
    free_text: bool = False
    """Show text that belongs to no element."""


def _typing(
    about: str, max_turns: int = 3, actions: tuple[str, ...] = ("click", "fill")
) -> TaskSpec:
    """A task of the third tier with fields to fill in, and texts that say with what."""
    return TaskSpec(
        tier=3,
        about=about,
        max_turns=max_turns,
        max_tokens=24,
        actions=actions,
        examples=("button", "field"),
        free_text=True,
    )


# The suite of the course, in three tiers: what the results are about.
TASKS: dict[str, TaskSpec] = {
    "click-test": TaskSpec(1, "press the only button"),
    "click-test-2": TaskSpec(1, "press button ONE of two"),
    "click-dialog": TaskSpec(1, "close the dialog"),
    "focus-text": TaskSpec(1, "focus the only field"),
    "click-button": TaskSpec(2, "press the named button"),
    "click-dialog-2": TaskSpec(2, "press the named button of a dialog"),
    "click-widget": TaskSpec(2, "click a widget of the named kind"),
    "click-tab": TaskSpec(2, "open the numbered tab"),
    "focus-text-2": TaskSpec(2, "focus the field with the given number"),
    "click-button-sequence": TaskSpec(3, "press two buttons in order", 2),
    "click-option": TaskSpec(3, "choose a radio button and submit", 3),
    "enter-text": _typing("type a word and submit"),
    "enter-password": _typing("type a password twice and submit", 4),
    "login-user": _typing("fill in two fields and log in", 4),
}

# Never trained on in a run on the whole suite: what was learned there has to carry over.
UNSEEN: dict[str, TaskSpec] = {
    "click-test-transfer": TaskSpec(2, "press one of two buttons, on pages laid out differently"),
    "unicode-test": TaskSpec(2, "press the button with the given letters of many scripts"),
    "click-collapsible": TaskSpec(3, "open a section and submit", 3),
    "click-tab-2": TaskSpec(3, "find a link behind one of three tabs", 3),
    "enter-text-dynamic": _typing("type a word into a field that moves, and submit"),
}


# All tasks whose way to be played is known. A task of your own gets its line here.
KNOWN: dict[str, TaskSpec] = {
    **TASKS,
    **UNSEEN,
    "book-flight": _typing(
        "book the cheapest or shortest flight", 8, actions=("click", "fill", "press")
    ),
}

_ANY_OTHER = _typing("", 3, actions=("click", "fill", "press", "select_option"))


def task_spec(task: str) -> TaskSpec:
    """How a task is played by default; one that is not in `KNOWN` has three turns."""
    return KNOWN.get(base_task(task), _ANY_OTHER)


def task_names(tasks: str | Sequence[str]) -> tuple[str, ...]:
    """One task's name, or several: as a tuple."""
    return (tasks,) if isinstance(tasks, str) else tuple(tasks)


def read_tasks(text: str) -> tuple[str, ...]:
    """Task names as a command line has them: with commas, each of them once.

    "suite" stands for the tasks of `TASKS`, "unseen" for those of `UNSEEN`. Raises `ProfileError`
    for a name that is no task.
    """
    lists = {"suite": TASKS, "unseen": UNSEEN}
    names: list[str] = []
    for word in split_names(text):
        names.extend(lists.get(word, [word]))
    known = list_tasks()
    for name in names:
        if name not in known:
            raise ProfileError(no_such_task(name, also=lists))
    return tuple(dict.fromkeys(names))


def train_seeds(task: str, pages: str = "chosen") -> Sequence[int]:
    """The seeds that a task is trained on: ``pages`` = all, or those that were chosen.

    All are those of `TRAIN_SEEDS`; chosen are those that ``train_pages.json`` lists, or all where
    it has no list for the task. Two pages of three of click-button have one or two buttons: always
    pressing the first earns 0.6 there, and a group on a page with one button has no signal. The
    list holds the pages with three buttons or more, where that habit earns a third. Tests are
    never filtered. ``tools/make_train_pages.py`` makes the list.
    """
    if pages == "chosen" and base_task(task) in _TRAIN_PAGES:
        return _TRAIN_PAGES[base_task(task)]["seeds"]
    return TRAIN_SEEDS


def specs(task: str, seeds: range, n: int, offset: int = 0) -> list[EpisodeSpec]:
    """The first ``n`` episodes of a task on a range of seeds, from ``offset``.

    Raises ValueError past the range's end.
    """
    if offset + n > len(seeds):
        raise ValueError(
            f"{offset + n} seeds were asked for, but the range {seeds.start} to {seeds.stop - 1} "
            f"has {len(seeds)}."
        )
    return [EpisodeSpec(task, seed) for seed in seeds[offset : offset + n]]
