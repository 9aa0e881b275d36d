"""What breaks and what it costs: faults caused on purpose in a real browser, and strings that no policy should get far with.

    python -m benchmarks.faults                  a table of faults and one of strings (4 min on 2 cores)
    python -m benchmarks.faults --record         the same, written to recordings/faults/result.json

For each fault: what the episode that was running says, after how many seconds, and when the next reset has answered. The strings
go through the parser, and through a server to a real page, which pays only for its one button.
"""

import argparse
import os
import random
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

from benchmarks.recording import record
from helpers.browser import BrowserServer, start_browser_server
from helpers.browser.actions import parse_action
from helpers.browser.pool import InfrastructureError, Worker
from helpers.browser.processes import descendants
from helpers.browser.server import _Pages

BUTTON = "13"  # the bid of click-test's only button


# ---- faults ----


def tree_of(server: BrowserServer) -> list[psutil.Process]:
    """The workers of a server and every process below them."""
    return [
        process for worker in server.stats()["workers"] for process in descendants(worker["pid"])
    ]


def chromium_mains(server: BrowserServer) -> list[psutil.Process]:
    return [
        p for p in tree_of(server) if "chrom" in p.name() and "--type=" not in " ".join(p.cmdline())
    ]


@contextmanager
def misbehaving(script: str) -> Iterator[tuple[Callable, Callable]]:
    """A worker whose click-test page runs ``script`` too: its ``reset(task)`` and ``step(action)``."""

    class Pages(_Pages):
        def do_GET(self):
            if not self.path.split("?")[0].endswith("/click-test.html"):
                return super().do_GET()
            page = (Path(self.directory) / "miniwob" / "click-test.html").read_text()
            body = page.replace("</body>", f"<script>{script}</script></body>").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with worker_on(Pages) as call:
        yield (
            lambda task="click-test": call("reset", 1, task, 0, ()),
            lambda action=f"click('{BUTTON}')": call("step", 1, action, ()),
        )


@contextmanager
def worker_on(handler: type[_Pages]) -> Iterator[Callable]:
    """A worker whose pages come from ``handler``: a function that asks it, call("reset", session, task, seed, want)."""
    pages = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    worker = Worker(pages.server_port, os.environ.get("TMPDIR", "/tmp"))
    try:
        worker.wait_ready()
        yield lambda kind, *arguments: worker.call(
            worker.generation if kind == "step" else None, kind, *arguments
        )[1]
    finally:
        worker.stop()
        pages.shutdown()


def seconds(call: Callable, *arguments: Any) -> tuple[Any, float]:
    """The call's result and how long it took; an `InfrastructureError` is a result too."""
    started = time.perf_counter()
    try:
        result = call(*arguments)
    except InfrastructureError as error:
        result = {"ended": "infrastructure_error", "reward": None, "reason": str(error)}
    return result, time.perf_counter() - started


def row(name: str, end: Any, answered: float, recovered: float, others: bool | None = None) -> dict:
    """One line of the table. ``recovered``: until the next reset has answered, counted from the fault's own answer."""
    end = end if isinstance(end, dict) else end.model_dump()
    return {
        "fault": name,
        "ended": end["ended"] or "(goes on)",
        "reward": end["reward"],
        "answer_s": round(answered, 2),
        "next_reset_s": round(recovered, 2),
        "others_unaffected": others,
    }


def break_processes(times: int) -> Iterator[dict]:
    """Kill or stop, between reset and step, what the episode runs on; another session plays beside it."""

    def kill_all(processes: list[psutil.Process], how: int = signal.SIGKILL) -> None:
        for process in processes:
            process.send_signal(how)

    with start_browser_server(workers=2, timeout=120) as server:

        def mine_of(one: Any) -> psutil.Process:
            before = {w["pid"]: w["requests"] for w in server.stats()["workers"]}
            one.reset("click-test", 0)
            return psutil.Process(
                next(
                    w["pid"] for w in server.stats()["workers"] if w["requests"] > before[w["pid"]]
                )
            )

        faults = {
            "R1 Chromium killed": lambda mine: kill_all(
                [p for p in chromium_mains(server) if mine in p.parents()]
            ),
            "R3 worker killed": lambda mine: kill_all([mine]),
            "R4 worker stopped": lambda mine: kill_all([mine], signal.SIGSTOP),
            "R5 server killed": lambda mine: server._process.kill(),
        }
        for name, fault in faults.items():
            for _ in range(times):
                with server.client() as one, server.client() as other:  # each worker gets one
                    mine = mine_of(one)
                    other.reset("click-test", 0)
                    fault(mine)
                    unaffected = (
                        None if "server" in name else other.step(f"click('{BUTTON}')").reward == 1.0
                    )
                    end, answered = seconds(one.step, f"click('{BUTTON}')")
                    yield row(
                        name, end, answered, seconds(one.reset, "click-test", 0)[1], unaffected
                    )


def break_pages(times: int) -> Iterator[dict]:
    """Pages whose button does more than it should."""
    for name, script in (
        ("R2 endless loop", "while (true) {}"),
        ("R2 alert", "alert('a')"),
        ("R2 window.open", "window.open('about:blank')"),
        ("R2 navigation", "location = 'http://example.com/'"),
    ):
        with misbehaving(f"document.addEventListener('click', () => {{ {script} }})") as (
            reset,
            step,
        ):
            for _ in range(times):
                reset()
                end, answered = seconds(step)
                yield row(name, end, answered, seconds(reset)[1])


# ---- strings ----

_WORDS = (
    "I",
    "will",
    "now",
    "click",
    "the",
    "button",
    "because",
    "goal",
    "says",
    "so",
    "first",
    "then",
)
_PIECES = (
    "click",
    "fill",
    "press",
    "noop",
    "goto",
    "scroll",
    "eval",
    "(",
    ")",
    "'",
    '"',
    ",",
    "[",
    "]",
    "13",
    "'13'",
    "-",
    ".",
    " ",
    "\n",
    "\\",
    "\\'",
    "lambda:0",
    "{",
    "}",
    ";",
    "#",
    "click('13')",
)
_TRICKS = (
    "__import__('os').system('touch {mark}')",
    "click(__import__('os').getcwd())",
    "().__class__.__bases__[0]",
    "click('13' if __import__('os') else '')",
    "exec(\"open('{mark}','w')\")",
    "click(open('{mark}', 'w'))",
    "import os; click('13')",
    "page.evaluate('core.endEpisode(1)')",
    "click(f'{{13}}')",
    "click(**{{'bid': '13'}})",
)
_ADDRESSES = (
    "javascript:core.endEpisode(1)",
    "file:///etc/passwd",
    "data:text/html,<script>1</script>",
    "http://127.0.0.1:1/",
    "about:blank",
    "chrome://version",
)
_NUMBERS = (
    "-1",
    "1e99",
    "9" * 400,
    "nan",
    "inf",
    "0x10",
    "--1",
    "1_000",
    "5001",
    "-10001",
    "1" * 7,
)
_TWINS = dict(zip("clik'13", "сӏіκ’１３", strict=True))  # each looks like the letter it stands for


def _prose(draw: random.Random, call: str) -> str:
    words = draw.choices(_WORDS, k=draw.randint(2, 9))
    return " ".join([*words[:3], call, *words[3:]])


def _several(draw: random.Random) -> str:
    if draw.random() < 0.5:
        return draw.choice([" ", "; ", "\n", ", "]).join(["click('13')"] * draw.randint(2, 5))
    return "click(" * draw.randint(2, 400) + "'13'" + ")" * draw.randint(0, 400)


def _long(draw: random.Random) -> str:
    return f"fill('13', '{'a' * (1_000_000 if draw.random() < 0.02 else draw.choice([1_001, 5_000, 100_000]))}')"


def _quotes(draw: random.Random) -> str:
    return f"click({draw.choice(_QUOTES)}{''.join(draw.choices(_QUOTES + 'n13' + chr(92), k=9))}')"


_QUOTES = "'" + '"'
STRINGS: dict[str, Callable[[random.Random], str]] = {
    "around the grammar": lambda d: "".join(d.choices(_PIECES, k=d.randint(1, 12))),
    "calls inside prose": lambda d: _prose(d, "click('13')"),
    "think blocks": lambda d: (
        f"<think>{_prose(d, 'click(12)')}</think>{d.choice(['', ' '])}click('{d.randint(1, 20)}')"
    ),
    "several and nested calls": _several,
    "control characters": lambda d: (
        f"click({chr(d.choice([*range(32), 127, 0x202E, 0x200B, 0xFEFF]))}'13')"
    ),
    "invalid UTF-8": lambda d: (
        f"{chr(d.randint(0xD800, 0xDFFF))}fill('13', '{chr(d.randint(0xD800, 0xDFFF))}')"
    ),
    "very long": _long,
    "numbers out of range": lambda d: d.choice(
        ["noop({})", "scroll({}, 0)", "scroll(0, {})"]
    ).format(d.choice(_NUMBERS)),
    "quotes and escapes": _quotes,
    "look-alike letters": lambda d: "".join(d.choice([c, _TWINS.get(c, c)]) for c in "click('13')"),
    "addresses": lambda d: d.choice(
        ["goto('{}')", "click('{}')", "fill('13', '{}')", "press('13', '{}')", "new_tab('{}')"]
    ).format(d.choice(_ADDRESSES)),
    "dunder and import tricks": lambda d: d.choice(_TRICKS).format(mark=MARK),
}
MARK = "/tmp/owned-by-a-string"  # what exists afterwards if any code ran


def fuzzed(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """``n`` pairs (kind, string), evenly over `STRINGS`."""
    draw, kinds = random.Random(seed), list(STRINGS)
    return [(kinds[i % len(kinds)], STRINGS[kinds[i % len(kinds)]](draw)) for i in range(n)]


def solves_click_test(text: str) -> bool:
    """Whether this is a valid action on the only button of the page: what alone may be paid."""
    parsed = parse_action(text)
    return parsed.ok and BUTTON in parsed.args


def send_strings(n: int) -> dict[str, dict[str, int]]:
    """All strings to a real page. Per kind: sent, executed (the parser let it through), paid, and what must stay 0: paid without
    the button, left the page, lost."""
    counts: dict[str, Counter] = {kind: Counter() for kind in STRINGS}
    with start_browser_server(workers=1, timeout=120) as server, server.client() as env:
        env.reset("click-test", 0)
        for kind, text in fuzzed(n):
            seen = env.step(text)
            counts[kind].update(
                {
                    "sent": 1,
                    "executed": parse_action(text).ok,
                    "paid": seen.reward == 1.0,
                    "paid_without_button": seen.reward == 1.0 and not solves_click_test(text),
                    "left_page": "/miniwob/click-test.html" not in seen.url,
                    "lost": seen.ended == "infrastructure_error",
                }
            )
            if seen.done:
                env.reset("click-test", 0)
    return {kind: dict(count) for kind, count in counts.items()}


def time_parser(n: int) -> dict[str, float]:
    """Milliseconds of `parse_action` over the same strings."""
    times = []
    for _, text in fuzzed(n):
        started = time.perf_counter()
        parse_action(text)
        times.append(1_000 * (time.perf_counter() - started))
    cuts = statistics.quantiles(times, n=100)
    return {
        "median_ms": round(statistics.median(times), 4),
        "p99_ms": round(cuts[98], 4),
        "max_ms": round(max(times), 3),
    }


def show(result: dict) -> None:
    print(
        f"{'fault':22}{'the episode says':24}{'reward':>8}{'answer':>9}{'next reset':>12}{'others':>9}   worst of "
        f"{result['times']}"
    )
    for name in dict.fromkeys(r["fault"] for r in result["faults"]):
        rows = [r for r in result["faults"] if r["fault"] == name]
        others = (
            "-"
            if rows[0]["others_unaffected"] is None
            else "fine"
            if all(r["others_unaffected"] for r in rows)
            else "LOST"
        )
        ends, rewards = ({str(r[key]) for r in rows} for key in ("ended", "reward"))
        print(
            f"{name:22}{', '.join(sorted(ends)):24}{', '.join(sorted(rewards)):>8}{max(r['answer_s'] for r in rows):7.1f} s"
            f"{max(r['next_reset_s'] for r in rows):10.1f} s{others:>9}"
        )
    names = list(next(iter(result["strings"].values())))
    print(f"\n{'strings':28}" + "".join(f"{name.replace('_', ' '):>22}" for name in names))
    for kind, counts in result["strings"].items():
        print(f"{kind:28}" + "".join(f"{counts[name]:22,}" for name in names))
    print(
        f"{'all':28}"
        + "".join(f"{sum(c[name] for c in result['strings'].values()):22,}" for name in names)
    )
    print(
        "parser: "
        + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result["parser"].items())
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--times", type=int, default=3, help="how often each fault is caused")
    parser.add_argument("--strings", type=int, default=10_000)
    options = parser.parse_args()
    result = {
        "times": options.times,
        "faults": [*break_processes(options.times), *break_pages(options.times)],
        "strings": send_strings(options.strings),
        "parser": time_parser(options.strings),
    }
    if options.record:
        record("faults", result)
    show(result)


if __name__ == "__main__":
    main()
