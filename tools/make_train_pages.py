"""Write helpers/episodes/train_pages.json: the training seeds of tasks whose pages differ in how many buttons they have.

Goes through the training seeds in order, opens each page, and keeps those with at least ``--buttons`` buttons.

    python tools/make_train_pages.py --task click-button --buttons 3 --pages 600
"""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor

from helpers.browser import start_browser_server
from helpers.episodes.tasks import TRAIN_SEEDS
from helpers.settings.paths import ROOT

FILE = ROOT / "helpers" / "episodes" / "train_pages.json"
SESSIONS = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="click-button")
    parser.add_argument("--buttons", type=int, default=3)
    parser.add_argument("--pages", type=int, default=600)
    options = parser.parse_args()
    kept: list[int] = []
    seen = 0
    with start_browser_server(workers=2) as server, ThreadPoolExecutor(SESSIONS) as threads:
        clients = server.clients(SESSIONS)

        def buttons(client, seed: int) -> int:
            return sum(e.role == "button" for e in client.reset(options.task, seed).elements)

        for seeds in zip(*[iter(TRAIN_SEEDS)] * SESSIONS, strict=False):
            counts = threads.map(buttons, clients, seeds)
            kept += [
                seed for seed, count in zip(seeds, counts, strict=False) if count >= options.buttons
            ]
            seen += len(seeds)
            if len(kept) >= options.pages:
                break
    pages = json.loads(FILE.read_text()) if FILE.exists() else {}
    pages[options.task] = {
        "command": f"python tools/make_train_pages.py --task {options.task} --buttons {options.buttons} "
        f"--pages {options.pages}",
        "opened": seen,
        "seeds": kept[: options.pages],
    }
    FILE.write_text(json.dumps(pages) + "\n")
    print(f"{options.task}: {len(kept)} of {seen} pages have at least {options.buttons} buttons")


if __name__ == "__main__":
    main()
