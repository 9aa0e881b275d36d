"""Questions about a page and the click that answers each, worked out from what is drawn.

What is asked is what the tasks ask for, in their words; of a page that asks for one thing all else
is asked, too. A place is told as an action tells it, in pixels of stock's picture.
"""

import random
import re
from typing import NamedTuple

from helpers.browser.actions import format_action
from helpers.browser.options import SCALE
from helpers.browser.sheets import Drawn
from helpers.learning.eyes.pages import KeptPages, kind_of, size_of, squares_of

# Whose questions are known here.
TASKS = ("click-color", "identify-shape", "click-shape", "count-sides")
NAMED_BY_A_BUTTON = ("identify-shape", "count-sides")  # what the page draws first
# What identify-shape writes on its buttons.
BUTTONS = {
    "rectangle": "Rectangle",
    "circle": "Circle",
    "triangle": "Triangle",
    "letter": "Letter",
    "digit": "Number",
}
SHAPES = ("circle", "rectangle", "triangle")


class Question(NamedTuple):
    """A goal, and what may be clicked for it: the first is what is taught."""

    goal: str
    answers: list[Drawn]
    shown: Drawn | None = None
    """What has to be looked at, where that is not the first answer."""

    @property
    def action(self) -> str:
        """The click on the middle of the first answer."""
        x, y = self.answers[0].middle
        return format_action("mouse_click", round(x * SCALE), round(y * SCALE))

    @property
    def look_at(self) -> list[int]:
        """The squares that tell the answer."""
        return squares_of(self.shown or self.answers[0])


def own_question(pages: KeptPages, n: int) -> Question | None:
    """What page ``n`` itself asks for; None where nothing that is drawn answers it."""
    things = [thing for thing in pages.drawn[n] if kind_of(thing)]
    if pages.task in NAMED_BY_A_BUTTON:
        return _which_button(things, pages.goals[n])
    return answered(pages.task, pages.goals[n], things)


def questions(pages: KeptPages, n: int, most: int, draw: random.Random) -> list[Question]:
    """At most ``most`` questions about page ``n``, in an order that ``draw`` fixes; none twice."""
    things = [thing for thing in pages.drawn[n] if kind_of(thing)]
    if pages.task in NAMED_BY_A_BUTTON:
        return [_which_button(things, pages.goals[n])]
    goals = [_goal_for(pages.task, thing, draw) for thing in things]
    chosen = draw.sample(sorted(set(goals)), min(most, len(set(goals))))
    return [question for goal in chosen if (question := answered(pages.task, goal, things))]


def _goal_for(task: str, thing: Drawn, draw: random.Random) -> str:
    """A goal that this is an answer to."""
    if task == "click-color":
        return f"Click on the {thing.colour} colored box."
    kind = kind_of(thing)
    words = [size_of(thing)] if draw.random() < 0.5 else []
    words += [thing.colour] if draw.random() < 0.5 else []
    if draw.random() < 0.5 or not words:
        exact = kind if kind in SHAPES else thing.text
        words.append(exact if draw.random() < 0.5 else "shape" if kind in SHAPES else kind)
    else:
        words.append("item")
    return f"Click on a {' '.join(words)}"


def _which_button(things: list[Drawn], goal: str) -> Question:
    """The button that names the first thing drawn: the figure of identify-shape by its kind, that
    of count-sides by the number of its sides."""
    figure, *buttons = things
    label = figure.text if figure.tag == "canvas" else BUTTONS[kind_of(figure)]
    return Question(goal, [button for button in buttons if button.text == label], figure)


def answered(task: str, goal: str, things: list[Drawn]) -> Question | None:
    """The question of click-color or click-shape with all that answers it, from the top left; None
    where nothing does."""
    if task == "click-color":
        colour = goal.split()[3]
        found = [thing for thing in things if thing.colour == colour]
    else:
        words = re.sub(r"^Click on a ", "", goal).split(" ")
        found = [thing for thing in things if all(_is(thing, word) for word in words)]
    found.sort(key=lambda thing: (thing.middle[1], thing.middle[0]))
    return Question(goal, found) if found else None


def _is(thing: Drawn, word: str) -> bool:
    """Whether a word of a goal is true of it."""
    kind = kind_of(thing)
    exact = kind if kind in SHAPES else thing.text
    general = "shape" if kind in SHAPES else kind
    return word in ("item", size_of(thing), thing.colour, exact, general)
