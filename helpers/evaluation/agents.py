"""Agents without a model: the baselines that a trained policy has to beat, and a script that shows what a task takes."""

import random
import re
from collections.abc import Callable
from typing import Any

from helpers.browser.actions import format_action
from helpers.episodes.play import Agent


def random_agent(seed: int = 0) -> Agent:
    """Clicks an element at random among those that can be clicked; types nothing."""

    def act(observation: Any, turn: int) -> str:
        # Not one stream of numbers: episodes run in threads, and the same seed must give the same clicks.
        draw = random.Random(f"{seed} {observation.task} {observation.seed} {turn}")
        bids = [e.bid for e in observation.elements if e.clickable] or [
            e.bid for e in observation.elements
        ]
        return format_action("click", draw.choice(bids)) if bids else "noop(500)"

    return act


def first_button_agent(observation: Any, turn: int) -> str:
    """Clicks the first button of the page, always."""
    buttons = [
        e.bid
        for e in observation.elements
        if e.role in ("button", "link", "tab", "radio", "checkbox")
    ]
    return format_action("click", buttons[0]) if buttons else "noop(500)"


def text_match_agent(observation: Any, turn: int) -> str:
    """Clicks the element that the goal names: words in quotes first, then the longest name that the goal contains. Where
    no element has the quoted words as its name but there are text fields, it types them, then presses the first button."""
    goal = observation.goal
    quoted = re.findall(r'"([^"]+)"', goal)
    named = [
        e for e in observation.elements if e.name and e.role not in ("RootWebArea", "StaticText")
    ]
    wanted = [e for e in named if e.name in quoted] or [
        e for e in named if e.name.lower() in (q.lower() for q in quoted)
    ]
    fields = [] if wanted else [e for e in observation.elements if e.role == "textbox"]
    if fields and quoted and turn < min(len(fields), len(quoted)):
        return format_action("fill", fields[turn].bid, quoted[turn])
    if not wanted and (fields or (turn and not quoted)):
        wanted = [e for e in named if e.role == "button"]
    wanted = wanted or sorted(
        (e for e in named if e.name.lower() in goal.lower()), key=lambda e: -len(e.name)
    )
    return (
        format_action("click", wanted[0].bid) if wanted else first_button_agent(observation, turn)
    )


def careful(agent: Callable) -> Callable:
    """An agent whose script meets a page that it does not expect waits instead of failing."""

    def act(seen, turn: int) -> str:
        try:
            return agent(seen, turn)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, StopIteration):
            return "noop(500)"

    return act
