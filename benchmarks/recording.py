"""Where the benchmarks keep what they measured: one JSON file per benchmark, under recordings/."""

import json
from typing import Annotated, Any

import typer

from helpers.settings.paths import RECORDINGS

# Two options that the benchmarks share.
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")]
Record = Annotated[bool, typer.Option("--record", help="write the result under recordings/ too")]


def record(name: str, result: dict[str, Any], file: str = "result.json", options: str = "") -> None:
    """Write recordings/``name``/``file``: the command that made it, then the result.

    ``options``: what the benchmark was called with besides ``--record``.
    """
    path = RECORDINGS / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python -m", f"benchmarks.{name}", *options.split(), "--record"])
    path.write_text(json.dumps({"command": command} | result, indent=1) + "\n")
