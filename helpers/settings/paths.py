"""Where things are in the repository."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
RECORDINGS = ROOT / "recordings"


def runs_folder(name: str = "") -> Path:
    """Where the run called ``name`` is written: runs/NAME in the repository.

    ``COURSE_RUNS`` puts another folder in the place of runs/. `make test` sets it: what the tests
    leave behind does not overwrite a policy that somebody trained.
    """
    return ROOT / os.environ.get("COURSE_RUNS", "runs") / name


def shown(path: Path) -> Path:
    """A path as a reader is told it: from the repository on where it is in it, else whole."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def notebook_paths(folder: Path = NOTEBOOKS) -> list[Path]:
    """The notebooks of a language: the six in their order, then those beside the thread, which are
    in more/."""
    return [*sorted(folder.glob("*.ipynb")), *sorted((folder / "more").glob("*.ipynb"))]


def chinese_of(notebook: Path) -> Path:
    """Where the Chinese twin of an English notebook is."""
    folder = NOTEBOOKS / "zh"
    return (folder / "more" if notebook.parent.name == "more" else folder) / notebook.name
