"""Copy the notebooks to mine/ without what they printed: ``make lab`` opens JupyterLab on these.

    python -m scripts.working_copies

There you see what you have run yourself, and your changes and your outputs stay out of git. A copy
that you have changed or run stays as it is. Where the course has a newer notebook then, it is put
beside yours.
"""

import hashlib
import json
import sys
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ClearOutputPreprocessor
from nbformat import NotebookNode

from helpers.command_line import run
from helpers.settings.paths import NOTEBOOKS, ROOT, notebook_paths, shown

MINE = ROOT / "mine"
COPIED = "course_copy"  # in a copy's metadata: the fingerprint of what was copied


def main() -> None:
    """Copy what is not there yet, and say in a line where a newer notebook is put."""
    for source in [*notebook_paths(NOTEBOOKS), *notebook_paths(NOTEBOOKS / "zh")]:
        target = MINE / source.relative_to(NOTEBOOKS)  # so the links between them stay true
        newer = copy(source, target)
        if newer:
            print(
                f"The course has a newer {source.stem}: {shown(newer)}. Yours stays as it is, "
                f"{shown(target)}."
            )


def copy(source: Path, target: Path) -> Path | None:
    """Copy a notebook without outputs and counters; nothing that a reader has made is overwritten.

    Returns where a newer notebook has been put beside a reader's own; None where that is not so.
    """
    notebook = nbformat.read(source, as_version=4)
    version = fingerprint(notebook)
    if not target.exists():
        write(notebook, version, target)
        return None
    mine = read(target)
    if mine is not None and mine.metadata.get(COPIED) == version:
        return None
    if mine is not None and is_untouched(mine):
        write(notebook, version, target)
        return None
    beside = target.with_suffix(f".{version[:7]}.ipynb")
    if beside.exists():
        return None
    write(notebook, version, beside)
    return beside


def read(target: Path) -> NotebookNode | None:
    """A reader's copy; None where it is no notebook any more."""
    try:
        return nbformat.read(target, as_version=4)
    except (OSError, ValueError):
        return None


def fingerprint(notebook: NotebookNode) -> str:
    """What stands in a notebook, without what it printed, as a number."""
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def is_untouched(mine: NotebookNode) -> bool:
    """Whether nothing was changed in a copy, and nothing was run."""
    was_run = any(cell.get("outputs") or cell.get("execution_count") for cell in mine.cells)
    return mine.metadata.get(COPIED) == fingerprint(mine) and not was_run


def write(notebook: NotebookNode, version: str, target: Path) -> None:
    """Write a notebook without outputs and counters."""
    cleared, _ = ClearOutputPreprocessor().preprocess(notebook, {})
    cleared.metadata[COPIED] = version
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(cleared, target)


if __name__ == "__main__":
    sys.exit(run(main))
