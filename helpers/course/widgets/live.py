"""What every widget needs: to be shown where a front end listens, and pictures that can be clicked."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

import ipywidgets as w
from IPython.display import display


def show_live(widget: w.Widget, note: str) -> None:
    """Display a widget; where no front end listens (GitHub, an export), the sentence ``note`` stands in its place."""
    with suppress(
        ImportError
    ):  # only on Colab, whose front end fetches the widgets of the installed version when asked to
        import_module("google.colab.output").enable_custom_widget_manager()
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**data, "text/plain": note, "text/markdown": f"*{note}*"}, raw=True)


def clickable_picture(
    png: bytes, spots: dict[str, Sequence[float]], press: Callable[[str], None]
) -> w.Box:
    """A picture with an invisible button over each spot: name -> (x, y, width, height) in its pixels; ``press`` gets the name.

    All of them lie in one cell of a grid, the smallest on top, so a point belongs to the smallest spot around it. ipywidgets
    has no coordinates of clicks; buttons need no JavaScript of ours, can be reached by keyboard and show their name.
    """
    layers: list[w.Widget] = [
        w.Image(
            value=png,
            format="png",
            layout=w.Layout(grid_area="1 / 1", margin="0", max_width="none"),
        )
    ]
    for name, (x, y, width, height) in sorted(
        spots.items(), key=lambda spot: -spot[1][2] * spot[1][3]
    ):
        layout = w.Layout(
            grid_area="1 / 1",
            margin=f"{y:.0f}px 0 0 {x:.0f}px",
            padding="0",
            width=f"{width:.0f}px",
            height=f"{height:.0f}px",
        )
        button = w.Button(tooltip=name, style={"button_color": "transparent"}, layout=layout)
        button.on_click(lambda pressed: press(pressed.tooltip))
        layers.append(button)
    return w.Box(
        layers,
        layout=w.Layout(
            display="grid", justify_items="flex-start", align_items="flex-start", flex="none"
        ),
    )
