"""Drive the browser by hand."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape

import ipywidgets as w

from helpers.browser.actions import format_action, parse_action
from helpers.browser.models import BrowserObservation, BrowserServerError, Client
from helpers.course.figures import PAGE, annotate, as_png
from helpers.course.widgets.live import Soon, clickable_picture, show_live
from helpers.settings.language import say

ZOOM = 5 / 3  # pixels on the screen for one of the screenshot
OLD = "course-page-before"  # the class of a page while the browser works on the next one
FADED = f"<style>.{OLD} {{ opacity: 0.35; pointer-events: none }}</style>"

Policy = Callable[[BrowserObservation], str]
"""From an observation to an answer."""


def drive_browser(
    client: Client, tasks: Sequence[str], seed: int = 0, policy: Policy | None = None
) -> None:
    """Choose a task and a seed; click an element, or type an action and Enter; see what it earned.

    With a ``policy`` there is a button that shows what it would answer to the page as it is, and
    leaves the decision to you.
    """
    show_live(
        _Driver(client, tasks, seed, policy).widget,
        say(
            "Run this notebook to drive the browser here: choose a task, press Reset, then click "
            "an element or type an action."
        ),
    )


class _Driver:
    """The widget of `drive_browser`, and what its buttons do."""

    def __init__(
        self, client: Client, tasks: Sequence[str], seed: int, policy: Policy | None
    ) -> None:
        self._client = client
        self._policy = policy
        self._seen: BrowserObservation | None = None
        self._task = w.Dropdown(options=tasks, description=say("task"))
        self._seed = w.IntText(seed, description=say("seed"))
        self._action = w.Text(placeholder="click('13')", description=say("action"))
        self._page = w.Box()
        self._said = w.HTML(layout=w.Layout(width="24em", margin="0 0 0 1em"))
        self._buttons = [_button(say("Reset"), self._reset), _button(say("Act"), self._step)]
        self._buttons[1].button_style = "primary"
        if policy is not None:
            self._buttons.append(_button(say("Ask the policy"), self._ask))
        for choice in (self._task, self._seed):
            choice.observe(lambda _: self._reset(), names="value")
        step_soon = Soon(self._step)  # when what was typed before the Enter key is here
        self._action.on_msg(lambda _, content, __: self._entered(content, step_soon))
        self.widget = w.VBox(
            [
                w.HBox([self._task, self._seed, self._buttons[0]]),
                w.HBox([self._action, *self._buttons[1:]]),
                w.HBox([self._page, self._said]),
                w.HTML(FADED),
            ]
        )
        self._say(say("Reset loads the page of this task and seed."))

    @contextmanager
    def _busy(self, what: str) -> Iterator[None]:
        """Show what is being done, and fade the page that is there, until it is done."""
        self._say(say("{what} ...", what=f"<b>{escape(what)}</b>"))
        self._page.add_class(OLD)
        for button in self._buttons:
            button.disabled = True
        try:
            yield
        finally:
            self._page.remove_class(OLD)
            for button in self._buttons:
                button.disabled = False

    def _entered(self, content: dict[str, str], step_soon: Soon) -> None:
        """What the Enter key in the action's field does: what Act does."""
        if content.get("event") == "submit":
            self._say(say("{what} ...", what=f"<b>{escape(self._action.value)}</b>"))
            step_soon()

    def _reset(self) -> None:
        with self._busy(say("Reset")):
            self._page.children = []  # of another task, perhaps
            self._seen = None
            try:
                seen = self._client.reset(str(self._task.value), self._seed.value, screenshot=True)
            except BrowserServerError as error:  # the server is closed: a sentence, no traceback
                self._say(escape(str(error)))
                return
            self._show("reset", seen)

    def _step(self) -> None:
        action = self._action.value
        with self._busy(action):
            try:
                seen = self._client.step(action, screenshot=True)
            except BrowserServerError as error:  # as above, or the episode is over
                self._say(escape(str(error)))
                return
            self._show(action, seen)

    def _click(self, action: str) -> None:
        """What a click on an element does: its action is shown, and taken."""
        self._action.value = action
        self._step()

    def _ask(self) -> None:
        """Show what the policy would answer to the page as it is."""
        if self._seen is None:
            self._reset()
        seen = self._seen
        if seen is None or self._policy is None:  # without a server `_reset` has said so
            return
        try:
            with self._busy(say("Ask the policy")):
                answer = self._policy(seen)
        except Exception as error:  # a front end shows no traceback of a button
            problem = f"{type(error).__name__}: {error}"
            self._say(escape(say("The policy failed: {error}", error=problem)))
            return
        self._action.value = answer
        kind = parse_action(answer, {element.bid for element in seen.elements}).kind
        self._say(
            f"<b>{say('goal')}</b> {escape(seen.goal)}",
            f"<b>{say('the policy answers')}</b> {escape(answer)}",
            f"<b>{say('kind')}</b> {kind}",
            say("Act takes this action."),
        )

    def _show(self, action: str, seen: BrowserObservation) -> None:
        """Show the page, and what came of the action that led to it."""
        self._seen = seen
        # There is none where the browser was lost.
        self._page.children = [_clickable_page(seen, self._click)] if seen.screenshot else []
        facts = {
            say("goal"): seen.goal,
            say("step {n}", n=seen.step): action,
            say("reward"): seen.reward,
            say("raw reward"): seen.raw_reward,
            say("ended"): seen.ended,
            say("error"): seen.error or seen.infrastructure_error,
        }
        lines = []
        for name, value in facts.items():
            shown = "-" if value is None or value == "" else str(value)
            lines.append(f"<b>{name}</b> {escape(shown)}")
        self._say(*lines)

    def _say(self, *lines: str) -> None:
        self._said.value = f'<div style="line-height:1.5">{"<br>".join(lines)}</div>'


def _button(name: str, press: Callable[[], None]) -> w.Button:
    button = w.Button(description=name)
    button.on_click(lambda _: press())
    return button


def _clickable_page(seen: BrowserObservation, press: Callable[[str], None]) -> w.Widget:
    """The page with a box and the bid at each element that says it can be clicked.

    A click anywhere in an element is a click on it, also where the page does not say so (a
    drop-down list). ``press`` gets the action.
    """
    left, top, right, bottom = PAGE
    figure = annotate(seen, "", PAGE)
    figure.set_layout_engine("none")
    figure.set_size_inches(ZOOM * (right - left) / figure.dpi, ZOOM * (bottom - top) / figure.dpi)
    # Without margins: a pixel of the screenshot is ZOOM pixels of the figure.
    figure.axes[0].set_position((0, 0, 1, 1))
    spots = {}
    for element in seen.elements:
        if element.box is None:
            continue
        x, y, width, height = element.box
        if left <= x < right and top <= y < bottom:
            seen_width = min(width, right - x)
            seen_height = min(height, bottom - y)
            spot = (x - left, y - top, seen_width, seen_height)
            spots[format_action("click", element.bid)] = [ZOOM * pixels for pixels in spot]
    return clickable_picture(as_png(figure), spots, press)
