"""Agents that need no model: the baselines that a trained policy has to beat.

An agent is a function of an observation and the number of the turn that returns an action.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.episodes.play import Agent

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation, Element

WAIT = "noop(500)"  # what an agent does that finds nothing to do


def random_agent(seed: int = 0) -> Agent:
    """An agent that clicks a random element among those that can be clicked, and types nothing."""

    def act(observation: BrowserObservation, turn: int) -> str:
        # Not one stream of numbers: episodes run in threads, and the same seed must give the same
        # clicks.
        draw = random.Random(f"{seed} {observation.task} {observation.seed} {turn}")
        bids = [e.bid for e in observation.elements if e.clickable]
        if not bids:
            bids = [e.bid for e in observation.elements]
        return format_action("click", draw.choice(bids)) if bids else WAIT

    return act


def first_button_agent(observation: BrowserObservation, turn: int) -> str:
    """Clicks the first button of the page, always."""
    for element in observation.elements:
        if element.role in ("button", "link", "tab", "radio", "checkbox"):
            return format_action("click", element.bid)
    return WAIT


def text_match_agent(observation: BrowserObservation, turn: int) -> str:
    """Clicks the element that the goal names, or types what the goal has in quotes.

    Looked for are elements whose name is one of the goal's words in quotes. Where there is none
    but there are text fields, the quoted words go into the fields, one a turn, and then the first
    button is pressed. Otherwise it clicks the longest name that the goal contains, and where the
    goal contains none the first button.
    """
    goal = observation.goal
    quoted = re.findall(r'"([^"]+)"', goal)
    named = _elements_with_names(observation)
    matching = _elements_called(named, quoted)
    fields = [] if matching else [e for e in observation.elements if e.role == "textbox"]
    if quoted and turn < min(len(fields), len(quoted)):
        return format_action("fill", fields[turn].bid, quoted[turn])
    filled_in = bool(fields) or (turn > 0 and not quoted)
    if not matching and filled_in:
        matching = [e for e in named if e.role == "button"]
    if not matching:
        in_goal = [e for e in named if e.name.lower() in goal.lower()]
        matching = sorted(in_goal, key=lambda e: -len(e.name))
    if matching:
        return format_action("click", matching[0].bid)
    return first_button_agent(observation, turn)


def _elements_with_names(observation: BrowserObservation) -> list[Element]:
    """The elements that a goal can name: neither the page itself nor plain text."""
    return [
        e for e in observation.elements if e.name and e.role not in ("RootWebArea", "StaticText")
    ]


def _elements_called(elements: list[Element], names: list[str]) -> list[Element]:
    """The elements with one of these names; letter for letter if there are any, else in any
    case."""
    exact = [e for e in elements if e.name in names]
    if exact:
        return exact
    lower_names = [name.lower() for name in names]
    return [e for e in elements if e.name.lower() in lower_names]


def noop_on_error(agent: Agent) -> Agent:
    """The same agent, but where its script fails on a page that it does not expect, it waits.

    The episode loses a turn then, and the run goes on.
    """

    def act(observation: BrowserObservation, turn: int) -> str:
        try:
            return agent(observation, turn)
        except Exception:  # whatever the mistake is, it is this script's alone
            return WAIT

    return act
