"""Plays episodes in stock BrowserGym, from a process that has no stock BrowserGym in it.

Each process of `benchmarks.stock_browsergym` plays one plan.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from helpers.settings.paths import ROOT

Plan = list[list[Any]]  # [[task, seed, [action, ...]], ...]
StockEpisode = list[dict[str, Any]]  # what stock showed: after the reset, and after each action


def play_in_stock(plans: Sequence[Plan]) -> tuple[list[list[StockEpisode]], float]:
    """Play one plan per process, all at once.

    Returns the episodes of each plan, and the seconds from the start signal to the last answer: the
    start of Python is not counted.
    """
    processes = [_start() for _ in plans]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "READY\n", "stock BrowserGym did not start"
    started = time.perf_counter()
    for process, plan in zip(processes, plans, strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps(plan) + "\n")
        process.stdin.flush()
    answers = [process.communicate()[0] for process in processes]
    seconds = time.perf_counter() - started
    return [json.loads(answer.split("RESULT ")[1]) for answer in answers], seconds


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.stock_browsergym"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
