"""Drive the browser by hand."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import ipywidgets as w

from helpers.browser import BrowserServerError
from helpers.browser.actions import format_action, parse_action
from helpers.course.figures import PAGE, annotate, show
from helpers.course.widgets.live import clickable_picture, show_live

ZOOM = 2.5  # pixels on the screen for one of the page


def _page(seen: Any, press: Callable[[str], None]) -> w.Widget:
    """The page with a box and the bid at each element that says it can be clicked; a click anywhere in an element is a
    click on it, also where the page does not say so (a drop-down list)."""
    left, top, right, bottom = PAGE
    figure = annotate(seen, "", PAGE)
    figure.set_layout_engine("none")
    figure.set_size_inches(ZOOM * (right - left) / figure.dpi, ZOOM * (bottom - top) / figure.dpi)
    figure.axes[0].set_position(
        (0, 0, 1, 1)
    )  # no margins: a pixel of the page is ZOOM pixels of the picture
    spots = {}
    for element in seen.elements:
        if element.box and left <= element.box[0] < right and top <= element.box[1] < bottom:
            x, y, width, height = element.box
            width, height = min(width, right - x), min(height, bottom - y)
            spots[format_action("click", element.bid)] = [
                ZOOM * v for v in (x - left, y - top, width, height)
            ]
    return clickable_picture(show(figure, "").data, spots, press)


def drive_browser(
    client: Any, tasks: Sequence[str], seed: int = 0, policy: Callable[[Any], str] | None = None
) -> None:
    """Choose a task and a seed; click an element of the page or type an action; see what it earned.

    ``policy``: a function from an observation to an answer. With one there is a button that shows what it would answer to the
    page as it is, and leaves the decision to you.
    """
    task, number = (
        w.Dropdown(options=tasks, description="task"),
        w.IntText(seed, description="seed"),
    )
    action, page, said = w.Text(placeholder="click('13')", description="action"), w.Box(), w.HTML()
    reset, act = w.Button(description="Reset"), w.Button(description="Act", button_style="primary")
    ask = w.Button(description="Ask the policy")
    seen: Any = None

    def tell(*lines: str) -> None:
        said.value = f'<div style="line-height:1.5">{"<br>".join(lines)}</div>'

    def run(name: str, call: Callable, *arguments: Any) -> None:
        nonlocal seen
        try:
            seen = call(*arguments, screenshot=True)
        except (
            BrowserServerError
        ) as error:  # the episode is over, or the server is closed: a sentence, no traceback
            tell(escape(str(error)))
            return
        if seen.screenshot:  # there is none where the browser was lost
            page.children = [_page(seen, click)]
        facts = {
            "goal": seen.goal,
            f"step {seen.step}": name,
            "reward": seen.reward,
            "raw reward": seen.raw_reward,
            "ended": seen.ended,
            "error": seen.error or seen.infrastructure_error,
        }
        tell(
            *(
                f"<b>{key}</b> {escape('-' if value in ('', None) else str(value))}"
                for key, value in facts.items()
            )
        )

    def start(_: Any = None) -> None:
        run("reset", client.reset, task.value, number.value)

    def click(name: str) -> None:
        action.value = name
        run(name, client.step, name)

    def suggest(_: Any) -> None:
        if seen is None:
            start()
        if seen is None:  # no server: `start` has said so
            return
        try:
            answer = policy(seen)
        except Exception as error:  # a front end shows no traceback of a button
            tell(escape(f"The policy failed: {type(error).__name__}: {error}"))
            return
        action.value = answer
        tell(
            f"<b>goal</b> {escape(seen.goal)}",
            f"<b>the policy answers</b> {escape(answer)}",
            f"<b>kind</b> {parse_action(answer, {e.bid for e in seen.elements}).kind}",
            "Act takes this action.",
        )

    reset.on_click(start)
    act.on_click(lambda _: run(action.value, client.step, action.value))
    ask.on_click(suggest)
    buttons = [act, ask] if policy else [act]
    said.layout = w.Layout(width="24em", margin="0 0 0 1em")
    show_live(
        w.VBox([w.HBox([task, number, reset]), w.HBox([action, *buttons]), w.HBox([page, said])]),
        "Run this notebook to drive the browser here: choose a task, press Reset, then click an element or type an action.",
    )
