"""What a rollout is worth to its group, for a group size and a success rate of one's choice."""

import ipywidgets as w
from IPython.display import display

from helpers.course.figures import advantage_curves, show
from helpers.course.widgets.live import show_live


def advantage_lab() -> None:
    """Slide group size, success rate and scaling; see what a solved and a failed rollout get."""
    wide = {"description_width": "8em"}  # else "success rate" is cut off
    controls = {
        "size": w.IntSlider(8, 2, 32, description="group size", style=wide),
        "rate": w.FloatSlider(
            value=0.2, min=0.02, max=0.98, step=0.02, description="success rate", style=wide
        ),
        "scaling": w.ToggleButtons(
            options=["group", "batch", "none"], description="scaling", style=wide
        ),
    }
    figure = w.interactive_output(_draw, controls)
    show_live(
        w.VBox([*controls.values(), figure]),
        "Run this notebook to move group size, success rate and scaling here; the figure below "
        "shows three settings.",
    )


def _draw(size: int, rate: float, scaling: str) -> None:
    figure = advantage_curves([(size, rate, scaling)], "green: solved, red: failed")
    alt = "advantage of a solved and of a failed rollout by the number solved in the group"
    display(show(figure, alt))
