"""What a server process is told when it starts, and the rules by which its pages are treated.

The default rules are the course's environment. A measurement that wants to know what a rule is good
for (`benchmarks/parity.py`) hands others to `start_browser_server`; they travel to the worker as
JSON on the command lines of server and worker.
"""

import functools
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

IN_PLACE = Path(__file__).with_name("in_place.json")


@functools.cache
def chosen_in_place() -> dict[str, str]:
    """The tasks whose page may start the next episode without being loaded again, and whether its
    elements are then kept ("keep"), replaced by copies ("copy") or made from the page's source as
    when it had loaded ("remake", all in page_restart.js): those where nothing that is shown
    differs, whatever was done before, as ``python -m benchmarks.parity --choose`` found
    (`benchmarks.reuse` looks again). It compares no pictures, so an episode with pictures always
    loads its page."""
    return json.loads(IN_PLACE.read_text())


@dataclass(frozen=True)
class PageRules:
    """The rules that every session of a worker follows."""

    # Stock BrowserGym waits 500 ms before it looks, and slows each action down by 100 ms.
    settle_ms: int = 600
    in_place: dict[str, str] = field(default_factory=chosen_in_place)

    def to_json(self) -> str:
        """One word of a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "PageRules":
        """Back from `to_json`."""
        return cls(**json.loads(text))


SCALE = 1.5  # pixels of stock's pictures, and of boxes, for one of the page's
SMALL = (332, 214)  # pixels of a small picture
PICTURE = (498, 321)  # pixels of stock's, in which places are named whatever picture is taken
PICTURES = {"": 0.0, "stock": SCALE, "small": 1.0}
"""The kinds of picture, and how many pixels each has for one of the page's: none; 498 x 321, as
stock BrowserGym takes them; 332 x 214, with which a policy reads less than half as much."""


@dataclass(frozen=True)
class Want:
    """What a request wants to be told, beside what an action has earned."""

    page: bool = True  # whether the page is read again
    picture: str = ""  # one of PICTURES
    details: bool = False  # all else that stock BrowserGym tells of a page

    @property
    def scale(self) -> float:
        """Pixels of the picture for one of the page's."""
        return PICTURES[self.picture]

    @property
    def extras(self) -> bool:
        """Whether more is wanted than the text of the page."""
        return bool(self.picture) or self.details

    @property
    def look(self) -> bool:
        """Whether the page is looked at after an action."""
        return self.page or self.extras


@dataclass(frozen=True)
class ServerOptions:
    """The arguments of a server's command line, in their order. Its token comes in the environment,
    for command lines can be read by all."""

    host: str
    port: int  # 0: a free one
    workers: int  # 0: about one per core
    sessions: int
    rules: PageRules
    directory: str  # for Chromium's profiles and the log; removed at the end

    def arguments(self) -> list[str]:
        """The words of the command line."""
        return [
            self.host,
            str(self.port),
            str(self.workers),
            str(self.sessions),
            self.rules.to_json(),
            self.directory,
        ]

    @classmethod
    def read(cls, arguments: list[str]) -> "ServerOptions":
        """Back from `arguments`."""
        host, port, workers, sessions, rules, directory = arguments
        return cls(
            host, int(port), int(workers), int(sessions), PageRules.from_json(rules), directory
        )
