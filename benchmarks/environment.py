"""What an episode costs in stock BrowserGym and here, measured side by side in one run.

    python -m benchmarks.environment                 a table
    python -m benchmarks.environment --json          one JSON object
    python -m benchmarks.environment --workers 1,2   only these for the episodes per second
    python -m benchmarks.environment --each-task     the episodes per second of every task, two workers on either side (15 min)
    python -m benchmarks.environment --record        any of these, written to recordings/environment/ too

Single calls are medians over ``--repeat`` episodes of one session that has nothing beside it. Episodes per second are one reset
and one right click on click-button, a new seed each, both sides observing the page after every call; ours go through the OpenEnv
client. Stock takes a screenshot with every observation, ours only when asked for, which is part of the difference. ``wire_ms`` is
a step that executes nothing: the same observation comes back, so all of it is client, server and serialisation. Memory is the
proportional set size (PSS) of the server and all below it, after one episode in each of its sessions. ``cpu_ms``: what an
episode costs in CPU time, by process; where its sum times the episodes per second comes near the cores, that is the bound.
``wire_bytes`` is an observation's JSON on either side; the bytes of ``--each-task`` are what the socket carries, deflated.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from benchmarks.recording import record
from benchmarks.soak import measure as usage
from helpers.browser import start_browser_server
from helpers.browser.processes import descendants
from helpers.evaluation.agents import text_match_agent
from helpers.settings.paths import ROOT

STOCK = Path(__file__).with_name("stock_browsergym.py")
CLICK, FILL, FIRST_SEED = "click-button", "enter-text", 20_000


def in_stock(plans: list[list]) -> tuple[list[list], float]:
    """Play one plan per process, all at once; returns their episodes, and the seconds from the start signal to the last
    answer."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(STOCK)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
        )
        for _ in plans
    ]
    for process in processes:
        assert process.stdout.readline() == "READY\n", "stock BrowserGym did not start"
    started = time.perf_counter()
    for process, plan in zip(processes, plans, strict=True):
        process.stdin.write(json.dumps(plan) + "\n")
        process.stdin.flush()
    answers = [process.communicate()[0] for process in processes]
    seconds = time.perf_counter() - started
    return [json.loads(answer.split("RESULT ")[1]) for answer in answers], seconds


def timed(call, *arguments, **named):
    """The call's result and its milliseconds."""
    started = time.perf_counter()
    result = call(*arguments, **named)
    return result, 1_000 * (time.perf_counter() - started)


def single_calls(repeat: int) -> tuple[dict, list]:
    """Medians of our calls, in ms and bytes, and the same episodes as a plan for stock."""
    ours, plan = (
        {
            "reset_ms": [],
            "click_ms": [],
            "fill_ms": [],
            "screenshot_ms": [],
            "wire_bytes": [],
            "wire_ms": [],
        },
        [],
    )
    with start_browser_server(workers=1) as server, server.client() as env:
        for task in (CLICK, FILL):
            env.reset(task, 1)  # a first page warms the browser, here and in stock
            plan.append([task, 1, []])
            for seed in range(FIRST_SEED, FIRST_SEED + repeat):
                seen, ms = timed(env.reset, task, seed)
                if task == CLICK:
                    ours["reset_ms"].append(ms)
                    ours["wire_bytes"].append(len(seen.model_dump_json()))
                    ours["wire_ms"].append(timed(env.step, "no action")[1])
                    bare, pictured = (
                        timed(env.step, "noop(0)")[1],
                        timed(env.step, "noop(0)", screenshot=True)[1],
                    )
                    ours["screenshot_ms"].append(max(0.0, pictured - bare))
                action = text_match_agent(seen, 0)
                plan.append([task, seed, [action]])
                ours["click_ms" if task == CLICK else "fill_ms"].append(timed(env.step, action)[1])
    return {name: statistics.median(values) for name, values in ours.items()}, plan


def medians_of_stock(episodes: list[list]) -> dict:
    """The same numbers from what stock played; the first episode of each task is left out, as ours is."""
    half = len(episodes) // 2
    clicks, fills = episodes[1:half], episodes[half + 1 :]
    return {
        "reset_ms": statistics.median(1_000 * e[0]["seconds"] for e in clicks),
        "click_ms": statistics.median(1_000 * e[1]["seconds"] for e in clicks),
        "fill_ms": statistics.median(1_000 * e[1]["seconds"] for e in fills),
        "screenshot_ms": statistics.median(1_000 * e[-1]["screenshot_seconds"] for e in clicks),
        "wire_bytes": statistics.median(e[0]["wire_bytes"] for e in clicks),
    }


def cpu_seconds(pid: int) -> Counter:
    """CPU seconds so far: our own (the client), and those of a server's tree by kind of process."""
    parts = Counter(client=sum(psutil.Process().cpu_times()[:2]))
    for process in descendants(pid):
        words = " ".join(process.cmdline())
        kind = re.search(r"--type=(\w+)", words)
        name = (
            "server"
            if process.pid == pid
            else "worker"
            if "helpers.browser.worker" in words
            else "playwright"
            if "node" in process.name()
            else f"chromium {kind[1] if kind else 'browser'}"
        )
        parts[name] += sum(process.cpu_times()[:2])
    return parts


def our_throughput(workers: int, episodes: int) -> tuple[float, dict[str, float], list]:
    """Episodes per second with four sessions per worker, milliseconds of CPU per episode and process, the plan that was
    played."""
    with (
        start_browser_server(workers=workers) as server,
        ThreadPoolExecutor(4 * workers) as threads,
    ):
        clients = server.clients(4 * workers)
        plans: list[list] = [[] for _ in clients]

        def play(i: int, n: int) -> None:
            for k in range(n):
                seen = clients[i].reset(CLICK, FIRST_SEED + k * len(clients) + i)
                action = text_match_agent(seen, 0)
                plans[i].append([CLICK, seen.seed, [action]])
                clients[i].step(action)

        list(threads.map(play, range(len(clients)), [1] * len(clients)))  # warms every session
        for plan in plans:
            plan.clear()
        each = max(2, episodes // len(clients))
        before = cpu_seconds(server._process.pid)
        _, ms = timed(lambda: list(threads.map(play, range(len(clients)), [each] * len(clients))))
        used = cpu_seconds(server._process.pid)
        n = each * len(clients)
        used.subtract(before)
        cpu_ms = {name: round(1_000 * seconds / n, 1) for name, seconds in used.most_common()}
    return n / ms * 1_000, cpu_ms, [episode for plan in plans for episode in plan]


def stock_throughput(workers: int, plan: list, episodes: int) -> float:
    """Episodes per second of as many stock processes; the start of Python is not counted."""
    each = max(2, episodes // workers)
    plans = [[*plan[i * each : (i + 1) * each]] or plan[:each] for i in range(workers)]
    played, seconds = in_stock(plans)
    return sum(map(len, played)) / seconds


def measure(workers: list[int], repeat: int, episodes: int) -> dict:
    """Everything, as the object that ``--json`` prints: {name: {"stock", "ours", "ratio"}}."""
    ours, plan = single_calls(repeat)
    stock = medians_of_stock(in_stock([plan])[0][0])
    table = {
        name: {
            "stock": round(stock[name], 1),
            "ours": round(ours[name], 1),
            "ratio": round(stock[name] / ours[name], 1),
        }
        for name in stock
    }
    table["wire_ms"] = {"ours": round(ours["wire_ms"], 2)}
    per_second, cpu_ms = {"stock": {}, "ours": {}, "ratio": {}}, {}
    for n in workers:
        rate, cpu_ms[n], plan = our_throughput(n, episodes)
        slow = stock_throughput(n, plan, max(2 * n, episodes // 20))
        per_second["ours"][n], per_second["stock"][n] = round(rate, 2), round(slow, 3)
        per_second["ratio"][n] = round(rate / slow, 1)
    return table | {
        "episodes_per_s": per_second,
        "cpu_ms": cpu_ms,
        "memory_mb": memory(2, 16),
        "cores": os.cpu_count(),
        "repeat": repeat,
    }


def memory(workers: int, sessions: int) -> dict[str, float]:
    """Megabytes of a server with one session per worker, and what each further session adds."""
    with start_browser_server(workers=workers) as server:
        used = []
        for n in (workers, sessions - workers):
            for seed, client in enumerate(server.clients(n)):
                client.reset(CLICK, seed)
            used.append(usage(server._process.pid)["memory_mb"])
    return {"server": used[0], "per_session": round((used[1] - used[0]) / (sessions - workers), 1)}


def sent_bytes(seen) -> int:
    """Bytes of an observation as the WebSocket sends it: deflated."""
    return len(zlib.compress(seen.model_dump_json().encode(), wbits=-15))


def each_task(repeat: int) -> dict[str, dict[str, float]]:
    """Episodes per second of the recorded episodes of every covered task (a reset and up to two actions): two stock processes
    with one episode each, then ours, two workers with four sessions each and ``repeat`` episodes a session. And the bytes of
    an observation, without and with its picture."""
    from benchmarks.parity import read_golden

    by_task: dict[str, list] = {}
    for episode in read_golden():
        by_task.setdefault(episode["task"], []).append(
            [episode["task"], episode["seed"], episode["actions"]]
        )
    stock, _ = in_stock([[plan[i] for plan in by_task.values()] for i in (0, 1)])
    result = {}
    with start_browser_server(workers=2) as server, ThreadPoolExecutor(8) as threads:
        clients = server.clients(8)

        def play(client, plan: list) -> None:
            for task, seed, actions in plan:
                client.reset(task, seed)
                for action in actions:
                    client.step(action)

        for i, (task, plan) in enumerate(by_task.items()):
            list(threads.map(play, clients, [plan[:1]] * 8))
            _, ms = timed(
                lambda plan=plan: list(
                    threads.map(play, clients, [(plan[:2] * repeat)[:repeat]] * 8)
                )
            )
            slow = 2 / statistics.mean(sum(seen["seconds"] for seen in side[i]) for side in stock)
            seen = clients[0].reset(task, plan[0][1], screenshot=True)
            result[task] = {
                "stock": round(slow, 3),
                "ours": round(8_000 * repeat / ms, 2),
                "ratio": round(8_000 * repeat / ms / slow, 1),
                "text_bytes": sent_bytes(seen.model_copy(update={"screenshot": None})),
                "picture_bytes": sent_bytes(seen),
            }
    return result


def show_tasks(result: dict) -> None:
    for task, row in sorted(result.items(), key=lambda item: item[1]["ratio"]):
        print(
            f"{task:28}{row['stock']:10.3f}{row['ours']:10.2f}{row['ratio']:9.1f}   episodes/s"
            f"{row['text_bytes']:10,} bytes{row['picture_bytes']:10,} with picture"
        )
    ratios = [row["ratio"] for row in result.values()]
    print(
        f"{len(ratios)} tasks: median {statistics.median(ratios):.0f} times stock, least {min(ratios):.1f}, "
        f"below 12 on {sum(r < 12 for r in ratios)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )
    parser.add_argument("--workers", default="1,2,4,8", help="worker counts, separated by commas")
    parser.add_argument("--repeat", type=int, default=15, help="episodes per median")
    parser.add_argument(
        "--episodes",
        type=int,
        default=160,
        help="episodes of ours per worker count (stock: a twentieth)",
    )
    parser.add_argument("--each-task", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.each_task:
        result = each_task(max(2, options.repeat // 2))
    else:
        result = measure(
            [int(n) for n in options.workers.split(",")], options.repeat, options.episodes
        )
    if options.record and options.each_task:
        record("environment", {"tasks": result}, "tasks.json", "--each-task")
    elif options.record:
        record("environment", result)
    if options.json:
        print(json.dumps(result))
    else:
        (show_tasks if options.each_task else show)(result)


def show(result: dict) -> None:
    print(
        f"{'':16}{'stock':>12}{'ours':>10}{'ratio':>9}   median of {result['repeat']}, {result['cores']} cores"
    )
    for name in ("reset_ms", "click_ms", "fill_ms", "screenshot_ms", "wire_bytes"):
        row = result[name]
        print(f"{name:16}{row['stock']:12,.1f}{row['ours']:10,.1f}{row['ratio']:9.1f}")
    print(f"{'wire_ms':16}{'':12}{result['wire_ms']['ours']:10.2f}")
    rates = result["episodes_per_s"]
    for n in rates["ours"]:
        print(
            f"{f'{n} workers':16}{rates['stock'][n]:12.3f}{rates['ours'][n]:10.2f}{rates['ratio'][n]:9.1f}   episodes/s"
        )
    for n, parts in result["cpu_ms"].items():
        whole = sum(parts.values())
        print(
            f"{f'{n} workers':16}CPU per episode {whole:.0f} ms, which is {rates['ours'][n] * whole / 1_000:.1f} cores: "
            + ", ".join(f"{name} {ms:.0f}" for name, ms in parts.items() if ms >= 1)
        )
    memory_mb = result["memory_mb"]
    print(
        f"memory: {memory_mb['server']:.0f} MB, and {memory_mb['per_session']:.0f} MB for each further session"
    )


if __name__ == "__main__":
    main()
