"""Put the environment together as a folder that `openenv build` and `openenv push` take.

make space                       writes build/space
python -m tools.make_space DIR   writes DIR, which is emptied first
"""

import shutil
import sys
from pathlib import Path

from helpers.settings.paths import ROOT

BUILT = ROOT / "build" / "space"
# What the server imports of helpers/.
HELPERS = (
    "__init__.py",
    "settings/__init__.py",
    "settings/errors.py",
    "settings/imports.py",
    "settings/names.py",
    "settings/paths.py",
    "browser",
)


def make_space(folder: Path) -> Path:
    """Copy deploy/space/, what the server needs of helpers/, the pins and the licence into
    ``folder``, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "deploy" / "space", folder, ignore=skip)
    for name in HELPERS:
        source = ROOT / "helpers" / name
        target = folder / "helpers" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=skip)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    for name in ("constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


if __name__ == "__main__":
    # No typer here: this needs no environment, any Python can run it.
    made = make_space(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT)
    print(f"{made}: openenv validate {made} --level static")
    print(f"        openenv build {made}; openenv push {made}")
