"""The page as BrowserGym's action functions use it: with a mouse whose button never stays down, and
that is where an episode begins with it."""

from typing import Any

from playwright.sync_api import CDPSession, Page

# Functions of page.js.
MOUSE_HAS_MOVED = "() => !window.__course || __course.mouseHasMoved()"
KEEP_CLICK_AWAY = "away => window.__course && __course.keepClickAway(away)"


class ActionPage:
    """A page of Playwright's, with an `ActionMouse` in the place of its mouse."""

    def __init__(self, page: Page, cdp: CDPSession) -> None:
        self._page = page
        self.mouse = ActionMouse(page, cdp)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)


class ActionMouse:
    """What BrowserGym's functions ask of a mouse."""

    def __init__(self, page: Page, cdp: CDPSession) -> None:
        self._page = page
        self._cdp = cdp
        self._is_down = False

    def down(self) -> None:
        """Press the button."""
        self._is_down = True
        self._page.mouse.down()

    def up(self) -> None:
        """Release the button."""
        self._page.mouse.up()
        self._is_down = False

    def wheel(self, delta_x: float, delta_y: float) -> None:
        """Turn the wheel where the mouse is: in the corner, where it is in a new page, until the
        episode has moved it. Playwright would turn it where the last episode left it."""
        if self._page.evaluate(MOUSE_HAS_MOVED):
            self._page.mouse.wheel(delta_x, delta_y)
            return
        turn = {"type": "mouseWheel", "x": 0, "y": 0, "deltaX": delta_x, "deltaY": delta_y}
        self._cdp.send("Input.dispatchMouseEvent", turn)

    def release(self) -> None:
        """Release the button where a drag has failed. The page sees the drag end where the mouse
        is; it sees no click, for nobody asked for one."""
        if not self._is_down:
            return
        self._page.evaluate(KEEP_CLICK_AWAY, True)
        self.up()
        self._page.evaluate(KEEP_CLICK_AWAY, False)
