"""Everything that touches private parts of Playwright and BrowserGym, each with its reason.

Written for Playwright 1.44 and BrowserGym 0.14.3 (constraints.txt pins both). Whoever moves to
other versions reads this file: all else in helpers/browser uses only what the two libraries
document. Importing it changes nothing; `apply_patches` is called by a worker process for itself.
"""

import asyncio
import functools
import gc
import inspect
import pkgutil
import re
import traceback
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any, TypeVar, cast

import browsergym.core.action.functions as browsergym_actions
import browsergym.core.observation as browsergym_observation
import playwright
from browsergym.core.action.utils import get_elem_by_bid
from browsergym.miniwob.base import AbstractMiniwobTask
from playwright._impl._connection import Connection
from playwright.sync_api import CDPSession, Locator, Page, Playwright
from playwright.sync_api import Error as PlaywrightError
from typing_extensions import override

T = TypeVar("T")


# ---- patches, for speed only: what a session shows and pays is the same without them ----


def apply_patches() -> None:
    """Make Playwright's Python side cheaper, in this process. For a process that does nothing but
    drive a browser, for it changes `inspect`, `traceback` and `gc` as well.

    - Playwright takes the call stack four times per call, to name it in errors. Looking for source
      files and lines doubled the work of a step.
    - It looks for its own objects in all that it receives. A snapshot of a page holds none, and has
      thousands of nodes.
    - Python looks for garbage in cycles after every 700 objects more. A snapshot brings thousands,
      and none of them is in a cycle.
    """
    gc.freeze()  # what has been imported stays
    gc.set_threshold(50_000, 20, 100)
    inspect.stack = _stack_without_source  # type: ignore[assignment]
    traceback.extract_stack = _no_stack  # type: ignore[assignment]
    replace = Connection._replace_guids_with_channels
    Connection._replace_guids_with_channels = (  # type: ignore[method-assign]
        lambda self, payload: payload if _is_snapshot(payload) else replace(self, payload)
    )


def _stack_without_source(*_: Any) -> list[inspect.FrameInfo]:
    """`inspect.stack` without the lines of source around each frame."""
    caller: FrameType | None = inspect.currentframe()
    caller = caller.f_back if caller is not None else None
    return [
        inspect.FrameInfo(frame, frame.f_code.co_filename, line, frame.f_code.co_name, None, None)
        for frame, line in traceback.walk_stack(caller)
    ]


def _no_stack(*_: Any, **__: Any) -> traceback.StackSummary:
    return traceback.StackSummary()


def _is_snapshot(payload: Any) -> bool:
    """Whether this answer holds a DOM snapshot ("documents") or an accessibility tree ("nodes")."""
    if not isinstance(payload, dict) or not isinstance(payload.get("result"), dict):
        return False
    return bool(payload["result"].keys() & {"nodes", "documents"})


# ---- Playwright: its event loop, its greenlets, its messages ----


def call_when_readable(playwright: Playwright, fd: int, callback: Callable[[], object]) -> None:
    """Call ``callback`` from Playwright's event loop whenever ``fd`` can be read."""
    playwright._loop.add_reader(fd, callback)  # type: ignore[attr-defined]


def run_event_loop(playwright: Playwright) -> None:
    """Give this greenlet to Playwright's event loop, for ever. Playwright's synchronous calls hand
    over to that loop while they wait, so requests that are served in greenlets of their own take
    turns: one session's waiting is another's time."""
    playwright._dispatcher_fiber.switch()  # type: ignore[attr-defined]


def wait_for(playwright: Playwright, coroutine: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result, waited for as Playwright's own calls wait."""
    return playwright._sync(coroutine)  # type: ignore[attr-defined]


def has_loaded(page: Page) -> bool:
    """Whether the page's document has been parsed. ``wait_for_load_state`` says so too, but takes
    three messages to the browser."""
    return "domcontentloaded" in page.main_frame._impl_obj._load_states


class ExtractionPage:
    """What BrowserGym's extraction functions need of a page, its context and its CDP session: they
    would open a new CDP session for each look, and get the one that is kept. What they ask one
    after another `read` has asked at once: a message takes the time of five processes."""

    def __init__(self, cdp: CDPSession) -> None:
        self.context = self
        self._cdp = cdp
        self._frames: dict[str, Any] | None = None
        # What the page has answered, but nobody has asked for yet: by method, with the parameters.
        self._answers: dict[str, tuple[dict[str, Any], Any]] = {}

    def new_cdp_session(self, page: object) -> "ExtractionPage":
        """The session that is kept, here."""
        return self

    def detach(self) -> None:
        """It stays attached."""

    def send(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """One message to the page, and its answer."""
        if method == "Page.getFrameTree":
            # No task has frames inside, and a page's own never changes.
            if self._frames is None:
                self._frames = self._cdp.send(method)
            return self._frames
        if method in self._answers:
            known_for, answer = self._answers.pop(method)
            if known_for == params:
                return answer
        return self._send_all([(method, params or {})])[0]

    def read(self, then: str) -> None:
        """Have the page answer what `dom_snapshot` and `extract_merged_axtree` will ask, and
        evaluate the expression ``then``, in this order."""
        frame = self.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        reading = [
            ("DOMSnapshot.captureSnapshot", SNAPSHOT),
            ("Accessibility.getFullAXTree", {"frameId": frame}),
        ]
        *answers, evaluated = self._send_all([*reading, ("Runtime.evaluate", {"expression": then})])
        if "exceptionDetails" in evaluated:
            raise PlaywrightError(evaluated["exceptionDetails"]["text"])
        self._answers = {
            method: (parameters, answer)
            for (method, parameters), answer in zip(reading, answers, strict=True)
        }

    def _send_all(self, messages: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
        """Messages to the page, sent without waiting for the answer to the one before."""

        async def answers() -> list[Any]:
            # Not `CDPSession.send`, which looks for Playwright's own objects in the whole answer.
            return await asyncio.gather(*(self._cdp._impl_obj.send(*each) for each in messages))

        return self._cdp._sync(answers())


# Without the paint order, which nobody reads, and without the three rectangles of each node.
SNAPSHOT = {"computedStyles": [], "includeDOMRects": False, "includePaintOrder": False}
ELEMENT_NODE = 1  # the DOM's number of this kind of node


def dom_snapshot(page: Page, shown: bool) -> dict[str, Any]:
    """BrowserGym's snapshot of the document, with no more than `SNAPSHOT` asks for. Of the
    rectangles that it leaves out BrowserGym reads whether there are any: an element that is drawn
    has some, a text has none.

    ``shown``: whether somebody will read the attributes, which then must not hold BrowserGym's
    marks."""
    snapshot = browsergym_observation.extract_dom_snapshot(
        page,
        computed_styles=SNAPSHOT["computedStyles"],
        include_dom_rects=SNAPSHOT["includeDOMRects"],
        include_paint_order=SNAPSHOT["includePaintOrder"],
        temp_data_cleanup=shown,
    )
    for document in snapshot["documents"]:
        kinds, layout = document["nodes"]["nodeType"], document["layout"]
        layout["clientRects"] = [kinds[node] == ELEMENT_NODE for node in layout["nodeIndex"]]
    return snapshot


@functools.cache
def known_keys() -> frozenset[str]:
    """The names that Playwright's ``press`` knows as keys, read from its driver: its keyboard
    layout, one definition a key, and the shorter names in input.js. On the number pad only the
    place of a key is a name, not what it types. RuntimeError where the driver has changed."""
    driver = Path(playwright.__file__).parent / "driver" / "package" / "lib" / "server"
    layout = (driver / "usKeyboardLayout.js").read_text()
    aliases = re.search(r"aliases = new Map\((.*?)\);", (driver / "input.js").read_text())
    definitions = re.findall(r"^  '(\w+)': \{(.*?)^  \}", layout, re.MULTILINE | re.DOTALL)
    if len(definitions) < 100 or aliases is None:
        raise RuntimeError("Playwright's keyboard layout has changed; install playwright 1.44.")
    keys = {"ControlOrMeta", "\n", "\r", *re.findall(r"'(\w+)'", aliases[1])}
    for name, definition in definitions:
        keys.add(name)
        if "'location'" not in definition:
            typed = re.findall(r"'(?:key|shiftKey)': '((?:\\.|[^'\\])+)'", definition)
            keys.update(re.sub(r"\\(.)", r"\1", key) for key in typed)
    return frozenset(keys)


# ---- BrowserGym: its action functions, its marking script, MiniWoB's set-up ----


def find_element(page: Page, bid: str) -> Locator:
    """The element with this bid. ValueError where there is none."""
    return get_elem_by_bid(page, bid)


def call_action(
    name: str,
    arguments: tuple[Any, ...],
    page: Page,
    find: Callable[[Page, str], object],
) -> None:
    """Run BrowserGym's action function ``name``.

    The function looks for its page, its settings and its ``get_elem_by_bid`` in the globals of its
    module, which the other sessions of a worker use too: it is bound to globals of its own."""
    names = vars(browsergym_actions) | {
        "page": page,
        "demo_mode": "off",
        "retry_with_force": False,
        "get_elem_by_bid": lambda page, bid, scroll_into_view=False: find(page, bid),
    }
    function = getattr(browsergym_actions, name)
    FunctionType(function.__code__, names, None, function.__defaults__)(*arguments)


_ASYNC_MARK = "async ([parent_bid, bid_attr_name,"
# What is taken out of frame_mark_elements.js where nobody asks for visibility ratios and the set of
# marks: waiting for the first costs two frames, and the second a layout of the page and a look at
# what lies above for each element. The rest is verbatim.
_WITHOUT_VISIBILITY = (
    (_ASYNC_MARK, "const mark = ([parent_bid, bid_attr_name,"),
    ("elems_to_be_visited.add(elem);", ""),
    ("intersection_observer.observe(elem);", ""),
    ("await until(() => elems_to_be_visited.size == 0, visibility_marking_timeout);", ""),
    ('["self", "child"].includes(whoCapturesCenterClick(elem))', "false"),
)
# Where they are asked for, the page's clock stands still, so the waiting goes by the real one.
_WITH_VISIBILITY = (
    (_ASYNC_MARK, "const mark = async ([parent_bid, bid_attr_name,"),
    ("const start_time = Date.now();", "const start_time = real.dateNow();"),
    ("const wait = setInterval(", "const wait = real.setInterval("),
    ("clearInterval(wait);\n                resolve();", "real.clearInterval(wait); resolve();"),
    ("clearInterval(wait);\n                reject();", "real.clearInterval(wait); reject();"),
    ("Date.now() - start_time", "real.dateNow() - start_time"),
)


def page_script() -> str:
    """page.js with the files that it names and BrowserGym's own marking code in it. RuntimeError
    where that has changed."""
    folder = Path(__file__).parent
    source = re.sub(
        r"/\*(page_\w+\.js)\*/",
        lambda found: (folder / found[1]).read_text(),
        (folder / "page.js").read_text(),
    )
    unmark = _browsergym_script("frame_unmark_elements.js")
    unmark = unmark.replace("() => {", "const unmark = () => {", 1)
    for place, changes in (
        ("(/*MARK*/)", _WITHOUT_VISIBILITY),
        ("(/*MARK_WITH_VISIBILITY*/)", _WITH_VISIBILITY),
    ):
        source = source.replace(place, f"(() => {{{_mark_script(changes)}\nreturn mark;}})()")
    return source.replace("(/*UNMARK*/)", f"(() => {{{unmark}\nreturn unmark;}})()")


def _mark_script(changes: Sequence[tuple[str, str]]) -> str:
    """BrowserGym's marking script with each first text replaced by the second, which has to be in
    it once."""
    mark = _browsergym_script("frame_mark_elements.js")
    for old, new in changes:
        if mark.count(old) != 1:
            raise RuntimeError(
                f"BrowserGym's frame_mark_elements.js has changed ({old[:40]!r}); install 0.14.3."
            )
        mark = mark.replace(old, new)
    return mark


def _browsergym_script(name: str) -> str:
    source = pkgutil.get_data("browsergym.core", f"javascript/{name}")
    if source is None:
        raise RuntimeError(f"BrowserGym has no {name} any more; install 0.14.3.")
    return source.decode()


@functools.cache
def record_script() -> str:
    """The script with which BrowserGym asks a page for its record of the episode."""
    asked: list[str] = []

    def evaluate(script: str) -> list[None]:
        asked.append(script)
        return [None] * 6

    task = SimpleNamespace(page=SimpleNamespace(evaluate=evaluate))
    AbstractMiniwobTask._get_info(cast(AbstractMiniwobTask, task))
    return asked[0]


class EpisodePage:
    """A page as BrowserGym's task asks it for its record: what the page has said together with
    something else is not asked for again. A message takes the time of five processes."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.record: list[Any] | None = None  # that the page has given, but not yet the task

    @property
    def url(self) -> str:
        """The page's address."""
        return self._page.url

    def evaluate(self, script: str) -> Any:
        """What a script of the task returns."""
        record, self.record = self.record, None
        if record is not None and script == record_script():
            return record
        return self._page.evaluate(script)


class SetupPage(EpisodePage):
    """A page that MiniWoB's set-up loads. It is asked whether the task is ready in the call that
    starts the episode: Playwright's waiting for a function would bring 230 KB of script into every
    new document, for what is mostly so at once.

    The set-up calls `goto`, `evaluate` with a few scripts, and `wait_for_function`; the scripts are
    told apart by a line that only one of them has. The goal is asked for in a message of its own,
    with the page's record, which is asked for next: in the one that starts the episode
    use-colorwheel's has no colour yet."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._ready = False

    def goto(self, url: str) -> None:
        """Load the task."""
        self._page.goto(url)

    @override
    def evaluate(self, script: str) -> Any:
        """What a script of the set-up returns."""
        if "core.startEpisodeReal();" in script.splitlines():
            self._ready = self._page.evaluate(
                f"() => {{ {self._before_start()}{script}; return WOB_TASK_READY; }}"
            )
            return None
        if "core.getUtterance()" in script:
            both = f"() => [({script})(), ({record_script()})()]"
            goal, self.record = self._page.evaluate(both)
            return goal
        return super().evaluate(script)

    def _before_start(self) -> str:
        """A script that runs before the episode is started."""
        return ""

    def wait_for_function(self, script: str) -> None:
        """Wait for the task to be ready, which it mostly is at once."""
        if not self._ready:
            self._page.wait_for_function(script)

    @override
    def __setattr__(self, name: str, value: object) -> None:
        """The set-up notes on the page how large its pictures are, which the actions on places
        read there."""
        if name == "_bgym_scale_factor":
            setattr(self._page, name, value)
        else:
            super().__setattr__(name, value)


class LoadedPage(SetupPage):
    """A page on which the set-up has run before: what loads it and takes its display away does
    nothing. ``how`` the page is made as new is "keep", "copy" or "remake", see
    page_restart.js."""

    def __init__(self, page: Page, cdp: CDPSession, how: str) -> None:
        super().__init__(page)
        self._how = how
        # The accessibility tree is built anew (disabled again, if it was not enabled): one that
        # sees a page grow leaves out the words of labels.
        for command in ("Accessibility.enable", "Accessibility.disable"):
            cdp.send(command)

    @override
    def goto(self, url: str) -> None:
        """The page is there already."""

    @override
    def evaluate(self, script: str) -> Any:
        """The script that takes the display away has done so before."""
        return None if "removeDisplay();" in script.splitlines() else super().evaluate(script)

    @override
    def _before_start(self) -> str:
        return f"__course.{self._how}(); "


def task_info(task: AbstractMiniwobTask) -> dict[str, Any]:
    """What the page says of its episode, also where `validate` would not ask it because of a "#"
    in the address."""
    return task._get_info()
