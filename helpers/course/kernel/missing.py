"""A name that is not there yet: which earlier cell of this notebook defines it."""

from __future__ import annotations

import json
import os
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from helpers.settings.language import language, say
from helpers.settings.paths import NOTEBOOKS, notebook_paths

MINUTES = re.compile(r" *[(（][^()（）]*(?:min|分钟)[^()（）]*[)）]$")  # behind a heading
NO_CODE = ("#", "!", "%")


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a notebook file."""

    source: str
    section: str
    """The heading above it; empty where there is none."""

    @property
    def first_line(self) -> str:
        """The first line that is Python."""
        lines = [line for line in self.source.splitlines() if line.strip()]
        return next((line for line in lines if not line.startswith(NO_CODE)), "")


def explain_missing(shell: Any, error: BaseException, traceback: TracebackType | None) -> list[str]:
    """Two lines that say what to run first.

    None where the name is not one that an earlier cell of the notebook defines, or where another
    file looked for it.
    """
    name = getattr(error, "name", None)
    if type(error) is not NameError or not name or not _was_sought_in(shell.user_ns, traceback):
        return []
    inputs = [source.strip() for source in shell.user_ns["In"]]
    cells = _notebook_of(shell.user_ns, inputs)
    places = [i for i, cell in enumerate(cells) if cell.source == inputs[-1]]
    earlier = cells[: places[-1]] if places else cells  # the cell may have been changed
    defining = [cell for cell in earlier if name in _names_of(shell, cell.source)]
    if not defining:
        return []
    return [
        say(
            "NameError: {name} is not defined yet. A cell in section {section!r} defines it, which "
            "starts with `{line}`.",
            name=name,
            section=defining[-1].section,
            line=defining[-1].first_line,
        ),
        say("Choose Run > Run All Above Selected Cell in the menu, and then run this cell again."),
    ]


def _was_sought_in(names: dict[str, Any], traceback: TracebackType | None) -> bool:
    """Whether the code that looked for the name was typed into the notebook, whose ``names`` these
    are."""
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_globals is names


def _names_of(shell: Any, source: str) -> set[str]:
    """What a cell defines for the cells after it; nothing where it is no Python."""
    try:
        table = symtable.symtable(shell.transform_cell(source), "a cell", "exec")
    except SyntaxError:
        return set()
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}


def _notebook_of(names: dict[str, Any], inputs: Sequence[str]) -> list[CodeCell]:
    """The code cells of the notebook that this kernel runs, as it was saved last.

    A front end may say which one it is: Jupyter's server and VS Code do. Else it is the one of the
    course's notebooks that has the most cells in common with what has been run.
    """
    said = os.environ.get("JPY_SESSION_NAME") or names.get("__vsc_ipynb_file__") or ""
    if Path(said).is_file():
        return _read(Path(said))
    languages = [NOTEBOOKS, NOTEBOOKS / "zh"]
    if language() == "zh":
        languages.reverse()  # of two that are alike the first is taken
    ours = [_read(path) for folder in languages for path in notebook_paths(folder)]
    ran = set(inputs) - {""}
    best = max(ours, key=lambda cells: _in_common(cells, ran), default=[])
    return best if _in_common(best, ran) else []


def _in_common(cells: Sequence[CodeCell], ran: set[str]) -> int:
    return len({cell.source for cell in cells} & ran)


def _read(path: Path) -> list[CodeCell]:
    """The code cells of a notebook file; none where it cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return []
    found = []
    section = ""
    for cell in cells:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "code":
            found.append(CodeCell(source, section))
        for heading in re.findall(r"^#{1,4} +(.+?) *$", source, re.MULTILINE):
            if cell["cell_type"] == "markdown":
                section = MINUTES.sub("", heading)
    return found
