"""The size of the page, at each moment of an episode what it is in stock BrowserGym.

Stock sets a task up, and looks at it for the first time, at 332 x 214, which MiniWoB's tasks ask
for. Each of its looks ends with a picture, for which it overrides that size in a DevTools session
of its own. When this session ends, the size that Playwright has set ends with it, and the page is
as large as Chromium's window, 800 x 600, until the next picture. So all actions are taken there,
and all later looks are looks at a page of 800 x 600; only pictures show 332 x 214, drawn with one
and a half pixels for one of the page's (``_bgym_scale_factor`` of `browsergym.miniwob.base`).

Here too, but for an episode that starts again in place and is asked for its text alone: its page
stays at 800 x 600, and the text does not tell (`SIZE_SHOWS` in session.py).
"""

import base64
from typing import Any

from playwright.sync_api import CDPSession, Page, ViewportSize

SETUP: ViewportSize = {"width": 332, "height": 214}
TRIES = 4  # of a picture that came late
# Functions of page.js.
READY_FOR_PICTURE = "() => window.__course && __course.readyForPicture()"
HOVERS_AS_BEFORE = "() => !window.__course || __course.hoversAsBefore()"
READY_FOR_ACTION = "width => window.__course && __course.readyForAction(width)"


class Viewport:
    """The size of one page, which a context has opened with `SETUP`."""

    def __init__(self, page: Page, cdp: CDPSession) -> None:
        self._page = page
        self._cdp = cdp
        self._for_setup = True
        self._on_its_way = False  # whether the size for acting may not have reached the page yet
        # As Playwright's session has it already; but only what this one has set can it take back,
        # and Playwright's is lost with it.
        self._override(1.0)

    def for_setup(self) -> None:
        """As a page is when stock sets a task up."""
        if not self._for_setup:
            self._override(1.0)

    def for_acting(self) -> None:
        """As a page is in stock once it has been looked at. No size is set, rather than that of the
        window: the hover state that pictures show depends on it."""
        if self._for_setup:
            self._cdp.send("Emulation.clearDeviceMetricsOverride")
            self._for_setup = False
            self._on_its_way = True

    def wait(self) -> None:
        """The browser answers before the page has its new size: wait for it, before an action."""
        if self._on_its_way:
            self._page.evaluate(READY_FOR_ACTION, SETUP["width"])
            self._on_its_way = False

    def picture(self, scale: float) -> bytes:
        """The page as PNG, ``scale`` pixels for one of the page's. Leaves it as for acting.

        In a page of another size the mouse is over something else, and the next frame but one after
        the resize is drawn so. Of a page that has come to rest, as stock's has in the half second
        before, the picture is the first one; and the page is not told. A busy machine may take it
        of a later frame: then the hover state is another, and the picture is taken again."""
        png = ""
        for _ in range(TRIES):
            self._page.evaluate(READY_FOR_PICTURE)
            self._override(scale)
            png = self._cdp.send("Page.captureScreenshot", {"format": "png"})["data"]
            as_before = self._page.evaluate(HOVERS_AS_BEFORE)
            self.for_acting()
            if as_before:
                break
            self.wait()
        return base64.b64decode(png)

    def _override(self, scale: float) -> None:
        metrics: dict[str, Any] = {
            **SETUP,
            "screenWidth": SETUP["width"],
            "screenHeight": SETUP["height"],
            "deviceScaleFactor": scale,
            "mobile": False,
        }
        self._cdp.send("Emulation.setDeviceMetricsOverride", metrics)
        self._for_setup = True
