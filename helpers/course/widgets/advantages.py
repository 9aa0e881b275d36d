"""What a rollout is worth to its group, for a group size and a success rate of one's choice."""

import ipywidgets as w

from helpers.course.figures import advantage_curves, as_png
from helpers.course.widgets.live import Soon, show_live
from helpers.settings.language import say


def advantage_lab() -> None:
    """Slide group size, success rate and scaling; see what a solved and a failed rollout get."""
    show_live(
        _Lab().widget,
        say(
            "Run this notebook to move group size, success rate and scaling here; the figure below "
            "shows three settings."
        ),
    )


class _Lab:
    """The widget of `advantage_lab`: the figure follows the controls, and says so meanwhile."""

    def __init__(self) -> None:
        wide = {"description_width": "8em"}  # else "success rate" is cut off
        self._size = w.IntSlider(8, 2, 32, description=say("group size"), style=wide)
        self._rate = w.FloatSlider(
            value=0.2, min=0.02, max=0.98, step=0.02, description=say("success rate"), style=wide
        )
        self._scaling = w.ToggleButtons(
            options=["group", "batch", "none"], description=say("scaling"), style=wide
        )
        self._state = w.Label()
        self._figure = w.Image(format="png", layout=w.Layout(max_width="none"))
        controls = [self._size, self._rate, self._scaling]
        draw_soon = Soon(self._draw)
        for control in controls:
            control.observe(lambda _: self._follow(draw_soon), names="value")
        self.widget = w.VBox([*controls, self._state, self._figure])
        self._draw()

    def _follow(self, draw_soon: Soon) -> None:
        self._state.value = say("drawing ...")
        draw_soon()

    def _draw(self) -> None:
        size = self._size.value
        rate = self._rate.value
        setting = (size, rate, str(self._scaling.value))
        figure = advantage_curves([setting], say("green: solved, orange: failed"))
        self._figure.value = as_png(figure)
        self._state.value = say("group size {size}, success rate {rate:.2f}", size=size, rate=rate)
