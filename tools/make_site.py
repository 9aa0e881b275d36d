"""Build the course's site: ``make site``.

Notebooks as they were executed, all texts of docs/ in both languages, and the player of recorded
episodes, with search. It is a folder: open site/index.html in a browser, without a server and
without a network, or put it on any web server.
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from helpers.command_line import run
from helpers.settings.paths import ROOT
from tools.site.build import build


def main(
    output: Annotated[Path, typer.Option(help="the folder of the site, which is made anew")] = (
        ROOT / "site"
    ),
) -> None:
    """Build the course's site into a folder."""
    begin = time.monotonic()
    count = build(output, ROOT / "build" / "site")
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6
    seconds = time.monotonic() - begin
    print(f"  {output / 'index.html'}: {count} pages, {size:.0f} MB, in {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(run(main))
