"""Makes recordings/parity/stock.jsonl.gz, the record of stock BrowserGym's episodes."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.comparison import play, with_each
from benchmarks.drawing import DRAWN_BY, drawing
from benchmarks.recorded_episodes import (
    GOLDEN,
    SEEDS,
    Lines,
    Recorded,
    add_again,
    as_played,
    as_recorded,
    read_golden,
    write_golden,
)
from benchmarks.stock_processes import PlannedEpisode, StockEpisode, StockPool
from helpers.browser.chromium import find_chromium
from helpers.output import Progress
from helpers.settings.paths import runs_folder

Key = tuple[str, int]  # task and seed
Played = dict[Key, list[dict[str, Any]]]

PROCESSES = 4  # on 2 cores: stock mostly sleeps


def record_stock(tasks: Sequence[str]) -> None:
    """Play the episodes of these tasks in stock, twice, and write what it shows; what the record
    has of other tasks stays. It can be stopped, and goes on where it was."""
    golden = read_golden() if GOLDEN.exists() else []
    wanted = episodes_of(tasks, golden)
    lines = Lines(runs_folder("parity") / "stock.jsonl")
    rounds: list[Played] = [{}, {}]
    for line in lines.read():
        if line["actions"] == wanted.get((line["task"], line["seed"])):
            rounds[line["round"]][line["task"], line["seed"]] = line["stock"]
    with StockPool(PROCESSES) as pool:
        for i in range(len(rounds)):
            play_round(pool, i, wanted, rounds[i], lines)
    write_drawing()
    others = [episode for episode in golden if episode["task"] not in tasks]
    write_golden([*others, *twice_played(wanted, *rounds)])
    lines.path.unlink()


def write_drawing() -> None:
    """Note how the machine of the record draws pages."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        drawn = drawing(browser.new_page())
        browser.close()
    DRAWN_BY.write_text(json.dumps(drawn, indent=1) + "\n")


def episodes_of(tasks: Sequence[str], golden: Sequence[Recorded]) -> dict[Key, list[str]]:
    """The actions of each episode to be recorded: those that the record has, else drawn ones."""
    known = {(episode["task"], episode["seed"]): episode["actions"] for episode in golden}
    new = [task for task in tasks if any((task, seed) not in known for seed in SEEDS)]
    if new:
        drawn = with_each(new, lambda env, task: [play(env, task, seed)[1] for seed in SEEDS])
        for task, actions in drawn.items():
            known |= {(task, seed): each for seed, each in zip(SEEDS, actions, strict=True)}
    return {(task, seed): known[task, seed] for task in tasks for seed in SEEDS}


def play_round(
    pool: StockPool, number: int, wanted: dict[Key, list[str]], played: Played, lines: Lines
) -> None:
    """Play what this round has not ``played`` yet, and add it, there and to ``lines``."""
    left = [[task, seed, wanted[task, seed]] for task, seed in wanted if (task, seed) not in played]
    what = f"episodes of recording {number + 1} of 2"
    with Progress(len(wanted), what, initial=len(played)) as progress:

        def keep(episode: PlannedEpisode, stock: StockEpisode) -> None:
            task, seed, actions = episode
            played[task, seed] = stock
            line = {"round": number, "task": task, "seed": seed, "actions": actions}
            lines.add(line | {"stock": stock})
            progress.reach(len(played))

        pool.for_each(left, keep)


def twice_played(wanted: dict[Key, list[str]], first: Played, second: Played) -> Iterator[Recorded]:
    """The episodes as the record keeps them, but for those that stock cannot play."""
    for (task, seed), actions in wanted.items():
        if first[task, seed] and second[task, seed]:
            episode = {"task": task, "seed": seed, "actions": actions}
            episode = as_recorded(episode, as_played(first[task, seed]))
            yield add_again(episode, as_played(second[task, seed]))
        else:
            print(f"stock BrowserGym cannot play {task}, seed {seed}: {actions}")
