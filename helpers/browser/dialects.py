"""The two ways in which clients ask for an observation and read it: ours and upstream's.

Upstream's ``BrowserGymEnv`` asks for nothing: its ``reset`` names a task and perhaps a seed, its
``step`` an action, and what comes back is for the server to decide. Our own client says of each
request what it wants (`helpers.browser.options.Want`). So a reset that does not speak of
``details``, which ours always does, is upstream's, and the whole episode is told as upstream's
server tells it: pictures as nested lists of integers, BrowserGym's observation and info in the
metadata, the page as HTML. (Of the info only what the task says: when stock began and ended each
part of a step has no counterpart here.)

With a picture, because a missing one would go unnoticed. Upstream's older servers send one with
every observation; newer ones leave it out unless they were started with
``BROWSERGYM_INCLUDE_SCREENSHOT=true``, which the client can neither see nor change. TRL's vision
example puts a picture into its messages where one came, and trains on the text alone where none
did. A picture that nobody looks at costs most of a step, for it travels as half a million numbers
(``python -m benchmarks.peers`` measures it); one that is missing costs a training run. Who wants
none says ``reset(screenshot=False)``.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.browser.details import details_of
from helpers.browser.middleware import Refusal
from helpers.browser.models import BrowserObservation
from helpers.browser.options import PICTURES, Want

Fields = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """What the reset of an episode asked for, which holds for its steps unless one says otherwise,
    and how observations are told."""

    upstream: bool = False
    picture: str = ""  # one of PICTURES
    details: bool = False
    started: float = field(default_factory=time.time)  # the episode, in seconds since 1970

    @classmethod
    def of_reset(cls, screenshot: Any, details: Any) -> "Dialect":
        """The dialect of a reset that says this; None: it does not speak of it. Refusal where there
        is no such picture."""
        if details is not None:
            return cls(False, _picture_called(screenshot or False), bool(details))
        return cls(True, _picture_called(True if screenshot is None else screenshot), True)

    def want(self, said: Mapping[str, Any]) -> Want:
        """What a request wants to be told that says this beside its action. Refusal where there is
        no such picture."""
        screenshot = said.get("screenshot")
        return Want(
            page=bool(said.get("observe", True)),
            picture=self.picture if screenshot is None else _picture_called(screenshot),
            details=bool(said.get("details", self.details)),
        )

    def observation(self, fields: Fields, last_action: str) -> BrowserObservation:
        """The observation that holds these fields of a session's answer, after this action."""
        task_info = fields.pop("task_info", {})
        if not self.upstream:
            return BrowserObservation(**fields)
        if sentence := fields.get("infrastructure_error"):  # upstream's clients know no such field
            fields |= {"error": sentence, "last_action_error": True}
        details = fields.pop("details", {}) or self._details_without_page(fields, last_action)
        metadata = {"browsergym_obs": details, "browsergym_info": {"task_info": task_info}}
        return BrowserObservation(**fields, metadata=metadata, pixels=True)

    def _details_without_page(self, fields: Fields, last_action: str) -> Fields:
        """The details of a page that was not read: the episode has ended with it."""
        known = {"goal": "", "url": "", "error": "", **fields}
        moment = known | {"focused_bid": "", "last_action": last_action}
        return details_of(moment, {}, "", self.started)


def _picture_called(screenshot: Any) -> str:
    """The picture that a request's ``screenshot`` means. Refusal where there is none."""
    if isinstance(screenshot, bool):
        return "stock" if screenshot else ""
    if screenshot == "pixels":  # whose lists upstream's dialect has anyway
        return "stock"
    if isinstance(screenshot, str) and screenshot in PICTURES:
        return screenshot
    raise Refusal(
        f"There is no picture {str(screenshot)[:40]!r}; screenshot is True, 'small' or False."
    )
