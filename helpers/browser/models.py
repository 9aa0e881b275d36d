"""What goes over the wire: the action, the observation, and the one error type."""

import base64
import functools
import io
import sys
from typing import Any, Literal

# OpenEnv brings a web page and its MCP server a check of address formats. Nothing here uses them, both can do without the
# package behind them, and their imports take 8 of 10 seconds of CPU. None: as if it were not installed.
_UNUSED = {"gradio", "rfc3987_syntax"} - sys.modules.keys()
sys.modules.update(dict.fromkeys(_UNUSED))
from openenv.core.env_server.types import Action, Observation  # noqa: E402
from pydantic import BaseModel, Field, field_serializer, field_validator  # noqa: E402

for _name in _UNUSED:
    del sys.modules[_name]


class BrowserServerError(RuntimeError):
    """One sentence that names the cause and the next step."""


@functools.cache
def list_tasks() -> tuple[str, ...]:
    """The names of BrowserGym's MiniWoB tasks, without prefix, e.g. "click-button"; sorted."""
    from browsergym.miniwob import ALL_MINIWOB_TASKS

    return tuple(sorted(task.subdomain for task in ALL_MINIWOB_TASKS))


class BrowserAction(Action):
    """``action_str`` as upstream has it; ``metadata["screenshot"]`` asks for a picture with this step."""

    action_str: str = Field(max_length=100_000)


class Element(BaseModel):
    """One element of the page. ``box`` is (x, y, width, height) in screenshot pixels, None where it is not drawn."""

    bid: str
    role: str = ""
    name: str = ""
    box: tuple[float, float, float, float] | None = None
    clickable: bool = False
    focused: bool = False
    value: str = ""


class BrowserObservation(Observation):
    """What the policy sees and what it earned; a superset of upstream's ``BrowserGymObservation``.

    ``reward`` is strict: 1.0 where the episode is done and ``raw_reward`` >= 1, else 0.0, and None where the infrastructure
    failed. ``raw_reward`` is the page's own record without time penalty (None: the server cannot tell). ``ended`` is "" or says
    why the episode is over. ``step`` is 0 after reset. ``screenshot`` is PNG bytes here, base64 on the wire (upstream's nested
    lists of integers come with ``reset(screenshot="pixels")``)."""

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
    ended: Literal["", "solved", "failed", "time_limit", "left_page", "infrastructure_error"] = ""
    infrastructure_error: str = ""
    task: str = ""
    seed: int | None = None
    step: int = 0
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
        if value is not None and self.pixels:
            import numpy

            return numpy.asarray(self.image()).tolist()
        return None if value is None else base64.b64encode(value).decode()

    def image(self):
        """The screenshot as a ``PIL.Image`` in RGB (332 x 214). ValueError where none was asked for."""
        from PIL import Image

        if self.screenshot is None:
            raise ValueError(
                "This observation has no screenshot; ask for one with screenshot=True."
            )
        return Image.open(io.BytesIO(self.screenshot)).convert("RGB")
