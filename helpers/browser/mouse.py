"""The page as BrowserGym's action functions use it: with a mouse whose button never stays down, and
that is where an episode begins with it; and with a keyboard whose keys never stay down."""

from typing import Any, Literal

from playwright.sync_api import CDPSession, Page

from helpers.browser import private
from helpers.browser.locator import DRAW_ICONS, split_keys

# Functions of page.js.
MOUSE_HAS_MOVED = "() => !window.__course || __course.mouseHasMoved()"
CHANGES_AT = """([x, y]) => {
    const element = window.__course && document.elementFromPoint(x, y);
    return Boolean(element) && __course.changesUnderMouse(element);
}"""
KEEP_CLICK_AWAY = "away => window.__course && __course.keepClickAway(away)"


class ActionPage:
    """A page of Playwright's, with an `ActionMouse` and an `ActionKeyboard` in the places of its
    own."""

    def __init__(self, page: Page, cdp: CDPSession) -> None:
        self._page = page
        self.mouse = ActionMouse(page, cdp)
        self.keyboard = ActionKeyboard(page)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)


class ActionMouse:
    """What BrowserGym's functions ask of a mouse."""

    def __init__(self, page: Page, cdp: CDPSession) -> None:
        self._page = page
        self._cdp = cdp
        self._is_down = False

    def move(self, x: float, y: float) -> None:
        """Move to a place, in pixels of the page."""
        self._page.mouse.move(x, y)

    def click(self, x: float, y: float, button: Literal["left"] = "left") -> None:
        """Click a place."""
        self._draw_icon(x, y)
        self._page.mouse.click(x, y, button=button)

    def dblclick(self, x: float, y: float, button: Literal["left"] = "left") -> None:
        """Double-click a place."""
        self._draw_icon(x, y)
        self._page.mouse.dblclick(x, y, button=button)

    def _draw_icon(self, x: float, y: float) -> None:
        """An icon that is another picture under the mouse has no width until that one is drawn: the
        button would go down beside it."""
        if self._page.evaluate(CHANGES_AT, [x, y]):
            self.move(x, y)
            self._page.evaluate(DRAW_ICONS)

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


class ActionKeyboard:
    """What BrowserGym's functions ask of a keyboard: it types where the focus is."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, key_comb: str) -> None:
        """Press a key or a combination. One that does not exist is pressed without those before it,
        which would be held down ever after: Playwright refuses it."""
        for key in split_keys(key_comb):
            if key not in private.known_keys():
                self._page.keyboard.press(key)
        self._page.keyboard.press(key_comb)

    def type(self, text: str, delay: float | None = None) -> None:
        """Type a text, key by key."""
        self._page.keyboard.type(text, delay=delay)
