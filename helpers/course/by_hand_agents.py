"""The pieces of notebook 1 that its reader writes: what the notebook goes on with otherwise."""

from collections.abc import Sequence

from helpers.browser.models import BrowserObservation, Element


def advantages(rewards: Sequence[float]) -> list[float]:
    """The advantage of each of several attempts at one page: its reward minus the mean of all."""
    mean = sum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def find_bid(elements: Sequence[Element], role: str, name: str) -> str | None:
    """The bid of the first element with this role and exactly this name; None where there is
    none."""
    return next((e.bid for e in elements if e.role == role and e.name == name), None)


def checkbox_agent(observation: BrowserObservation, _turn: int) -> str:
    """The action that comes next on a page of click-checkboxes: a box that the goal names and that
    is not checked yet, else Submit."""
    names = observation.goal.removeprefix("Select ").removesuffix(" and click Submit.").split(", ")
    for e in observation.elements:
        if e.role == "checkbox" and e.name in names and e.value != "true":
            return f"click('{e.bid}')"
    return f"click('{find_bid(observation.elements, 'button', 'Submit')}')"
