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
    elements are then kept ("keep") or replaced by copies ("copy", both in page.js): those where
    nothing that is shown differs, whatever was done before, as ``python -m benchmarks.parity
    --choose`` found (`benchmarks.reuse` looks again). It compares no pictures, so an episode with
    pictures always loads its page."""
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
