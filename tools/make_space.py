"""Put the environment together as a folder that `openenv build` and `openenv push` take.

``make space`` writes build/space. It needs nothing but Python, so that it runs before the set-up.
"""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HELPERS = ("__init__.py", "settings", "browser")  # what the server imports


def make_space(folder: Path) -> Path:
    """Copy deploy/space/, what the server needs of helpers/, the pins and the licence.

    ``folder`` is emptied first, and returned.
    """
    shutil.rmtree(folder, ignore_errors=True)
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "deploy" / "space", folder, ignore=skip)
    for name in HELPERS:
        source, target = ROOT / "helpers" / name, folder / "helpers" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=skip)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    for name in ("constraints.txt", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    return folder


if __name__ == "__main__":
    target = make_space(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "space")
    commands = [
        f"openenv validate {target} --level static",
        f"openenv build {target}",
        f"openenv push {target}",
    ]
    print(f"{target}: {'; '.join(commands)}")
