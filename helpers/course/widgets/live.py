"""What every widget needs: to be shown where a front end listens, and pictures to click on."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module

import ipywidgets as w
from IPython.display import display


def show_live(widget: w.Widget, note: str) -> None:
    """Display a widget.

    Where no front end listens (GitHub, an export), the sentence ``note`` stands in its place.
    """
    with suppress(ImportError):  # it is there on Colab alone, which shows widgets when asked to
        import_module("google.colab.output").enable_custom_widget_manager()
    data = widget._repr_mimebundle_() or {}
    display({**data, "text/plain": note, "text/markdown": f"*{note}*"}, raw=True)


class Soon:
    """Calls a function a moment later: of several calls that come close together, only the last.

    In that moment a front end sends what it has held back: it waits for the answer to one change of
    a control before it sends the next, but sends the Enter key at once.
    """

    def __init__(self, function: Callable[[], None], seconds: float = 0.2) -> None:
        self._function = function
        self._seconds = seconds
        self._waiting: asyncio.TimerHandle | None = None

    def __call__(self) -> None:
        """Call it; without a running event loop, and so without a front end, at once."""
        if self._waiting is not None:
            self._waiting.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._function()
        else:
            self._waiting = loop.call_later(self._seconds, self._function)


def clickable_picture(
    png: bytes, spots: Mapping[str, Sequence[float]], press: Callable[[str], None]
) -> w.Box:
    """A picture with an invisible button over each spot.

    ``spots``: name -> (x, y, width, height) in the picture's pixels; ``press`` gets the name of the
    one that is pressed. All lie in one cell of a grid, the smallest on top, so a point belongs to
    the smallest spot around it. ipywidgets has no coordinates of clicks; buttons need no JavaScript
    of ours, can be reached by keyboard and show their name.
    """

    def area(name: str) -> float:
        _, _, width, height = spots[name]
        return width * height

    largest_first = sorted(spots, key=area, reverse=True)
    buttons = [_invisible_button(name, spots[name], press) for name in largest_first]
    grid = w.Layout(
        display="grid", justify_items="flex-start", align_items="flex-start", flex="none"
    )
    return w.Box([_picture(png), *buttons], layout=grid)


def _picture(png: bytes) -> w.Image:
    layout = w.Layout(grid_area="1 / 1", margin="0", max_width="none")
    return w.Image(value=png, format="png", layout=layout)


def _invisible_button(name: str, spot: Sequence[float], press: Callable[[str], None]) -> w.Button:
    x, y, width, height = spot
    layout = w.Layout(
        grid_area="1 / 1",
        margin=f"{y:.0f}px 0 0 {x:.0f}px",
        padding="0",
        width=f"{width:.0f}px",
        height=f"{height:.0f}px",
    )
    button = w.Button(tooltip=name, style={"button_color": "transparent"}, layout=layout)
    button.on_click(lambda pressed: press(pressed.tooltip))
    return button
