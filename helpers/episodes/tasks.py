"""The tasks of the course and the seeds that keep training, validation and test apart."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from helpers.browser import list_tasks
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.policy.prompts import PromptConfig
from helpers.settings.profiles import Profile, ProfileError

# A seed fixes the instance of a task (texts, positions, the answer). The three ranges never meet.
TEST_SEEDS = range(0, 1_000)


VALIDATION_SEEDS = range(1_000, 2_000)


TRAIN_SEEDS = range(10_000, 1_000_000)


_TRAIN_PAGES = json.loads(Path(__file__).with_name("train_pages.json").read_text())


BUTTONS = ("button", "button-2", "button-3")


@dataclass(frozen=True)
class TaskSpec:
    """How a task is played: ``tier`` 1 one click, 2 one click with a choice, 3 several turns with typing."""

    tier: int
    about: str
    max_turns: int = 1
    max_tokens: int = 12
    actions: tuple[str, ...] = ("click",)
    examples: tuple[str, ...] = BUTTONS
    free_text: bool = False  # show text that belongs to no element


TYPING = {
    "max_tokens": 24,
    "actions": ("click", "fill"),
    "examples": ("button", "field"),
    "free_text": True,
}


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
    "enter-text": TaskSpec(3, "type a word and submit", 3, **TYPING),
    "enter-password": TaskSpec(3, "type a password twice and submit", 4, **TYPING),
    "login-user": TaskSpec(3, "fill in two fields and log in", 4, **TYPING),
}


# Never trained on in a run on the whole suite: what was learned there has to carry over.
UNSEEN: dict[str, TaskSpec] = {
    "click-test-transfer": TaskSpec(2, "press one of two buttons, on pages laid out differently"),
    "unicode-test": TaskSpec(2, "press the button with the given letters of many scripts"),
    "click-collapsible": TaskSpec(3, "open a section and submit", 3),
    "click-tab-2": TaskSpec(3, "find a link behind one of three tabs", 3),
    "enter-text-dynamic": TaskSpec(
        3, "type a word into a field that moves, and submit", 3, **TYPING
    ),
}


KNOWN = {
    **TASKS,
    **UNSEEN,
    "book-flight": TaskSpec(
        3,
        "book the cheapest or shortest flight",
        8,
        24,
        ("click", "fill", "press"),
        ("button", "field"),
        True,
    ),
}


OTHER = TaskSpec(
    3, "", 3, 24, ("click", "fill", "press", "select_option"), ("button", "field"), True
)


def rollout_config(task: str, examples: bool = True, **changes) -> RolloutConfig:
    """The way a task is played by default; ``changes`` are fields of `RolloutConfig`. Tasks of neither list get three turns.

    ``task``: one, or several separated by commas: all of them then read one prompt, the union of what each needs, and keep their
    own number of turns. Without ``examples`` the prompt shows no worked ones: a policy that has learned the format needs none.
    """
    chosen = {name: KNOWN.get(name, OTHER) for name in task.split(",")}
    wanted = list(chosen.values())
    shown = max((s.examples for s in wanted), key=lambda e: "field" in e) if examples else ()
    prompt = PromptConfig(
        actions=max((s.actions for s in wanted), key=len),
        examples=shown,
        free_text=any(s.free_text for s in wanted),
    )
    settings = {
        "max_turns": max(s.max_turns for s in wanted),
        "max_tokens": max(s.max_tokens for s in wanted),
        "prompt": prompt,
        "turns": {name: s.max_turns for name, s in chosen.items()} if len(chosen) > 1 else {},
    }
    return RolloutConfig(**{**settings, **changes})


def train_seeds(task: str, pages: str = "chosen") -> Sequence[int]:
    """The seeds that a task is trained on: those of `TRAIN_SEEDS` (``pages`` = all), or the part of them that
    ``train_pages.json`` lists (chosen).

    Two pages of three of click-button have one or two buttons: always pressing the first earns 0.6 there, and a group on a page
    with one button has no signal. The list holds the pages with three buttons or more, where that habit earns a third. Tests
    are never filtered. ``tools/make_train_pages.py`` makes the list.
    """
    return (
        _TRAIN_PAGES[task]["seeds"] if pages == "chosen" and task in _TRAIN_PAGES else TRAIN_SEEDS
    )


def specs(task: str, seeds: range, n: int, offset: int = 0) -> list[EpisodeSpec]:
    """The first ``n`` episodes of a task on a range of seeds, from ``offset``; raises ValueError past the range's end."""
    if offset + n > len(seeds):
        raise ValueError(
            f"{offset + n} seeds were asked for, but the range {seeds.start} to {seeds.stop - 1} has {len(seeds)}."
        )
    return [EpisodeSpec(task, seed) for seed in seeds[offset : offset + n]]


def episode_config(profile: Profile) -> RolloutConfig:
    """How the profile's episodes are played in training."""
    named = {
        name: value for name in ("max_turns", "max_tokens") if (value := getattr(profile, name))
    }
    return rollout_config(
        profile.task,
        examples=profile.examples == "task",
        temperature=profile.temperature,
        top_k=profile.top_k,
        **named,
        **({"turns": {}} if profile.max_turns else {}),
    )


def read_tasks(text: str) -> str:
    """Task names with commas, where "suite" and "unseen" stand for the lists of `helpers.episodes.tasks`; raises `ProfileError`."""
    lists = {"suite": list(TASKS), "unseen": list(UNSEEN)}
    names = list(
        dict.fromkeys(name for word in text.split(",") for name in lists.get(word, [word]))
    )
    if unknown := [name for name in names if name not in list_tasks()]:
        raise ProfileError(
            f"There is no MiniWoB task {unknown[0]!r}: python -c 'from helpers.browser import list_tasks; "
            "print(list_tasks())' lists them, suite and unseen are the course's own lists."
        )
    return ",".join(names)


def evaluation_config(
    tasks: str, taught: str, profile: Profile, temperature: float = 0.0
) -> RolloutConfig:
    """How a policy is tested on ``tasks``: with the prompt of those it was ``taught``, and each task's own number of turns (or
    the profile's)."""
    trained = episode_config(replace(profile, task=taught))
    turns = {} if profile.max_turns else rollout_config(f"{tasks},{taught}").turns
    return replace(trained, temperature=temperature, top_k=0, turns=turns)
