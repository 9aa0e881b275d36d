"""Run the notebooks for real, in order: ``make course`` and ``make notebooks``.

    python tools/run_course.py               into runs/<time>/: executed notebooks, HTML, an index
    python tools/run_course.py --only 03,05  some of them (side_ways: one of notebooks/more)
    python tools/run_course.py --in-place    execute the committed notebooks again

A notebook that fails does not stop the others; the exit code is 1 then. A line that a notebook
prints and that starts with "Result:" is shown beside its time.
"""

import asyncio
import os
import re
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import nbformat
import typer
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.preprocessors import ClearOutputPreprocessor
from nbformat import NotebookNode
from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.text import Text
from typing_extensions import override

from helpers.command_line import run
from helpers.output import clock
from helpers.settings.errors import CourseError
from helpers.settings.names import split_names
from helpers.settings.paths import NOTEBOOKS, ROOT, notebook_paths, runs_folder
from tools.committed_form import normalise
from tools.run_report import Outcome, save_notebook, write_index, write_times
from tools.site.notebook import ANSI


class ElapsedTime(ProgressColumn):
    """The minutes and seconds since a notebook was started."""

    @override
    def render(self, task: Task) -> Text:
        return Text(f"{clock(task.elapsed or 0):>7}")


def progress_line() -> Progress:
    """The line of the notebook that is running, on a terminal only; it is gone afterwards.

    `helpers.output.Progress` does not fit: nobody calls it while a cell trains for minutes, and in
    a log there shall be one line for each notebook, once it is done. rich has a clock that ticks.
    """
    return Progress(
        TextColumn("  ...   {task.description:<34}"),
        ElapsedTime(),
        TextColumn(" cell {task.completed:.0f} of {task.total:.0f}"),
        transient=True,
        refresh_per_second=1,  # the cores are the notebook's
        disable=not sys.stdout.isatty(),
        redirect_stdout=False,
        redirect_stderr=False,
    )


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that are executed."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def title_of(notebook: NotebookNode, default: str) -> str:
    """The first heading of level one."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = re.search(r"^# +(.+)$", cell.source, re.MULTILINE)
            if heading:
                return heading[1].strip()
    return default


def result_of(notebook: NotebookNode) -> str:
    """What the last line says that starts with "Result:", else the number of cells."""
    found = ""
    for cell in code_cells(notebook):
        for output in cell.get("outputs", []):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            for line in re.findall(r"^Result: *(.+)$", text, re.MULTILINE):
                found = line.strip()
    return found or f"{len(code_cells(notebook))} cells"


def error_of(error: Exception) -> str:
    """What happened, in one line."""
    if isinstance(error, CellExecutionError):
        said = f"{error.ename}: {(error.evalue.strip() or ' ').splitlines()[0]}"
    elif isinstance(error, CellTimeoutError):
        said = "it ran longer than --cell-timeout allows"
    elif isinstance(error, DeadKernelError):
        said = "the kernel died (no memory, perhaps)"
    else:
        said = " ".join(f"{type(error).__name__}: {error}".split())
    return ANSI.sub("", said)[:300]


def name_of(path: Path) -> str:
    """A notebook's name in the folder of a run, such as 01_... or more/..., without its ending."""
    return f"more/{path.stem}" if path.parent.name == "more" else path.stem


def execute(path: Path, cell_timeout: int, log: Path) -> tuple[NotebookNode, Outcome]:
    """Run one notebook from a fresh kernel in its own folder; the outputs are in what returns.

    What the kernel's process says on its own standard error goes to ``log``, which is kept where
    the notebook fails. Whatever its failure is, it becomes the outcome's ``error``.
    """
    notebook = nbformat.read(path, as_version=4)
    notebook, _ = ClearOutputPreprocessor().preprocess(notebook, {})
    cells = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    outcome = Outcome(name_of(path), title_of(notebook, path.stem), cells=len(cells))
    now = 0  # which of its code cells runs
    started = time.monotonic()
    with progress_line() as progress, log.open("w") as stderr:
        line = progress.add_task(outcome.name, total=len(cells))

        def count(cell: NotebookNode, cell_index: int) -> None:
            nonlocal now
            if cell_index in cells:
                now = cells.index(cell_index) + 1
                progress.update(line, completed=now)

        client = NotebookClient(
            notebook,
            timeout=cell_timeout,
            kernel_name="python3",
            on_cell_start=count,
            resources={"metadata": {"path": str(path.parent)}},
        )
        try:
            client.execute(stderr=stderr)
            outcome.result = result_of(notebook)
        except Exception as error:
            if getattr(client, "_async_cleanup_kernel_future", None):  # nbclient saw a Ctrl-C
                raise KeyboardInterrupt from None
            outcome.error = f"cell {now} of {len(cells)}: {error_of(error)}"
    outcome.seconds = time.monotonic() - started
    if not outcome.error:
        log.unlink()
    return notebook, outcome


def report(outcome: Outcome) -> None:
    """Print the line of a notebook that is done."""
    mark = "FAIL" if outcome.error else "ok"
    said = outcome.error or outcome.result
    print(f"  {mark:<5} {outcome.name:<34} {clock(outcome.seconds):>7}  {said}", flush=True)


def overwrite(path: Path, notebook: NotebookNode) -> None:
    """Put an executed notebook in the place of the committed one, whole or not at all."""
    normalise(notebook, path.stem)
    written = path.with_suffix(".tmp")
    nbformat.write(notebook, written)
    os.replace(written, path)


def choose(folder: Path, only: str) -> list[Path]:
    """The notebooks of a folder whose names begin with one of the parts of ``only`` (all: "")."""
    parts = tuple(part for part in split_names(only) if part)
    paths = notebook_paths(folder.resolve())
    chosen = [path for path in paths if not parts or path.name.startswith(parts)]
    if not chosen:
        beside = ", ".join(path.stem for path in paths if path.parent.name == "more")
        raise CourseError(
            f"There is no notebook {only} in {folder}: they are named 01_... to 06_... "
            f"and, in more/, {beside}."
        )
    return chosen


def prepare_kernels() -> None:
    """Make the kernels import helpers from this checkout, in this environment.

    Whatever else the user has installed for Jupyter has no part in a run.
    """
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    if sys.platform == "win32":
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())


def run_notebooks(paths: list[Path], folder: Path, in_place: bool, cell_timeout: int) -> int:
    """Run notebooks one after the other and return the exit code.

    ``in_place``: those that work are written over the committed ones; the others, like all of them
    without it, are written into ``folder``, beside an index page.
    """
    outcomes: list[Outcome] = []
    for path in paths:
        log = folder / f"{name_of(path)}.log"
        log.parent.mkdir(exist_ok=True)
        notebook, outcome = execute(path, cell_timeout, log)
        report(outcome)
        outcomes.append(outcome)
        if in_place and not outcome.error:
            overwrite(path, notebook)
        else:
            save_notebook(notebook, outcome, path.parent, folder)
            # After each notebook: a run that is stopped leaves a page of what it did, too.
            write_index(folder, outcomes, len(paths))
            write_times(folder, outcomes)
    failed = sum(bool(outcome.error) for outcome in outcomes)
    where = f": {os.path.relpath(folder / 'index.html')}" if any(folder.iterdir()) else ""
    total = clock(sum(outcome.seconds for outcome in outcomes))
    print(f"{len(outcomes) - failed} of {len(outcomes)} notebooks ran, in {total} min{where}")
    if not where:
        folder.rmdir()
    return 1 if failed else 0


def main(
    only: Annotated[
        str, typer.Option(help="How the names of the notebooks to run begin, such as 03 or 03,05.")
    ] = "",
    in_place: Annotated[
        bool,
        typer.Option("--in-place", help="Write the executed notebooks over the committed ones."),
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where the notebooks are.")] = NOTEBOOKS,
    out: Annotated[
        Path | None, typer.Option(help="Where the folder of this run is made (runs/).")
    ] = None,
    cell_timeout: Annotated[int, typer.Option(help="Seconds that one cell may run.")] = 3600,
) -> int:
    """Run the notebooks for real, in order."""
    paths = choose(folder, only)
    prepare_kernels()
    run_folder = (out or runs_folder()).resolve() / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    run_folder.mkdir(parents=True)
    try:
        return run_notebooks(paths, run_folder, in_place, cell_timeout)
    except KeyboardInterrupt:
        print("  stopped")
        return 130


if __name__ == "__main__":
    sys.exit(run(main))
