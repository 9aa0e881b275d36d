"""What an episode costs in stock BrowserGym and here, measured side by side in one run.

Single calls are medians over ``--repeat`` episodes of one session that has nothing beside it.
Episodes per second are one reset and one right click on click-button, a new seed each, both sides
observing the page after every call; ours go through the OpenEnv client. Stock takes a screenshot
with every observation, ours only when asked for, which is part of the difference. ``wire_ms`` is a
step that executes nothing: the same observation comes back, so all of it is client, server and
serialisation. Memory is the proportional set size (PSS) of the server and all below it, after one
episode in each of its sessions. ``cpu_ms``: what an episode costs in CPU time, by process; where
its sum times the episodes per second comes near the cores, that is the bound. ``wire_bytes`` is an
observation's JSON on either side; the bytes of ``--each-task`` (`benchmarks.environment_by_task`)
are what the socket carries, deflated.
"""

import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from benchmarks import environment_by_task
from benchmarks.process_usage import cpu_seconds_by_kind, server_pid, tree_usage
from benchmarks.recording import AsJson, Record, record
from benchmarks.stock_processes import Plan, StockEpisode, play_in_stock
from helpers.browser import BrowserClient, start_browser_server
from helpers.command_line import run
from helpers.evaluation.agents import text_match_agent
from helpers.output import table

CLICK, FILL, FIRST_SEED = "click-button", "enter-text", 20_000
SESSIONS_PER_WORKER = 4


def timed(call: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, float]:
    """The call's result and its milliseconds."""
    started = time.perf_counter()
    result = call(*arguments, **named)
    return result, 1_000 * (time.perf_counter() - started)


# ---- single calls ----


def single_calls(repeat: int) -> tuple[dict[str, float], Plan]:
    """Medians of our calls, in ms and bytes, and the same episodes as a plan for stock."""
    values: dict[str, list[float]] = defaultdict(list)
    plan: Plan = []
    with start_browser_server(workers=1) as server, server.client() as env:
        for task in (CLICK, FILL):
            env.reset(task, 1)  # a first page warms the browser, here and in stock
            plan.append([task, 1, []])
            for seed in range(FIRST_SEED, FIRST_SEED + repeat):
                seen, reset_ms = timed(env.reset, task, seed)
                if task == CLICK:
                    values["reset_ms"].append(reset_ms)
                    values["wire_bytes"].append(len(seen.model_dump_json()))
                    measure_steps(env, values)
                action = text_match_agent(seen, 0)
                plan.append([task, seed, [action]])
                _, action_ms = timed(env.step, action)
                values["click_ms" if task == CLICK else "fill_ms"].append(action_ms)
    return {name: statistics.median(found) for name, found in values.items()}, plan


def measure_steps(env: BrowserClient, values: dict[str, list[float]]) -> None:
    """What the way there and back costs, and what a picture adds."""
    _, wire_ms = timed(env.step, "no action")
    _, bare_ms = timed(env.step, "noop(0)")
    _, pictured_ms = timed(env.step, "noop(0)", screenshot=True)
    values["wire_ms"].append(wire_ms)
    values["screenshot_ms"].append(max(0.0, pictured_ms - bare_ms))


def medians_of_stock(episodes: Sequence[StockEpisode]) -> dict[str, float]:
    """The same numbers from what stock played; the first episode of each task is left out, as ours
    is."""
    half = len(episodes) // 2
    clicks, fills = episodes[1:half], episodes[half + 1 :]
    return {
        "reset_ms": statistics.median(1_000 * e[0]["seconds"] for e in clicks),
        "click_ms": statistics.median(1_000 * e[1]["seconds"] for e in clicks),
        "fill_ms": statistics.median(1_000 * e[1]["seconds"] for e in fills),
        "screenshot_ms": statistics.median(1_000 * e[-1]["screenshot_seconds"] for e in clicks),
        "wire_bytes": statistics.median(e[0]["wire_bytes"] for e in clicks),
    }


# ---- many episodes at once ----


def our_throughput(workers: int, episodes: int) -> tuple[float, dict[str, float], Plan]:
    """Episodes per second with four sessions per worker, milliseconds of CPU per episode and
    process, and the plan that was played."""
    sessions = SESSIONS_PER_WORKER * workers
    each = max(2, episodes // sessions)
    with (
        start_browser_server(workers=workers) as server,
        ThreadPoolExecutor(sessions) as threads,
    ):
        clients = server.clients(sessions)

        def play(session: int, n: int) -> Plan:
            plan = []
            for k in range(n):
                seed = FIRST_SEED + k * sessions + session
                action = text_match_agent(clients[session].reset(CLICK, seed), 0)
                clients[session].step(action)
                plan.append([CLICK, seed, [action]])
            return plan

        def play_in_all(n: int) -> list[Plan]:
            return list(threads.map(play, range(sessions), [n] * sessions))

        play_in_all(1)  # warms every session
        before = cpu_seconds_by_kind(server_pid(server))
        plans, ms = timed(play_in_all, each)
        used = cpu_seconds_by_kind(server_pid(server))
    n = each * sessions
    cpu_ms = {name: 1_000 * (used[name] - before.get(name, 0.0)) / n for name in used}
    most_first = sorted(cpu_ms, key=lambda name: -cpu_ms[name])
    rounded = {name: round(cpu_ms[name], 1) for name in most_first}
    return n / ms * 1_000, rounded, [episode for plan in plans for episode in plan]


def stock_throughput(workers: int, plan: Plan, episodes: int) -> float:
    """Episodes per second of as many stock processes; the start of Python is not counted."""
    each = max(2, episodes // workers)
    plans = [plan[i * each : (i + 1) * each] or plan[:each] for i in range(workers)]
    played, seconds = play_in_stock(plans)
    return sum(len(part) for part in played) / seconds


def memory(workers: int, sessions: int) -> dict[str, float]:
    """Megabytes of a server with one session per worker, and what each further session adds."""
    with start_browser_server(workers=workers) as server:
        used = []
        for n in (workers, sessions - workers):
            for seed, client in enumerate(server.clients(n)):
                client.reset(CLICK, seed)
            used.append(tree_usage(server_pid(server))["memory_mb"])
    return {"server": used[0], "per_session": round((used[1] - used[0]) / (sessions - workers), 1)}


# ---- all of it ----


def measure(workers: Sequence[int], repeat: int, episodes: int) -> dict[str, Any]:
    """Everything, as the object that ``--json`` prints: {name: {"stock", "ours", "ratio"}}."""
    ours, plan = single_calls(repeat)
    played, _ = play_in_stock([plan])
    stock = medians_of_stock(played[0])
    result: dict[str, Any] = {
        name: {
            "stock": round(stock[name], 1),
            "ours": round(ours[name], 1),
            "ratio": round(stock[name] / ours[name], 1),
        }
        for name in stock
    }
    result["wire_ms"] = {"ours": round(ours["wire_ms"], 2)}
    per_second: dict[str, dict[int, float]] = {"stock": {}, "ours": {}, "ratio": {}}
    cpu_ms = {}
    for n in workers:
        rate, cpu_ms[n], plan = our_throughput(n, episodes)
        stock_rate = stock_throughput(n, plan, max(2 * n, episodes // 20))
        per_second["ours"][n] = round(rate, 2)
        per_second["stock"][n] = round(stock_rate, 3)
        per_second["ratio"][n] = round(rate / stock_rate, 1)
    return result | {
        "episodes_per_s": per_second,
        "cpu_ms": cpu_ms,
        "memory_mb": memory(2, 16),
        "cores": os.cpu_count(),
        "repeat": repeat,
    }


def show(result: dict[str, Any]) -> None:
    """Print the table, and CPU time and memory below it."""
    rows = []
    for name in ("reset_ms", "click_ms", "fill_ms", "screenshot_ms", "wire_bytes"):
        row = result[name]
        rows.append([name, f"{row['stock']:,.1f}", f"{row['ours']:,.1f}", f"{row['ratio']:.1f}"])
    rows.append(["wire_ms", "", f"{result['wire_ms']['ours']:.2f}", ""])
    rates = result["episodes_per_s"]
    for n, rate in rates["ours"].items():
        stock_rate, ratio = rates["stock"][n], rates["ratio"][n]
        name = f"episodes/s, {n} workers"
        rows.append([name, f"{stock_rate:.3f}", f"{rate:.2f}", f"{ratio:.1f}"])
    print(f"median of {result['repeat']}, {result['cores']} cores")
    print(table(["", "stock", "ours", "ratio"], rows))
    for n, parts in result["cpu_ms"].items():
        whole = sum(parts.values())
        cores = rates["ours"][n] * whole / 1_000
        named = ", ".join(f"{name} {ms:.0f}" for name, ms in parts.items() if ms >= 1)
        print(f"{n} workers: CPU per episode {whole:.0f} ms, which is {cores:.1f} cores: {named}")
    used = result["memory_mb"]
    print(f"memory: {used['server']:.0f} MB, each further session {used['per_session']:.0f} MB")


def main(
    as_json: AsJson = False,
    workers: Annotated[str, typer.Option(help="worker counts, separated by commas")] = "1,2,4,8",
    repeat: Annotated[int, typer.Option(help="episodes per median")] = 15,
    episodes: Annotated[
        int, typer.Option(help="episodes of ours per worker count (stock: a twentieth)")
    ] = 160,
    each_task: Annotated[
        bool, typer.Option("--each-task", help="episodes per second of every task (40 min)")
    ] = False,
    record_it: Record = False,
) -> None:
    """What an episode costs in stock BrowserGym and here, measured side by side in one run.

    \b
    python -m benchmarks.environment                 a table
    python -m benchmarks.environment --workers 1,2   only these for the episodes per second
    python -m benchmarks.environment --each-task     two workers on either side, task by task
    python -m benchmarks.environment --record        written to recordings/environment/ too
    """
    if each_task:
        tasks = environment_by_task.measure()
        if record_it:
            record("environment", {"tasks": tasks}, "tasks.json", "--each-task")
        if as_json:
            print(json.dumps(tasks))
        else:
            environment_by_task.show(tasks)
        return
    result = measure([int(n) for n in workers.split(",")], repeat, episodes)
    if record_it:
        record("environment", result)
    if as_json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    sys.exit(run(main))
