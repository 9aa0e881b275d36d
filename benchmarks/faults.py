"""What breaks and what it costs: faults caused on purpose in a real browser, and strings that no
policy should get far with.

For each fault: what the episode that was running says, after how many seconds, and when the next
reset has answered. The strings (`benchmarks.hostile_strings`) go through the parser, and through a
server to a real page, which pays only for its one button.
"""

import os
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from typing_extensions import override

from benchmarks.hostile_strings import BUTTON, STRINGS, fuzzed, solves_click_test
from benchmarks.process_usage import server_pid
from benchmarks.recording import Record, record
from benchmarks.state_machine import run_for
from helpers.browser import BrowserClient, BrowserServer, start_browser_server
from helpers.browser.actions import EVERY_ACTION, parse_action
from helpers.browser.pool import InfrastructureError, Worker
from helpers.browser.processes import descendants, kill
from helpers.browser.task_pages import TaskPages, serve_task_pages
from helpers.command_line import run
from helpers.output import table

CLICK = f"click('{BUTTON}')"

Row = dict[str, Any]  # one fault and its outcome


def seconds(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The call's result and how long it took; an `InfrastructureError` is a result too."""
    started = time.perf_counter()
    try:
        result = call(*arguments)
    except InfrastructureError as error:
        result = {"ended": "infrastructure_error", "reward": None, "reason": str(error)}
    return result, time.perf_counter() - started


def outcome(
    name: str, end: Any, answered: float, recovered: float, others: bool | None = None
) -> Row:
    """One line of the table.

    ``end``: the last observation; ``answered``: the seconds that it took; ``recovered``: those
    until the next reset has answered, counted from there; ``others``: whether the sessions beside
    it went on, None where they cannot.
    """
    if not isinstance(end, dict):
        end = end.model_dump()
    return {
        "fault": name,
        "ended": end["ended"] or "(goes on)",
        "reward": end["reward"],
        "answer_s": round(answered, 2),
        "next_reset_s": round(recovered, 2),
        "others_unaffected": others,
    }


# ---- processes that are killed or stopped ----


def chromium_mains(server: BrowserServer) -> list[psutil.Process]:
    """The main process of each Chromium below a server's workers."""
    return [
        process
        for worker in server.stats()["workers"]
        for process in descendants(worker["pid"])
        if "chrom" in process.name() and "--type=" not in " ".join(process.cmdline())
    ]


def kill_chromium(server: BrowserServer, worker: psutil.Process) -> None:
    """Kill the Chromium of a worker."""
    kill([process for process in chromium_mains(server) if worker in process.parents()])


def kill_worker(server: BrowserServer, worker: psutil.Process) -> None:
    """Kill a worker."""
    worker.kill()


def stop_worker(server: BrowserServer, worker: psutil.Process) -> None:
    """Let a worker stand still."""
    worker.send_signal(signal.SIGSTOP)


def kill_server(server: BrowserServer, worker: psutil.Process) -> None:
    """Kill the server."""
    psutil.Process(server_pid(server)).kill()


FAULTS: dict[str, Callable[[BrowserServer, psutil.Process], None]] = {
    "R1 Chromium killed": kill_chromium,
    "R3 worker killed": kill_worker,
    "R4 worker stopped": stop_worker,
    "R5 server killed": kill_server,
}


def reset_and_find_worker(server: BrowserServer, client: BrowserClient) -> psutil.Process:
    """Reset a session; returns the worker that did it."""
    before = {worker["pid"]: worker["requests"] for worker in server.stats()["workers"]}
    client.reset("click-test", 0)
    for worker in server.stats()["workers"]:
        if worker["requests"] > before[worker["pid"]]:
            return psutil.Process(worker["pid"])
    raise LookupError("No worker has had a request.")


def break_processes(times: int) -> Iterator[Row]:
    """Kill or stop, between reset and step, what the episode runs on; another session plays beside
    it."""
    with start_browser_server(workers=2, timeout=120) as server:
        for name, fault in FAULTS.items():
            for _ in range(times):
                with server.client() as one, server.client() as other:  # each worker gets one
                    worker = reset_and_find_worker(server, one)
                    other.reset("click-test", 0)
                    fault(server, worker)
                    others = None
                    if fault is not kill_server:
                        others = other.step(CLICK).reward == 1.0
                    end, answered = seconds(one.step, CLICK)
                    _, recovered = seconds(one.reset, "click-test", 0)
                    yield outcome(name, end, answered, recovered, others)


# ---- pages that misbehave ----


@contextmanager
def worker_on(handler: type[TaskPages]) -> Iterator[Callable[..., Any]]:
    """A worker whose pages come from ``handler``: a function that asks it, ``call("reset", session,
    task, seed)`` or ``call("step", session, action)``."""
    pages = serve_task_pages(handler)
    worker = Worker(pages.server_port, os.environ.get("TMPDIR", "/tmp"))

    def call(kind: str, *arguments: Any) -> Any:
        generation = worker.generation if kind == "step" else None
        return worker.call(generation, kind, *arguments)[1]

    try:
        worker.wait_ready()
        yield call
    finally:
        worker.stop()
        pages.shutdown()


@contextmanager
def misbehaving(script: str) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """A worker whose click-test page runs ``script`` too: its ``reset(task)`` and
    ``step(action)``."""

    class Pages(TaskPages):
        @override
        def do_GET(self) -> None:
            if not self.path.split("?")[0].endswith("/click-test.html"):
                super().do_GET()
                return
            page = (Path(self.directory) / "miniwob" / "click-test.html").read_text()
            body = page.replace("</body>", f"<script>{script}</script></body>").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with worker_on(Pages) as call:

        def reset(task: str = "click-test") -> Any:
            return call("reset", 1, task, 0)

        def step(action: str = CLICK) -> Any:
            return call("step", 1, action)

        yield reset, step


ON_CLICK = {
    "R2 endless loop": "while (true) {}",
    "R2 alert": "alert('a')",
    "R2 window.open": "window.open('about:blank')",
    "R2 navigation": "location = 'http://example.com/'",
}


def break_pages(times: int) -> Iterator[Row]:
    """Pages whose button does more than it should."""
    for name, script in ON_CLICK.items():
        listener = f"document.addEventListener('click', () => {{ {script} }})"
        with misbehaving(listener) as (reset, step):
            for _ in range(times):
                reset()
                end, answered = seconds(step)
                _, recovered = seconds(reset)
                yield outcome(name, end, answered, recovered)


# ---- strings ----


def send_strings(n: int) -> dict[str, dict[str, int]]:
    """All strings to a real page.

    Per kind: sent, executed (the parser let it through), paid, and what must stay 0: paid without
    the button, left the page, lost.
    """
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in STRINGS}
    with start_browser_server(workers=1, timeout=120) as server, server.client() as env:
        env.reset("click-test", 0)
        for kind, text in fuzzed(n):
            seen = env.step(text)
            paid = seen.reward == 1.0
            found = {
                "sent": 1,
                "executed": parse_action(text, actions=EVERY_ACTION).ok,
                "paid": paid,
                "paid_without_button": paid and not solves_click_test(text),
                "left_page": "/miniwob/click-test.html" not in seen.url,
                "lost": seen.ended == "infrastructure_error",
            }
            counts[kind].update(found)
            if seen.done:
                env.reset("click-test", 0)
    return {kind: dict(count) for kind, count in counts.items()}


def time_parser(n: int) -> dict[str, float]:
    """Milliseconds of `parse_action` over the same strings."""
    times = []
    for _, text in fuzzed(n):
        started = time.perf_counter()
        parse_action(text, actions=EVERY_ACTION)
        times.append(1_000 * (time.perf_counter() - started))
    cuts = statistics.quantiles(times, n=100)
    return {
        "median_ms": round(statistics.median(times), 4),
        "p99_ms": round(cuts[98], 4),
        "max_ms": round(max(times), 3),
    }


# ---- all of it ----


def show_faults(faults: Sequence[Row]) -> None:
    """Print a row per fault: the worst of its times."""
    rows = []
    for name in dict.fromkeys(found["fault"] for found in faults):
        of_this_kind = [found for found in faults if found["fault"] == name]
        if of_this_kind[0]["others_unaffected"] is None:
            others = "-"
        else:
            fine = all(found["others_unaffected"] for found in of_this_kind)
            others = "fine" if fine else "LOST"
        rows.append(
            [
                name,
                ", ".join(sorted({str(found["ended"]) for found in of_this_kind})),
                ", ".join(sorted({str(found["reward"]) for found in of_this_kind})),
                f"{max(found['answer_s'] for found in of_this_kind):.1f} s",
                f"{max(found['next_reset_s'] for found in of_this_kind):.1f} s",
                others,
            ]
        )
    columns = ["fault", "the episode says", "reward", "answer", "next reset", "others"]
    print(table(columns, rows))


def show_strings(strings: dict[str, dict[str, int]]) -> None:
    """Print a row per kind of string, and the sums."""
    names = list(next(iter(strings.values())))
    rows = [[kind, *(f"{counts[name]:,}" for name in names)] for kind, counts in strings.items()]
    sums = [sum(counts[name] for counts in strings.values()) for name in names]
    rows.append(["all", *(f"{total:,}" for total in sums)])
    print(table(["strings", *(name.replace("_", " ") for name in names)], rows))


def main(
    record_it: Record = False,
    times: Annotated[int, typer.Option(help="how often each fault is caused")] = 3,
    strings: Annotated[int, typer.Option(help="how many strings are sent")] = 10_000,
    machine: Annotated[
        float, typer.Option(help="minutes of random calls and faults instead")
    ] = 0.0,
) -> None:
    """What breaks and what it costs: faults caused on purpose, and hostile strings.

    \b
    python -m benchmarks.faults             a table of faults and one of strings (4 min on 2 cores)
    python -m benchmarks.faults --record    the same, written to recordings/faults/result.json
    python -m benchmarks.faults --machine 5    random calls and faults on several sessions, held
                                            against a model (benchmarks.state_machine)
    """
    if machine:
        run_for(machine)
        return
    result = {
        "times": times,
        "faults": [*break_processes(times), *break_pages(times)],
        "strings": send_strings(strings),
        "parser": time_parser(strings),
    }
    if record_it:
        record("faults", result)
    print(f"worst of {times}")
    show_faults(result["faults"])
    print()
    show_strings(result["strings"])
    timed = [f"{name.replace('_', ' ')} {value}" for name, value in result["parser"].items()]
    print("parser: " + ", ".join(timed))


if __name__ == "__main__":
    sys.exit(run(main))
