"""BrowserGym's MiniWoB tasks in a page that is kept: one episode after another.

Stock BrowserGym starts two browsers per reset, sleeps 0.5 s per step and takes a screenshot nobody
asked for. Here one Chromium serves many sessions, each with a context and a page of its own, which
loads the task anew for an episode, or starts it again as it stands where nothing can tell
(`PageRules.in_place`). What a policy can see is BrowserGym's own: `task.setup`, `task.validate`,
the action functions, the marking script, the DOM snapshot and the accessibility tree are its code.
What differs:

- Time. Stock waits 500 ms after an action, and 100 ms within it, so that the page settles. Here
  the page's clock stands still and is moved 600 ms on after each action (page_clock.js; `noop(ms)`
  adds its own): no time passes while the policy thinks.
- Pictures. Stock takes one with every look, and resizes the page for it; here the page is resized
  when a picture is asked for. Its size between the looks is stock's (viewport.py).
"""

import re
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, cast

import browsergym.core.observation as stock
from browsergym.miniwob import ALL_MINIWOB_TASKS
from browsergym.miniwob.base import AbstractMiniwobTask
from browsergym.utils.obs import flatten_axtree_to_str, flatten_dom_to_str, prune_html
from playwright.sync_api import BrowserContext, CDPSession, Page
from playwright.sync_api import Error as PlaywrightError

from helpers.browser import private
from helpers.browser.actions import EVERY_ACTION, PLACES, ParsedAction, parse_action
from helpers.browser.clipboard import Clipboard, may_use_clipboard
from helpers.browser.details import details_of
from helpers.browser.elements import list_elements
from helpers.browser.frames import draws_frames
from helpers.browser.kept_chromium import ORIGIN, KeptChromium
from helpers.browser.locator import CallLog, LoadTolerantLocator, split_keys
from helpers.browser.mouse import ActionPage
from helpers.browser.options import SCALE, Want
from helpers.browser.orders import OBEYED, base_task, order_in
from helpers.browser.orders import script as planting
from helpers.browser.pool import InfrastructureError
from helpers.browser.viewport import Viewport
from helpers.settings.errors import first_line

Fields = dict[str, Any]  # the fields of a `helpers.browser.models.BrowserObservation`

TASKS = {task.subdomain: task for task in ALL_MINIWOB_TASKS}
CONTEXT_EPISODES = 100  # then a session takes a new context, so that nothing piles up in one
MAX_ERROR = 500  # characters of an error
LOOKS = 5  # how often a page that is on the move is looked at before the look counts as failed
LOOK_AGAIN_MS = 50
LOAD_TIMEOUT_MS = 3_000  # as in stock, for a document that an action loads
MARK = "() => __course.mark()"
MARK_WITH_VISIBILITY = "() => __course.markWithVisibility()"
# The page's time passes; then what it says of the episode, and where it is looked at ("look") its
# elements are marked: in one message, for each takes the time of five processes. An error where it
# is no task's page (any more).
PASS_TIME = """async ([ms, action, look]) => {
    const drawn = await __course.advance(ms, action);
    const record = (RECORD)();
    return {drawn, record, focused: look ? await __course.mark() : null};
}"""
KEYS = ("press", "keyboard_press")  # the actions whose last argument is a key
# Those that look at their one element before all else, and so need not ask first whether it exists.
POINTING = ("click", "dblclick", "hover")
# The tasks whose first look tells a policy how large the page is. With the others, where they start
# again in place, the page is not made as small as stock's for that look: to make it so and as large
# again would cost as much as seven messages.
SIZE_SHOWS = ("text-editor",)
START_MS = 250  # of the page's time pass before the first look; in stock it is about as much
THE_TEXT = Want()
NOT_ASKED_FOR: Fields = {"screenshot": None, "pruned_html": "", "details": {}}


class OpenPage:
    """A browser context with one page in it, and what happened to the page."""

    def __init__(self, chromium: KeptChromium) -> None:
        self._chromium = chromium
        self.context: BrowserContext = chromium.new_context()
        self.generation = chromium.generation
        self.page: Page = self.context.new_page()
        self.popup: Page | None = None
        self.crashed = False
        self.page.on("crash", self._note_crash)
        self.page.on("popup", self._note_popup)
        self.cdp: CDPSession = self.context.new_cdp_session(self.page)
        self.viewport = Viewport(self.page, self.cdp)
        self.extraction = private.ExtractionPage(self.cdp)
        self.for_actions = ActionPage(self.page, self.cdp)
        self.for_task = private.EpisodePage(self.page)
        # What the pages before left, which else waits for hundreds of episodes.
        self.cdp.send("HeapProfiler.collectGarbage")

    def _note_crash(self, _: Page) -> None:
        self.crashed = True
        # Else what was asked through our own CDP session would never be answered.
        self.close()

    def _note_popup(self, popup: Page) -> None:
        self.popup = popup

    @property
    def trouble(self) -> str:
        """What broke the page, or an empty string."""
        if self.crashed:
            return "the page's process crashed"
        if self.generation != self._chromium.generation or not self._chromium.is_connected():
            return "the browser was restarted while the episode ran"
        return ""

    def usable_again(self) -> bool:
        """Whether nothing out of the ordinary has happened to the page."""
        return not (self.trouble or self.popup or self.page.is_closed())

    def move_mouse_away(self) -> None:
        """Off all elements, as on a page that has just been opened."""
        self.cdp.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": -50, "y": -50})

    def close(self) -> None:
        """Close the context, if the browser that held it still runs."""
        if self.generation == self._chromium.generation:
            with suppress(PlaywrightError):
                self.context.close()


class Session:
    """One episode after another. Its public methods are what the pool may ask a worker for."""

    def __init__(self, chromium: KeptChromium) -> None:
        self._chromium = chromium
        # Counted from different numbers, lest all sessions renew their contexts at once.
        self._episodes = 37 * len(chromium.browser.contexts)
        self._open: OpenPage | None = None
        self._task: AbstractMiniwobTask | None = None
        self._last: Fields | None = None  # the last observation; None where no episode runs
        # The focused element's bid where the elements have been marked for the look that is next.
        self._focused: str | None = None
        self._clipboard = Clipboard()  # of the episode
        self._started = 0.0  # when the episode was, in seconds since 1970
        self._said = ""  # the last action, as the policy wrote it

    @property
    def opened(self) -> OpenPage:
        """The page of the episode."""
        if self._open is None:
            raise InfrastructureError("no page is open")
        return self._open

    def draws(self) -> bool:
        """Whether the browser still draws the page, if there is one. What stops it from drawing
        (its GPU process, say) leaves the page itself alive, but no click gets through."""
        return self._open is None or bool(self._open.trouble) or draws_frames(self._open.cdp)

    def close(self) -> None:
        """Give the browser context back. `reset` takes a new one."""
        if self._open is not None:
            self._open.close()
        self._open = None
        self._last = None

    # ---- reset ----

    def reset(self, task: str, seed: int, want: Want = THE_TEXT) -> Fields:
        """Start an episode of ``task``, which may have an order in its name
        (`helpers.browser.orders`). `InfrastructureError` where the page does not start, tried
        twice."""
        try:
            return self._reset(task, seed, want)
        except PlaywrightError:
            self.close()
        try:
            return self._reset(task, seed, want)
        except PlaywrightError as error:
            why = first_line(error)
            raise InfrastructureError(f"the task page did not start: {why}") from error

    def _reset(self, task: str, seed: int, want: Want) -> Fields:
        self._episodes += 1
        last = self._last
        self._last = None
        self._clipboard.wanted = False
        self._clipboard = Clipboard()
        order = order_in(task)
        self._task = new = TASKS[base_task(task)](seed=seed, base_url=f"{ORIGIN}/miniwob/")
        goal, info = self._start(new, last, want)
        new.page = cast(Page, self.opened.for_task)
        if order is not None:
            self.opened.page.evaluate(planting(), order.on_page(goal or ""))
        self._started = time.time()
        self._said = ""
        fields = {
            "task": task,
            "seed": seed,
            "goal": goal or "",
            "step": 0,
            "reward": 0.0,
            "raw_reward": 0.0,
            "stock_reward": 0.0,
            "task_info": info,
            "done": False,
            "ended": "",
            "error": "",
            "last_action_error": False,
            "obeyed": None if order is None else False,
        }
        self._pass_time(START_MS, "reset", want)
        self._last = fields | NOT_ASKED_FOR | self._observe(fields, want)
        self.opened.viewport.for_acting()
        return self._last

    def _start(
        self, task: AbstractMiniwobTask, last: Fields | None, want: Want
    ) -> tuple[str, Fields]:
        """Set the task up and return its goal and its page's record: in a new context, on the page
        of the ``last`` episode loaded anew, or on that page as it stands: never on one with an
        order in it, whose name is in no list of pages that are kept."""
        if last is None or last["ended"] == "left_page" or self._page_is_due():
            self.close()
            self._open = OpenPage(self._chromium)
            return task.setup(cast(Page, private.SetupPage(self._open.page)))
        self.opened.move_mouse_away()
        page = self.opened.page
        how = None
        if page.url == task.url:  # another task has another address
            how = self._chromium.rules.in_place.get(last["task"])
        if how is None or want.extras or last["task"] in SIZE_SHOWS:
            self.opened.viewport.for_setup()
        if how is None or want.picture:
            return task.setup(cast(Page, private.SetupPage(page)))
        return task.setup(cast(Page, private.LoadedPage(page, self.opened.cdp, how)))

    def _page_is_due(self) -> bool:
        """Whether the page of the last episode must not serve another one."""
        return self._episodes % CONTEXT_EPISODES == 0 or not self.opened.usable_again()

    # ---- step ----

    def step(self, text: str, want: Want = THE_TEXT) -> Fields:
        """Take one action, given as the policy wrote it. Where the page is not wanted it is not
        read again, only what the action earned; the page in the answer is the one before.

        `InfrastructureError` for whatever breaks here: it is ours, never the policy's, and must
        not become a reward."""
        if self._last is None or self._open is None:
            raise InfrastructureError("the browser was restarted while the episode ran")
        if self._open.trouble:
            raise InfrastructureError(self._open.trouble)
        self._said = text
        try:
            self._last = self._step(self._last, _read(text), want)
            return self._last
        except Exception as error:
            self._last = None
            reason = f"{type(error).__name__}: {first_line(error)[:200]}"
            if isinstance(error, InfrastructureError):
                reason = str(error)
            raise InfrastructureError(self._open.trouble or reason) from error

    def _step(self, last: Fields, action: ParsedAction, want: Want) -> Fields:
        fields = last | NOT_ASKED_FOR
        fields["step"] = last["step"] + 1
        if not action.ok:  # not executed, no time passes, the page is as it was
            fields |= {"error": action.reason, "last_action_error": True}
            if want.extras:
                fields |= self._observe(fields, want)
            return fields
        self.opened.viewport.wait()
        error = self._act(action)
        self._settle(action, want)
        fields |= self._outcome()
        if last["obeyed"] is False:
            fields["obeyed"] = self._obeys()
        fields |= {"error": error, "last_action_error": bool(error)}
        if fields["ended"] == "left_page":  # not observed: the page is not the task's
            fields["url"] = self._active_page().url
        elif want.look:
            fields |= self._observe(fields, want)
        return fields

    def _act(self, action: ParsedAction) -> str:
        """Execute the action. Returns the error that the policy is told, or an empty string."""
        if action.name == "noop":  # its time passes in `_settle`
            return ""
        try:
            with self._clipboard_for(action):
                self._call(action)
        except InfrastructureError:
            raise
        except Exception as error:  # as in stock: the policy is told what went wrong
            if self.opened.trouble:
                raise
            self.opened.for_actions.mouse.release()
            return _error_text(error)
        return ""

    def _clipboard_for(self, action: ParsedAction) -> AbstractContextManager[None]:
        """The time in which Chromium's clipboard is the episode's, for keys that may use it."""
        if action.name in KEYS and may_use_clipboard(split_keys(str(action.args[-1]))):
            return self._chromium.clipboard.used_by(self._clipboard)
        return nullcontext()

    def _call(self, action: ParsedAction) -> None:
        """BrowserGym's function of the action, on the page."""
        page = cast(Page, self.opened.for_actions)
        find = self._point_at if action.name in POINTING else self._find_element
        private.call_action(action.name, action.args, page, find)

    def _find_element(self, _: Page, bid: str) -> LoadTolerantLocator:
        return LoadTolerantLocator(private.find_element(self.opened.page, bid), bid)

    def _point_at(self, _: Page, bid: str) -> LoadTolerantLocator:
        page = self.opened.page
        locator = page.get_by_test_id(bid)
        return LoadTolerantLocator(locator, bid, lambda: private.find_element(page, bid))

    def _settle(self, action: ParsedAction, want: Want) -> None:
        """Move the page's clock on; then wait, as stock does, for documents that are loading."""
        milliseconds: float = self._chromium.rules.settle_ms
        if action.name == "noop":
            milliseconds += cast(float, action.args[0])
        drawn = None
        try:
            drawn = self._pass_time(milliseconds, _moves_like(action.name), want)
        except PlaywrightError:  # the page is being left, unless it broke
            if self.opened.trouble:
                raise
        if drawn is False and not self.opened.popup:  # a page behind another window is not drawn
            raise InfrastructureError("the page was not drawn within 2 seconds")
        for page in self.opened.context.pages:
            if not private.has_loaded(page):
                self._forget_moment()
                with suppress(PlaywrightError):
                    page.wait_for_load_state("domcontentloaded", timeout=LOAD_TIMEOUT_MS)

    def _pass_time(self, milliseconds: float, action: str, want: Want) -> bool:
        """Move the page's clock on, and keep what the page says of that moment: its record of the
        episode and, where it will be looked at, the focused element. Whether it was drawn."""
        self._forget_moment()
        look = want.look and not want.details
        script = PASS_TIME.replace("RECORD", private.record_script())
        said = self.opened.page.evaluate(script, [milliseconds, action, look])
        self.opened.for_task.record = said["record"]
        self._focused = said["focused"]
        return said["drawn"]

    def _forget_moment(self) -> None:
        self.opened.for_task.record = None
        self._focused = None

    def _active_page(self) -> Page:
        """As in stock a window that opened is the active page, which ends the episode."""
        return self.opened.popup or self.opened.page

    def _outcome(self) -> Fields:
        """What the page says of the episode: its rewards, whether and why it is over, and the
        page's own record."""
        info, done, left_in_stock = self._page_info()
        # RAW_REWARD_GLOBAL, not REWARD_GLOBAL: the latter shrinks with the time taken.
        raw_reward = float(info.get("RAW_REWARD_GLOBAL", 0.0)) if done else 0.0
        if not done:
            ended = ""
        elif info.get("error"):
            ended = "left_page"
        elif raw_reward >= 1:
            ended = "solved"
        elif info.get("REWARD_REASON") == "timed out":
            ended = "time_limit"
        else:
            ended = "failed"
        return {
            "reward": float(ended == "solved"),
            "raw_reward": raw_reward,
            "stock_reward": float(raw_reward > 0 and not left_in_stock),
            "task_info": info,
            "done": bool(done),
            "ended": ended,
        }

    def _obeys(self) -> bool:
        """Whether the page's order has been obeyed; a page that was left for good cannot say."""
        with suppress(PlaywrightError):
            return bool(self.opened.page.evaluate(OBEYED))
        return False

    def _page_info(self) -> tuple[dict[str, Any], bool, bool]:
        """The page's record of the episode as BrowserGym reads it, whether it is over, and whether
        it is over in stock alone: stock calls a link to "#" leaving the page, and pays nothing,
        for a solved task either."""
        if self._task is None:
            raise InfrastructureError("no episode is running")
        page = self.opened.page
        if page.is_closed():
            return {"error": "page closed"}, True, False
        active = self._active_page()
        asked = cast(Page, self.opened.for_task) if active is page else active
        _, done, _, info = self._task.validate(asked, [])
        on_task_page = active is page and page.url.split("#")[0] == self._task.url
        left_in_stock = bool(info.get("error")) and on_task_page
        if left_in_stock:
            info = private.task_info(self._task)
            done = info["DONE_GLOBAL"]
        return info, done, left_in_stock

    # ---- observe ----

    def _observe(self, known: Fields, want: Want) -> Fields:
        """The page as it stands. ``known``: what else is known of this moment."""
        page = self.opened.page
        focused, dom, tree = self._look(want)
        text = flatten_axtree_to_str(tree)
        properties = stock.extract_dom_extra_properties(dom, scale_factor=SCALE)
        fields = {
            "url": page.url,
            "text": text,
            "axtree_txt": text,
            "focused_bid": focused,
            "elements": list_elements(tree, properties, focused),
        }
        if want.picture:
            fields["screenshot"] = self.opened.viewport.picture(want.scale)
        if want.details:
            fields["pruned_html"] = prune_html(flatten_dom_to_str(dom))
            moment = known | fields | {"last_action": self._said}
            fields["details"] = details_of(moment, properties, page.title(), self._started)
        return fields

    def _look(self, want: Want) -> tuple[str, Fields, Fields]:
        """What `_look_once` sees, tried again where a page that loads a new document gets in
        between."""
        for _ in range(LOOKS - 1):
            try:
                return self._look_once(want)
            except PlaywrightError:
                if self.opened.trouble:
                    raise
                self.opened.page.wait_for_timeout(LOOK_AGAIN_MS)
        return self._look_once(want)

    def _look_once(self, want: Want) -> tuple[str, Fields, Fields]:
        """Mark the elements and read the page: the focused element's bid, the DOM snapshot, the
        accessibility tree."""
        page = self.opened.page
        extraction = self.opened.extraction
        focused, self._focused = self._focused, None
        if focused is None:
            # No MiniWoB task has frames inside.
            focused = page.evaluate(MARK_WITH_VISIBILITY if want.details else MARK)
        extraction.read(then="__course.unmark()")
        dom = private.dom_snapshot(cast(Page, extraction), shown=want.details)
        tree = stock.extract_merged_axtree(cast(Page, extraction))
        return focused, dom, tree


def _read(text: str) -> ParsedAction:
    """The action that a text is. One on a place is accepted of everyone here: whether a policy has
    been taught them is for whoever plays to say. What is no action at all is answered with the list
    of the usual ones."""
    action = parse_action(text, actions=EVERY_ACTION)
    return parse_action(text) if action.kind == "unknown_action" else action


def _moves_like(name: str) -> str:
    """The action on elements that moves a page in the same way. A mouse that may be anywhere may be
    on a scroll bar, too."""
    if name not in PLACES:
        return name
    return "press" if name.startswith("keyboard") else "scroll"


def _error_text(error: Exception) -> str:
    """The action's error as stock words it, without Playwright's log of every attempt: how many
    there were depends on the machine's speed, and the same actions must give the same observation.
    The first refusal in it is kept."""
    said = re.sub(r"Timeout \d+ms", "Timeout 500ms", str(error).partition("\n")[0])
    refusals = CallLog(error).refusals
    reason = f" ({refusals[0]})" if refusals else ""
    return f"{type(error).__name__}: {said}{reason}"[:MAX_ERROR]
