"""Write helpers/episodes/train_pages.json: training seeds whose pages have enough buttons.

Opens the pages of the training seeds in order, and keeps those with at least ``--buttons`` buttons.

    python tools/make_train_pages.py --task click-button --buttons 3 --pages 600
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer

from helpers.browser import start_browser_server
from helpers.command_line import run
from helpers.episodes.tasks import TRAIN_SEEDS
from helpers.settings.paths import ROOT

if TYPE_CHECKING:
    from helpers.browser.models import Client

FILE = ROOT / "helpers" / "episodes" / "train_pages.json"
SESSIONS = 8


def count_buttons(client: "Client", task: str, seed: int) -> int:
    """How many buttons the page of a seed has."""
    return sum(element.role == "button" for element in client.reset(task, seed).elements)


def choose_seeds(task: str, buttons: int, pages: int) -> tuple[list[int], int]:
    """The first training seeds with enough buttons, ``pages`` or a few more, and how many pages
    were opened for them."""
    kept: list[int] = []
    opened = 0
    with start_browser_server(workers=2) as server, ThreadPoolExecutor(SESSIONS) as threads:
        clients = server.clients(SESSIONS)
        for start in range(0, len(TRAIN_SEEDS), SESSIONS):
            seeds = TRAIN_SEEDS[start : start + SESSIONS]
            players = clients[: len(seeds)]
            counts = threads.map(count_buttons, players, [task] * len(seeds), seeds)
            for seed, count in zip(seeds, counts, strict=True):
                if count >= buttons:
                    kept.append(seed)
            opened += len(seeds)
            if len(kept) >= pages:
                break
    return kept, opened


def main(
    task: Annotated[str, typer.Option(help="The task whose pages are looked at.")] = "click-button",
    buttons: Annotated[int, typer.Option(help="How many buttons a page must have.")] = 3,
    pages: Annotated[int, typer.Option(help="How many pages are kept.")] = 600,
) -> None:
    """Write the training seeds of a task whose pages have enough buttons."""
    seeds, opened = choose_seeds(task, buttons, pages)
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    options = f"--task {task} --buttons {buttons} --pages {pages}"
    known[task] = {
        "command": f"python tools/make_train_pages.py {options}",
        "opened": opened,
        "seeds": seeds[:pages],
    }
    FILE.write_text(json.dumps(known) + "\n")
    print(f"{task}: {len(seeds)} of {opened} pages have at least {buttons} buttons")


if __name__ == "__main__":
    sys.exit(run(main))
