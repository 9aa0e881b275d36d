"""What goes over the wire: the action and the observation; who plays through it: a `Client`; and
the one error type."""

import base64
import difflib
import functools
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel, Field, field_serializer, field_validator

from helpers.browser.openenv_parts import Action, Observation
from helpers.settings.errors import CourseError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_ACTION = 100_000  # characters that the wire takes; the parser takes far fewer


class BrowserServerError(CourseError, RuntimeError):
    """The browser server cannot do what it was asked for. One sentence that names the cause and
    the next step."""


@functools.cache
def list_tasks() -> tuple[str, ...]:
    """The names of BrowserGym's MiniWoB tasks, without prefix, e.g. "click-button"; sorted."""
    from browsergym.miniwob import ALL_MINIWOB_TASKS  # takes a second to import

    return tuple(sorted(task.subdomain for task in ALL_MINIWOB_TASKS))


def no_such_task(name: str, also: Iterable[str] = ()) -> str:
    """The sentence for a name that is no task, with those that are close. ``also``: what else the
    reader could have meant."""
    close = difflib.get_close_matches(name, [*list_tasks(), *also], n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(close)}?" if close else "list_tasks() names them all."
    return f"There is no MiniWoB task {name[:60]!r}; {hint}"


class BrowserAction(Action):
    """One action. ``action_str`` as upstream has it; ``metadata["screenshot"]`` asks for a picture
    with this step (see `BrowserClient.reset`), ``metadata["details"]`` for all else that stock
    tells, ``metadata["observe"]`` = False for the outcome alone."""

    action_str: str = Field(max_length=MAX_ACTION)


class Element(BaseModel):
    """One element of the page. ``box`` is (x, y, width, height) in pixels of the screenshot (of
    stock's size, 1.5 for one of the page's), None where it is not drawn. ``text``: the first text
    in it, where it has no name."""

    bid: str
    role: str = ""
    name: str = ""
    box: tuple[float, float, float, float] | None = None
    clickable: bool = False
    focused: bool = False
    value: str = ""
    text: str = ""


class BrowserObservation(Observation):
    """What the policy sees and what it earned; a superset of upstream's `BrowserGymObservation`.

    ``reward`` is strict: 1.0 where the episode is done and ``raw_reward`` >= 1, else 0.0, and None
    where the infrastructure failed. ``raw_reward`` is the page's own record without time penalty
    (None: the server cannot tell). ``stock_reward`` is what stock BrowserGym pays: 1.0 where
    ``raw_reward`` > 0, but nothing once a link to "#" was clicked, which it takes for leaving the
    page (None: as ``raw_reward``). ``ended`` is "" or says why the episode is over. ``step`` is 0
    after reset. ``screenshot`` is PNG bytes here and base64 on the wire (upstream's nested lists of
    integers come with ``reset(screenshot="pixels")``). ``details``: where asked for, the other keys
    of stock's observation (helpers/browser/details.py); ``pruned_html`` comes with them.
    ``obeyed``: whether the button of the page's order was clicked (helpers/browser/orders.py), None
    on a page without an order."""

    goal: str = ""
    url: str = ""
    text: str = ""
    axtree_txt: str = ""
    pruned_html: str = ""
    elements: list[Element] = []
    focused_bid: str = ""
    error: str = ""
    last_action_error: bool = False
    screenshot: bytes | None = None
    raw_reward: float | None = None
    stock_reward: float | None = None
    ended: Literal["", "solved", "failed", "time_limit", "left_page", "infrastructure_error"] = ""
    infrastructure_error: str = ""
    task: str = ""
    seed: int | None = None
    step: int = 0
    obeyed: bool | None = None
    details: dict[str, Any] = {}
    pixels: bool = Field(default=False, exclude=True)

    @field_validator("screenshot", mode="before")
    @classmethod
    def _read_picture(cls, value: Any) -> bytes | None:
        if isinstance(value, str):
            return base64.b64decode(value)
        if isinstance(value, list):  # upstream: rows of columns of [red, green, blue]
            import numpy
            from PIL import Image

            file = io.BytesIO()
            Image.fromarray(numpy.asarray(value, dtype=numpy.uint8)).save(file, "PNG")
            return file.getvalue()
        return value

    @field_serializer("screenshot")
    def _write_picture(self, value: bytes | None) -> Any:
        if value is None:
            return None
        if self.pixels:
            import numpy

            return numpy.asarray(self.image()).tolist()
        return base64.b64encode(value).decode()

    def image(self) -> "Image":
        """The screenshot as a `PIL.Image` in RGB: 498 x 321, a small one 332 x 214. ValueError
        where none was asked for."""
        from PIL import Image

        if self.screenshot is None:
            raise ValueError(
                "This observation has no screenshot; ask for one with screenshot=True."
            )
        return Image.open(io.BytesIO(self.screenshot)).convert("RGB")


class Client(Protocol):
    """One session in which episodes are played, as `BrowserClient` offers it."""

    def reset(
        self, task: str = "click-button", seed: int = 0, screenshot: bool | str | None = None
    ) -> BrowserObservation:
        """Start an episode; the same task and seed give the same page."""
        ...

    def step(
        self, action: str, screenshot: bool | str | None = None, observe: bool = True
    ) -> BrowserObservation:
        """Take one action, such as ``click('13')``."""
        ...

    def close(self) -> None:
        """Give the session back."""
        ...
