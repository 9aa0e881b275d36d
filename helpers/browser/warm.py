"""BrowserGym's MiniWoB tasks in a browser that stays open.

Stock BrowserGym starts two browsers per reset, sleeps 0.5 s per step and takes a screenshot nobody asked for. Here one Chromium
serves many sessions, each with a context and a page of its own, which loads the task anew for an episode, or starts it again as
it stands where nothing can tell (IN_PLACE). What a policy can see is BrowserGym's own: `task.setup`, `task.validate`, the action
functions, the marking script, the DOM snapshot and the accessibility tree are its code, unchanged. What differs:

- Time. Stock waits 500 ms after an action, and 100 ms within it, so that the page settles. Here the page's clock stands still
  and is moved 600 ms on after each action (page.js; `noop(ms)` adds its own): no time passes while the policy thinks.
- The viewport stays 332 x 214, as the tasks ask. Stock loses that size with its first screenshot (a session that overrides the
  device metrics is detached); from then on every step resizes the page twice, which moves elements and closes open lists.
"""

import asyncio
import base64
import inspect
import json
import os
import pkgutil
import re
import traceback
from contextlib import suppress
from pathlib import Path
from types import FunctionType

import browsergym.core.action.functions as actions
import browsergym.core.observation as stock
from browsergym.core.action.utils import get_elem_by_bid
from browsergym.core.constants import BROWSERGYM_ID_ATTRIBUTE
from browsergym.miniwob import ALL_MINIWOB_TASKS
from browsergym.utils.obs import IGNORED_AXTREE_ROLES, flatten_axtree_to_str
from playwright._impl._connection import Connection
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import sync_playwright

from helpers.browser.actions import parse_action
from helpers.browser.chromium import find_chromium, task_flags
from helpers.browser.pool import InfrastructureError

TASKS = {task.subdomain: task for task in ALL_MINIWOB_TASKS}
VIEWPORT = {"width": 332, "height": 214}
SETTLE_MS = int(
    os.environ.get("PARITY_SETTLE_MS", 600)
)  # stock: 500 ms pre_observation_delay and 100 ms slow_mo
ORIGIN = "http://miniwob.localhost"  # a name instead of a port: the same address, and so the same text, in every run
# Tasks whose page may start the next episode without being loaded again, its elements kept or copied (page.js): where nothing
# that is shown differs then, as `python -m benchmarks.parity --choose` found. It compares no pictures, so not with those.
IN_PLACE = json.loads(Path(__file__).with_name("in_place.json").read_text())
if how := os.environ.get("PARITY_IN_PLACE"):
    IN_PLACE = {} if how == "no" else dict.fromkeys(TASKS, how)
CONTEXT_EPISODES = (
    100  # then a session takes a fresh browser context, so that nothing piles up in one
)
MAX_ERROR, QUICK_MS, PATIENCE_MS = (
    500,
    100,
    5_000,
)  # characters of an error; an action's first try, its last on a busy machine
BLOCKED = "e => window.__course && __course.blocked(e)"
# In Playwright's log these mean that the page refused the action, or that it is under way.
REFUSALS = (
    "is not",
    "intercepts pointer events",
    "did not find",
    "outside of the viewport",
    "performing",
)


class _Patient:
    """A locator that tells a refusal of the page from a slow machine. BrowserGym gives each action 500 ms; on a busy machine a
    click on a perfectly good button can take longer, and the policy would be punished for our load. So where the log names no
    refusal, the action gets more time, once."""

    def __init__(self, locator):
        self._locator = locator

    def __getattr__(self, name):
        method = getattr(self._locator, name)

        def act(*arguments, **named):
            tries = [{}, {"timeout": PATIENCE_MS}]
            if name in (
                "fill",
                "select_option",
            ):  # which may be tried twice; and the page's clock stands still
                tries.insert(0, {"timeout": QUICK_MS})
            blocked = name in ("click", "dblclick", "hover") and self._locator.evaluate(BLOCKED)
            if blocked:
                tries.insert(0, {"timeout": QUICK_MS, "trial": True})  # which only looks
            for changes in tries:
                try:
                    result = method(*arguments, **named | changes)
                    if "trial" not in changes:
                        return result
                except PlaywrightTimeout as error:
                    log = str(error).partition("Call log:")[2]
                    if "action done" in log:
                        return None  # only the waiting afterwards took too long
                    if (
                        changes is tries[-1]
                        or any(refusal in log for refusal in REFUSALS)
                        or log.count("elementHandle.press(") > 1
                    ):  # no such key
                        blocked and self._locator.evaluate(
                            BLOCKED
                        )  # the trial has scrolled it as far as there was time
                        raise

        return act


# Playwright takes the call stack four times per call, to name it in errors; looking for source files and lines doubled the work.
inspect.stack = lambda *_: [
    inspect.FrameInfo(frame, frame.f_code.co_filename, line, frame.f_code.co_name, None, None)
    for frame, line in traceback.walk_stack(inspect.currentframe().f_back)
]
traceback.extract_stack = lambda *_, **__: traceback.StackSummary()
# It also looks for its own objects in all that it receives. A snapshot of a page holds none, and has thousands of nodes.
_look = Connection._replace_guids_with_channels
Connection._replace_guids_with_channels = lambda self, answer: (
    answer
    if isinstance(answer, dict)
    and isinstance(answer.get("result"), dict)
    and answer["result"].keys() & {"nodes", "documents"}
    else _look(self, answer)
)
actions.get_elem_by_bid = lambda page, bid, scroll=False: _Patient(
    get_elem_by_bid(page, bid, scroll)
)


def _page_script() -> str:
    """page.js with BrowserGym's own marking code in it. A BrowserGym that changed it fails here, loudly."""
    mark, unmark = (
        pkgutil.get_data("browsergym.core", f"javascript/frame_{name}_elements.js").decode()
        for name in ("mark", "unmark")
    )
    # Visibility ratios are not part of our observation, and waiting for them costs two frames. The rest is verbatim.
    for old, new in (
        ("async ([parent_bid, bid_attr_name,", "const mark = ([parent_bid, bid_attr_name,"),
        ("elems_to_be_visited.add(elem);", ""),
        ("intersection_observer.observe(elem);", ""),
        ("await until(() => elems_to_be_visited.size == 0, visibility_marking_timeout);", ""),
    ):
        if mark.count(old) != 1:
            raise RuntimeError(
                f"BrowserGym's frame_mark_elements.js has changed ({old[:40]!r}); install 0.14.3."
            )
        mark = mark.replace(old, new)
    unmark = unmark.replace("() => {", "const unmark = () => {", 1)
    source = (
        Path(__file__)
        .with_name("page.js")
        .read_text()
        .replace("(/*MARK*/)", f"(() => {{{mark}\nreturn mark;}})()")
    )
    return source.replace("(/*UNMARK*/)", f"(() => {{{unmark}\nreturn unmark;}})()")


class _PageShim:
    """What stock's extraction functions need of a page, its context and its CDP session: they get the one that is kept."""

    def __init__(self, cdp):
        self.context, self._cdp, self._frames = self, cdp, None
        self.new_cdp_session, self.detach = lambda _page: self, lambda: None

    def send(self, method, params=None):
        if method != "Page.getFrameTree":
            return self._cdp._sync(
                self._cdp._impl_obj.send(method, params)
            )  # cdp.send also looks for its own objects in it
        self._frames = self._frames or self._cdp.send(
            method
        )  # no task has frames inside, and a page's own never changes
        return self._frames


class _LoadedPage:
    """A page on which ``task.setup`` has run before: what loads it and takes its display away does nothing. Its accessibility
    tree is built anew (disabled again, if it was not enabled): one that sees a page grow leaves out the words of labels."""

    def __init__(self, page, cdp, how: str):
        self._page, self._how, self.goto = page, how, lambda _url: None
        for command in ("Accessibility.enable", "Accessibility.disable"):
            cdp.send(command)

    def evaluate(self, script):
        if "core.startEpisodeReal();" in script.splitlines():
            self._ready = self._page.evaluate(
                f"() => {{ __course.{self._how}(); {script}; return WOB_TASK_READY; }}"
            )
        elif "removeDisplay();" not in script.splitlines():
            return self._page.evaluate(script)

    def wait_for_function(self, script):
        self._ready or self._page.wait_for_function(script)


class Warm:
    """One Chromium and the sessions in it, which may take turns in greenlets (not in threads: Playwright is bound to one)."""

    def __init__(self, page_port: int):
        self._flags = task_flags(ORIGIN.removeprefix("http://"), page_port)
        self._script = _page_script()
        self.playwright = sync_playwright().start()
        # Before the first locator: BrowserGym's functions find elements by their bid.
        self.playwright.selectors.set_test_id_attribute(BROWSERGYM_ID_ATTRIBUTE)
        self.generation, self.browser, self._starting = 0, None, asyncio.Lock()
        self.launch()

    def launch(self) -> None:
        """Start Chromium, again if it died; contexts of an older `generation` are gone."""
        self.generation += 1
        self.browser = self.playwright.chromium.launch(
            executable_path=find_chromium(),
            headless=True,
            args=self._flags,
            ignore_default_args=["--hide-scrollbars"],
        )

    def new_context(self):
        self.playwright._sync(self._starting.acquire())
        try:
            if not self.browser.is_connected():
                self.launch()
        finally:
            self._starting.release()
        context = self.browser.new_context(viewport=VIEWPORT)
        context.set_default_timeout(5_000)
        context.add_init_script(self._script)
        return context


class Session:
    """One episode after another in one browser context."""

    def __init__(self, warm: Warm):
        self.warm, self.generation = warm, 0  # generation: of the browser with our context; 0: none
        self.episodes = 37 * len(
            warm.browser.contexts
        )  # so far; not from 0, lest all sessions renew their contexts at once
        self.context = self.page = self.task = self.last = None

    def close(self) -> None:
        if self.context is not None and self.generation == self.warm.generation:
            with suppress(PlaywrightError):
                self.context.close()
        self.context, self.page, self.last, self.generation = None, None, None, 0

    def _new_page(self) -> None:
        self.close()
        self.context, self.generation = self.warm.new_context(), self.warm.generation
        self.page, self.trouble, self.popup = self.context.new_page(), "", None
        self.page.on("crash", lambda: setattr(self, "trouble", "the page's process crashed"))
        self.page.on("popup", lambda popup: setattr(self, "popup", popup))
        self.cdp = self.context.new_cdp_session(self.page)
        self.cdp.send(
            "HeapProfiler.collectGarbage"
        )  # what the pages before left, which else waits for hundreds of episodes
        self.shim = _PageShim(self.cdp)

    def _start(self, task: str, want: tuple) -> str:
        """Set the task up and return its goal: on the page of the last episode as it stands (IN_PLACE), on that page loaded
        anew, or in a new context where anything out of the ordinary happened to it."""
        last, self.last = self.last, None
        if (
            last is None
            or last["ended"] == "left_page"
            or self.episodes % CONTEXT_EPISODES == 0
            or self.trouble
            or self.popup
            or self.generation != self.warm.generation
            or not self.warm.browser.is_connected()
            or self.page.is_closed()
        ):
            self._new_page()
        else:
            self.cdp.send(
                "Input.dispatchMouseEvent", {"type": "mouseMoved", "x": -50, "y": -50}
            )  # off all elements
            if (
                task in IN_PLACE
                and last["task"] == task
                and "screenshot" not in want
                and self.page.url == self.task.url
            ):
                return self.task.setup(_LoadedPage(self.page, self.cdp, IN_PLACE[task]))[0]
        return self.task.setup(self.page)[0]

    def reset(self, task: str, seed: int, want: tuple = ()) -> dict:
        """Start an episode. ``want``: ("screenshot",) or (). Returns the fields of a `BrowserObservation`."""
        for attempt in (1, 2):
            try:
                self.episodes += 1
                self.task = TASKS[task](seed=seed, base_url=f"{ORIGIN}/miniwob/")
                goal = self._start(task, want)
                self.task.page = self.page
                self.last = {
                    "task": task,
                    "seed": seed,
                    "goal": goal or "",
                    "step": 0,
                    "reward": 0.0,
                    "raw_reward": 0.0,
                    "done": False,
                    "ended": "",
                    "error": "",
                    "last_action_error": False,
                } | self._observe(want)
                return self.last
            except PlaywrightError as error:
                if attempt == 2:
                    raise InfrastructureError(
                        f"the task page did not start: {str(error).splitlines()[0]}"
                    ) from error
                self.close()

    def step(self, text: str, want: tuple = ()) -> dict:
        """Take one action, given as the policy wrote it. Returns the fields of a `BrowserObservation`; with "outcome" in
        ``want`` the page in it is the one before the action."""
        if self.last is None or self.generation != self.warm.generation:
            raise InfrastructureError("the browser was restarted while the episode ran")
        try:
            return self._step(text, want)
        except (
            Exception
        ) as error:  # whatever breaks here is ours, never the policy's: it must not become a reward
            self.last = None
            raise InfrastructureError(
                self.trouble or f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
            ) from error

    def _step(self, text: str, want: tuple) -> dict:
        parsed = parse_action(text)
        if not parsed.ok:  # not executed, no time passes, the page is as it was
            self.last = self.last | {
                "step": self.last["step"] + 1,
                "error": parsed.reason,
                "last_action_error": True,
            }
            return self.last | (
                {"screenshot": self._picture()} if "screenshot" in want else {"screenshot": None}
            )
        error, wait = "", parsed.args[0] if parsed.name == "noop" else 0
        if parsed.name != "noop":
            # BrowserGym's function looks for its page in its module, which other sessions use too: it gets names of its own.
            names = vars(actions) | {
                "page": self.page,
                "demo_mode": "off",
                "retry_with_force": False,
            }
            function = getattr(actions, parsed.name)
            try:
                FunctionType(function.__code__, names, None, function.__defaults__)(*parsed.args)
            except Exception as e:  # as in stock: the policy is told what went wrong
                if self.trouble or not self.warm.browser.is_connected():
                    raise
                error = _error_text(e)
        self._settle(SETTLE_MS + wait, 3 if parsed.name == "scroll" else 0)
        page = (
            self.popup or self.page
        )  # stock: a window that opened is the active page, which ends the episode
        if self.page.is_closed():
            info, done = {"error": "page closed"}, True
        else:
            _, done, _, info = self.task.validate(page, [])
            if info.get("error") and page is self.page and page.url.split("#")[0] == self.task.url:
                info = (
                    self.task._get_info()
                )  # stock calls a link to "#" leaving the page, and pays nothing for a solved task
                done = info["DONE_GLOBAL"]
        # RAW_REWARD_GLOBAL, not REWARD_GLOBAL: the latter shrinks with the time taken.
        raw = float(info.get("RAW_REWARD_GLOBAL", 0.0)) if done else 0.0
        timed_out = info.get("REWARD_REASON") == "timed out"
        ended = (
            ""
            if not done
            else "left_page"
            if info.get("error")
            else "solved"
            if raw >= 1
            else "time_limit"
            if timed_out
            else "failed"
        )
        fields = {
            "step": self.last["step"] + 1,
            "reward": float(ended == "solved"),
            "raw_reward": raw,
            "done": bool(done),
            "ended": ended,
            "error": error,
            "last_action_error": bool(error),
        }
        seen = (
            {"screenshot": None, "url": page.url}
            if ended == "left_page"
            # not observed: it is not the task's
            else {"screenshot": None}
            if "outcome" in want
            else self._observe(want)
        )
        self.last = self.last | fields | seen
        return self.last

    def _settle(self, ms: float, frames: int) -> None:
        """Move the page's clock, draw so many frames; then wait, as stock does, for documents that are still loading."""
        try:
            self.page.evaluate(
                "([ms, frames]) => window.__course && __course.advance(ms, frames)", [ms, frames]
            )
        except PlaywrightError:
            if self.trouble or not self.warm.browser.is_connected():
                raise
        for page in self.context.pages:
            if (
                "domcontentloaded" not in page.main_frame._impl_obj._load_states
            ):  # to be told so takes three messages
                with suppress(PlaywrightError):
                    page.wait_for_load_state("domcontentloaded", timeout=3_000)

    def _picture(self) -> bytes:
        return base64.b64decode(self.cdp.send("Page.captureScreenshot", {"format": "png"})["data"])

    def _observe(self, want: tuple) -> dict:
        for tries_left in range(4, -1, -1):
            try:
                # One frame only: no MiniWoB task has another, and a page that left its task is not observed.
                focused = self.page.evaluate("() => __course.mark()")
                dom = stock.extract_dom_snapshot(
                    self.shim, include_paint_order=False
                )  # read by nobody
                tree = stock.extract_merged_axtree(self.shim)
                break
            except PlaywrightError:
                if tries_left == 0 or self.trouble or not self.warm.browser.is_connected():
                    raise
                self.page.wait_for_timeout(50)
        self.page.evaluate("() => __course.unmark()")
        text = flatten_axtree_to_str(tree)
        properties = stock.extract_dom_extra_properties(dom, scale_factor=1.0)
        return {
            "url": self.page.url,
            "text": text,
            "axtree_txt": text,
            "focused_bid": focused,
            "elements": _elements(tree, properties, focused),
            "screenshot": self._picture() if "screenshot" in want else None,
        }


def _error_text(error: Exception) -> str:
    """The action's error as stock words it, without Playwright's log of every attempt: how many there were depends on the
    machine's speed, and the same actions must give the same observation. The first refusal in it is kept."""
    lines = str(error).splitlines() or [""]
    why = [
        line.strip(" -") for line in lines[1:] if any(refusal in line for refusal in REFUSALS[:-1])
    ]
    first = re.sub(r"Timeout \d+ms", "Timeout 500ms", lines[0])
    return f"{type(error).__name__}: {first}{f' ({why[0]})' if why else ''}"[:MAX_ERROR]


def _elements(tree: dict, properties: dict, focused: str) -> list[dict]:
    """The elements a policy may act on, in the order of the tree's text: those with a role or a name of their own, and those
    that listen to clicks."""

    def element(bid, role, name, value=""):
        seen = properties.get(bid, {})
        return {
            "bid": bid,
            "role": role,
            "name": name,
            "value": value,
            "focused": bid == focused,
            "box": [round(v, 1) for v in seen.get("bbox") or ()] or None,
            "clickable": bool(seen.get("clickable")),
        }

    nodes = {node["nodeId"]: node for node in tree["nodes"]}
    found, todo, seen = {}, [tree["nodes"][0]["nodeId"]], set()
    while todo:
        node_id = todo.pop()
        if node_id in seen or node_id not in nodes:
            continue
        seen.add(node_id)
        node = nodes[node_id]
        todo.extend(reversed(node["childIds"]))
        bid, role = node.get("browsergym_id"), node["role"]["value"]
        name = str(node.get("name", {}).get("value", "")).strip()
        plain = role in IGNORED_AXTREE_ROLES or role == "generic"
        if (
            bid is None
            or bid in found
            or (plain and not name and not properties.get(bid, {}).get("clickable"))
        ):
            continue
        states = {p["name"]: p.get("value", {}).get("value") for p in node.get("properties", [])}
        value = node.get("value", {}).get(
            "value", states.get("checked", states.get("selected", ""))
        )
        found[bid] = element(
            bid, role, name, str(value).lower() if isinstance(value, bool) else str(value)
        )
    for (
        bid,
        properties_of,
    ) in properties.items():  # not in the tree (no role, no name), yet it listens to clicks
        if bid not in found and properties_of["clickable"] and properties_of["bbox"]:
            found[bid] = element(bid, "generic", "")
    return list(found.values())
