"""Actions on an element that a busy machine cannot fail.

BrowserGym gives each action 500 ms. On a busy machine a click on a perfectly good button can take
longer, and the policy would be punished for our load. So no action here fails because time ran out.
It fails where the page refuses it, in words that Playwright writes to its log; where there are no
such words, it gets more time, and where that does not help either, the episode is lost to the
infrastructure. A click that may have reached the page is never made again: the page itself is asked
whether it has seen it.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from playwright.sync_api import ElementHandle, Locator
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from helpers.browser import private
from helpers.browser.pool import InfrastructureError

STOCK_MS = 500  # BrowserGym's time limit
QUICK_MS = 100  # enough for a refusal on a machine that is not busy
# Enough there for the five tries of a click that Playwright makes without a longer pause: one as
# the page stands, one for each way to scroll the element into view, and the first way again.
TRIES = 5
# Each time limit of a click, and how many refused tries within it are a refusal.
MOUSE_LIMITS = ((750, TRIES), (1_500, TRIES), (2_500, 1))
PATIENCE_MS = 4_000  # what a busy machine gets last; the pool's deadline for a whole step is 7 s
# Each time limit of what the page is bound to refuse, until it has said so.
REFUSAL_LIMITS = (QUICK_MS, STOCK_MS, PATIENCE_MS)
POLL_MS = 50

# Functions of page.js.
# "blocked": the click is bound to be refused. "changes": the element is an icon that is another
# picture under the mouse, and has no width until that one is drawn; the mouse's button would go
# down beside it. "middle": of such an icon, which is scrolled into view for it.
LOOK = """(element, clicks) => {
    if (!window.__course) return {};
    const blocked = __course.blocked(element), onlyTried = blocked;
    if (clicks) __course.expectClick(element, onlyTried);
    const changes = clicks && __course.changesUnderMouse(element);
    return {blocked, changes, middle: changes ? __course.middleInView(element) : null};
}"""
# The same for the one element that has a bid, asked in one message: a locator needs eight.
OF_BID = """async ([bid, argument]) => {
    const element = window.__course && __course.only(bid);
    return element ? {said: await (FUNCTION)(element, argument)} : null;
}"""
DRAW_ICONS = "() => window.__course && __course.drawIcons()"
# A page may disable the field that it sees focused. The field loses the focus with the next frame,
# and a key that comes before it may be lost with it.
FOCUS = """element => {
    element.focus();
    return window.__course && __course.drawBlur();
}"""
EXPECT_CLICK = "element => window.__course && __course.expectClick(element, false)"
CLICK_SO_FAR = "() => window.__course ? __course.clickSoFar() : null"
FORGET_CLICK = "() => window.__course && __course.forgetClick()"
# Whether Playwright would not find these options, by value or by label. One that is no list it
# refuses at once.
LACKS_OPTIONS = """(list, wanted) => {
    const has = each => [...list.options].some(o => o.value === each || o.label === each);
    return "options" in list && !(list.multiple ? wanted.every(has) : wanted.some(has));
}"""
LEAVE_SCROLLED = "element => window.__course && __course.leaveScrolled(element)"

# The lines of Playwright's log in which the page refuses the action. Whole lines, for the log also
# quotes the page and the policy.
_REFUSAL = re.compile(
    r"element is not \w+|element is outside of the viewport|.* intercepts pointer events"
    r"|did not find some options"
)
_PERFORMING = re.compile(r"performing \w+ action")
_DONE = re.compile(r"\w+ action done")
# Those after which Playwright scrolls the element into view in another way and tries again.
_SCROLLED_AFTER = ("outside of the viewport", "intercepts pointer events")


class CallLog:
    """What Playwright wrote down while it tried an action, until the time was up."""

    def __init__(self, error: Exception) -> None:
        text = str(error).partition("Call log:")[2]
        lines = [line.strip(" -") for line in text.splitlines()]
        self.refusals = [line for line in lines if _REFUSAL.fullmatch(line)]
        # Only the waiting for a document that the action leads to took too long.
        self.done = any(_DONE.fullmatch(line) for line in lines)
        # How often the mouse was used, and whether what came of the last time is not known yet: its
        # events are on their way to the page, or there already.
        self.performed = 0
        self.under_way = False
        for line in lines:
            if _PERFORMING.fullmatch(line):
                self.performed += 1
                self.under_way = True
            elif _REFUSAL.fullmatch(line):
                self.under_way = False

    @property
    def scrolled(self) -> bool:
        """Whether a refusal was answered by scrolling."""
        return any(refusal.endswith(_SCROLLED_AFTER) for refusal in self.refusals)


class LoadTolerantLocator:
    """A locator for BrowserGym's action functions. They call its methods with ``timeout=500``,
    which is replaced. Each raises Playwright's TimeoutError where the page refuses the action, and
    `InfrastructureError` where nobody can say why it did not happen."""

    def __init__(
        self, locator: Locator, bid: str = "", find: Callable[[], Locator] | None = None
    ) -> None:
        """``bid``: of the element, where it has one. ``find``: for a locator of which nobody knows
        whether it finds the element, what is asked where it is not the only one with its bid."""
        self._locator = locator
        self._bid = bid
        self._find = find

    def _ask(self, function: str, argument: Any = None) -> Any:
        """What a function of the page says of the element."""
        if self._bid:
            script = OF_BID.replace("FUNCTION", function)
            answer = self._locator.page.evaluate(script, [self._bid, argument])
            if answer is not None:
                return answer["said"]
        if self._find is not None:
            self._locator = self._find()
            self._find = None
        return self._locator.evaluate(function, argument)

    # ---- the mouse ----

    def click(self, **named: Any) -> None:
        """Click, once."""
        self._use_mouse("click", named, releases=1)

    def dblclick(self, **named: Any) -> None:
        """Double-click, once."""
        self._use_mouse("dblclick", named, releases=2)

    def hover(self, **named: Any) -> None:
        """Move the mouse here. To move it here twice is to move it here."""
        self._use_mouse("hover", named, releases=0)

    def _use_mouse(self, name: str, named: dict[str, Any], releases: int) -> None:
        """``releases``: how often the page sees the mouse's button go up, 0 for a mere move."""
        look = self._ask(LOOK, releases > 0)
        if look.get("blocked"):
            self._try_out(name, named)
            self._expect_click(releases)
        elif look.get("changes"):
            self._draw_icon(look["middle"])
        for limit, tries in MOUSE_LIMITS:
            try:
                getattr(self._locator, name)(**named | {"timeout": limit})
                return
            except PlaywrightTimeout as error:
                log = CallLog(error)
                if log.done:
                    return
                if log.under_way and releases:
                    if self._has_hit(name, log.performed * releases):
                        return
                elif len(log.refusals) >= tries:
                    self._after_refusal(log)
                    raise
                # Too few tries to know, or none, or a click that was kept from what lies above
                # and that Playwright has no words for yet: this is the machine's doing.
                self._expect_click(releases)
        self._expect_click(0)
        raise _too_slow(name)

    def _draw_icon(self, middle: list[float] | None) -> None:
        """Have the icon drawn as it is under the mouse."""
        page = self._locator.page
        if middle is not None:
            page.mouse.move(*middle)
        else:
            with suppress(PlaywrightTimeout):  # the click will be refused, in its own words
                self.hover()
        page.evaluate(DRAW_ICONS)

    def _expect_click(self, releases: int) -> None:
        """From now on the page keeps a click from everything but this element, and counts the
        releases of the mouse's button. With 0 it does not."""
        if releases:
            self._ask(EXPECT_CLICK)
        else:
            self._locator.page.evaluate(FORGET_CLICK)

    def _try_out(self, name: str, named: dict[str, Any]) -> None:
        """What is bound to be refused is only tried out, so that the refusal has Playwright's words
        without half a second's waiting. Returns where Playwright knows better."""
        try:
            self._retry(self._locator, name, (), named | {"trial": True}, *REFUSAL_LIMITS)
        except PlaywrightTimeout as error:
            self._after_refusal(CallLog(error))
            raise

    def _after_refusal(self, log: CallLog) -> None:
        """No click is expected any more. How often Playwright scrolled the page depends on the
        machine's speed, so it is put where the last way to scroll puts it.

        Nothing is waited for. Playwright may try once more when the time is up (see
        `_try_refused`), but a try of the mouse looks at the time again before it scrolls or moves
        (`_performPointerAction` in its dom.ts), and then does neither."""
        self._expect_click(0)
        if log.scrolled:
            self._ask(LEAVE_SCROLLED)

    def _has_hit(self, name: str, releases: int) -> bool:
        """The time was up while the click was under way: wait until the mouse's button has gone up
        ``releases`` times in all. Whether the click has reached the element, not one above it."""
        for _ in range(PATIENCE_MS // POLL_MS):
            try:
                click = self._locator.page.evaluate(CLICK_SO_FAR)
            except PlaywrightError:  # it has led to another document
                return True
            if click is None:  # it has, and that one is loaded
                return True
            if click["releases"] >= releases:
                return click["hit"]
            self._locator.page.wait_for_timeout(POLL_MS)
        raise _too_slow(name)

    # ---- fields: made once, for what the page does when one is focused may be to disable it ----

    def fill(self, value: str, **named: Any) -> None:
        """Replace the text of a field, once."""
        self._change_field("fill", (value,), named, refused=not self._takes_input())

    def clear(self, **named: Any) -> None:
        """Empty a field, once."""
        self._change_field("clear", (), named, refused=not self._takes_input())

    def select_option(self, options: str | list[str], **named: Any) -> None:
        """Choose from a list, once."""
        wanted = [options] if isinstance(options, str) else options
        refused = not self._takes_input() or self._ask(LACKS_OPTIONS, wanted)
        self._change_field("select_option", (options,), named, refused)

    def _takes_input(self) -> bool:
        """Whether Playwright would find the field visible, enabled and editable. Asked before, for
        its log does not tell whether a try that ended for lack of time has reached the page."""
        return self._locator.is_visible() and self._locator.is_editable(timeout=PATIENCE_MS)

    def _change_field(
        self, name: str, arguments: tuple[Any, ...], named: dict[str, Any], refused: bool
    ) -> None:
        """``refused``: whether the page will refuse it. Then it is tried for a short time, which is
        enough for Playwright's words; else it has all the time there is."""
        if refused:
            self._try_refused(name, arguments, named)
        else:
            self._retry(self._locator, name, arguments, named, PATIENCE_MS)

    # ---- what the page is bound to refuse ----

    def _try_refused(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Try it for a short time, for Playwright's words.

        Playwright looks at the time only before it waits for its next try (`_retryAction` in its
        dom.ts), so it may try once more when the time is up. By then the field may be enabled, or
        the page serve another episode. So the element is held by a handle of its own, which is
        taken away: what comes late has nothing to act on."""
        handle = self._locator.element_handle(timeout=PATIENCE_MS)
        act = name
        if name == "clear":  # which a handle has not
            act, arguments = "fill", ("",)
        try:
            self._retry(handle, act, arguments, named, *REFUSAL_LIMITS)
        except PlaywrightTimeout as error:
            said = str(error).replace(f"ElementHandle.{act}", f"Locator.{name}", 1)
            raise PlaywrightTimeout(said) from error
        finally:
            with suppress(PlaywrightError):  # it has gone with its document
                handle.dispose()

    # ---- what may be tried again: a second time changes nothing ----

    def focus(self, **named: Any) -> None:
        """Focus the element."""
        self._retry(self._locator, "focus", (), named, STOCK_MS, PATIENCE_MS)

    def _retry(
        self,
        on: Locator | ElementHandle,
        name: str,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        *limits: int,
    ) -> None:
        """Call the method of Playwright's with each time limit (ms) in turn until the page takes it
        or refuses it."""
        for limit in limits:
            try:
                getattr(on, name)(*arguments, **named | {"timeout": limit})
                return
            except PlaywrightTimeout as error:
                if CallLog(error).refusals:
                    raise
        raise _too_slow(name)

    # ---- keys ----

    def press(self, key_comb: str, **_: Any) -> None:
        """Press a key or a combination, once. Nothing refuses it but a key that does not exist."""
        for key in split_keys(key_comb):
            if key not in private.known_keys():
                # Playwright tries for the whole time, then fails. Without the keys before this
                # one, which would be held down ever after.
                self._locator.press(key, timeout=STOCK_MS)
        with suppress(PlaywrightError):  # who presses is told, in the words for a press
            self._ask(FOCUS)
        try:
            self._locator.press(key_comb, timeout=PATIENCE_MS)
        except PlaywrightTimeout as error:
            raise _too_slow("press") from error


def split_keys(key_comb: str) -> list[str]:
    """The keys of a combination, as Playwright splits it: "Control++" is Control and "+"."""
    keys = [""]
    for character in key_comb:
        if character == "+" and keys[-1]:
            keys.append("")
        else:
            keys[-1] += character
    return keys


def _too_slow(name: str) -> InfrastructureError:
    return InfrastructureError(f"the browser did not get through a {name} in time")
