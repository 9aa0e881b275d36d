"""Where the benchmarks keep what they measured: one JSON file per benchmark, under recordings/."""

import json
from typing import Any

from helpers.settings.paths import RECORDINGS


def record(name: str, result: dict[str, Any], file: str = "result.json", options: str = "") -> None:
    """Write recordings/``name``/``file``: the command that made it (``options``: what it was called with besides ``--record``),
    then the result."""
    path = RECORDINGS / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python -m", f"benchmarks.{name}", *options.split(), "--record"])
    path.write_text(json.dumps({"command": command} | result, indent=1) + "\n")
