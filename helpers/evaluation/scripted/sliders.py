"""Scripts for sliders: click the track, which sets its middle, then press keys to the number."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.evaluation.scripted.page import (
    click,
    nameless,
    number_to_select,
    ordinal,
    press,
    submit,
    whole_numbers,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

PAGES = 5  # of jQuery UI's sliders: PageUp goes a fifth of the way


@dataclass(frozen=True)
class Track:
    """What a slider can be set to: all whole numbers of a range, both ends included."""

    low: int
    high: int

    def after(self, value: int) -> dict[str, int]:
        """Where each key takes the slider; of equally good ones the first is pressed."""
        page = (self.high - self.low) // PAGES
        steps = {
            "ArrowRight": value + 1,
            "ArrowLeft": value - 1,
            "PageUp": value + page,
            "PageDown": value - page,
            "Home": self.low,
            "End": self.high,
        }
        return {key: min(max(place, self.low), self.high) for key, place in steps.items()}

    def key(self, value: int, wanted: int) -> str:
        """The key that brings a slider nearest to the number that is wanted."""
        places = self.after(value)
        return min(places, key=lambda key: abs(places[key] - wanted))

    @property
    def middle(self) -> int:
        """What a click on the track sets: between two numbers the greater one."""
        return (self.low + self.high + 1) // 2


STARTS, LENGTHS = (-100, 0, 10, 100), (5, 10, 50, 100)  # of one slider alone: the page's numbers
ALONE = [Track(start, start + length) for start in STARTS for length in LENGTHS]
OF_FORM = Track(-10, 10)
OF_COMBINATION = Track(0, 20)


class Sliders:
    """Sets sliders one by one, top down, then does what is left. It remembers which of them it has
    clicked, as a policy has it in its conversation: the tree does not tell.

    ``wanted``: the numbers that the goal names. ``tracks``: what each slider may go through.
    ``then``: what is done when all of them are set.
    """

    def __init__(
        self,
        wanted: Callable[[BrowserObservation], list[int]],
        tracks: list[Track],
        then: Callable[[BrowserObservation], str] = submit,
    ) -> None:
        self._wanted, self._tracks, self._then = wanted, tracks, then
        # By task and seed, and by the slider's place; None until a key is pressed on it.
        self._clicked: dict[tuple[str, int | None], dict[int, Track | None]] = {}

    def __call__(self, seen: BrowserObservation, turn: int) -> str:
        """Clicks the first slider that is not as it should be, or presses a key on it."""
        page = (seen.task, seen.seed)
        if turn == 0:
            self._clicked[page] = {}
        clicked = self._clicked[page]
        values = whole_numbers(seen)
        for place, wanted in enumerate(self._wanted(seen)):
            if values[place] == wanted:
                continue
            slider = nameless(seen)[place]
            if place not in clicked:
                clicked[place] = None
                return click(slider)
            track = clicked[place] or self._track_with_middle(values[place])
            clicked[place] = track
            return press(slider, track.key(values[place], wanted))
        return self._then(seen)

    def _track_with_middle(self, value: int) -> Track:
        """What the click has set, the middle, tells which of the tracks it is."""
        return min(self._tracks, key=lambda track: abs(track.middle - value))


def number_of_goal(seen: BrowserObservation) -> list[int]:
    """The goal of a page with one slider."""
    return [number_to_select(seen)]


def combination_of_goal(seen: BrowserObservation) -> list[int]:
    """ "the combination [9,18,11]" is these three."""
    return [int(number) for number in re.findall(r"\d+", seen.goal)]


def tick_and_submit(seen: BrowserObservation) -> str:
    """Ticks the box that the goal counts, then hands in."""
    boxes = with_role(seen, "checkbox")
    if any(box.value == "true" for box in boxes):
        return submit(seen)
    return click(boxes[ordinal(seen.goal) - 1])


alone = Sliders(number_of_goal, ALONE)
combination = Sliders(combination_of_goal, [OF_COMBINATION])
of_form = Sliders(number_of_goal, [OF_FORM], then=tick_and_submit)
