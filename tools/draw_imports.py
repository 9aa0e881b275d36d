"""Who imports whom, read from the source: ``python -m tools.draw_imports`` writes the drawing of
the rooms into CONTRIBUTING.md.

tests/test_architecture.py judges with the same functions, so that the drawing and the rules cannot
say different things.
"""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from helpers.settings.paths import ROOT

# From the ground up: a room imports what stands before it here, never what stands after it.
ROOMS = ("settings", "browser", "policy", "episodes", "evaluation", "learning", "course")
GROUND = ("settings", "output", "command_line")  # drawn as one: every room may import these
FOLDERS = ("helpers", "scripts", "tools", "benchmarks")
DRAWING = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- imports: python -m tools.draw_imports -->", "<!-- end of imports -->"


def module_name(path: Path) -> str:
    """ "helpers.browser.client" for helpers/browser/client.py; a room's __init__ is the room."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(folders: tuple[str, ...] = FOLDERS) -> dict[str, Path]:
    """{name: file} of every module in these folders."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return {module_name(path): path for path in paths}


def imported_names(code: str, module: str = "") -> Iterator[str]:
    """The dotted names that code imports, also inside of functions and for type checkers only.

    ``from a.b import c`` gives a.b.c, whether c is a module or a name in one. ``module``: where the
    code stands, for relative imports.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def resolve(name: str, known: dict[str, Path]) -> str:
    """The module of ours that a dotted name is, or is in; an empty string where it is another's."""
    while name not in known:
        name, _, last = name.rpartition(".")
        if not name:
            return ""
    return name


def import_graph(folders: tuple[str, ...] = FOLDERS) -> dict[str, set[str]]:
    """{module: the modules of ours that it imports} over these folders."""
    known = modules(folders)
    graph = {}
    for name, path in known.items():
        found = imported_names(path.read_text(encoding="utf-8"), name)
        graph[name] = {resolve(one, known) for one in found} - {"", name}
    return graph


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; empty if none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def room_of(module: str) -> str:
    """ "browser" for helpers.browser.client; "settings" for all of the ground and for helpers."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] in GROUND:
        return "settings"
    return parts[1]


def room_graph() -> dict[str, set[str]]:
    """{room: the other rooms that it imports} in helpers/."""
    graph: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, imported in import_graph(("helpers",)).items():
        room = room_of(module)
        graph.setdefault(room, set()).update({room_of(name) for name in imported} - {room})
    return graph


def upward(graph: dict[str, set[str]]) -> list[str]:
    """The arrows of a graph of rooms that do not lead down, as "policy -> episodes"."""
    height = {room: i for i, room in enumerate(ROOMS)}
    return [
        f"{room} -> {other}"
        for room, others in graph.items()
        for other in sorted(others)
        if height[other] >= height[room]
    ]


def drawing(graph: dict[str, set[str]]) -> str:
    """The graph of the rooms as a Mermaid flow chart, the highest room first."""
    lines = ["```mermaid", "flowchart TD"]
    lines.append(f"    callers[{' · '.join(('notebooks', *FOLDERS[1:]))}] --> helpers")
    lines.append("    subgraph helpers")
    for room in reversed(ROOMS):
        below = [other for other in reversed(ROOMS) if other in graph[room]]
        lines.append(f"        {room} --> {' & '.join(below)}" if below else f"        {room}")
    lines[-1] += f"[{' · '.join(GROUND)}]"
    return "\n".join([*lines, "    end", "```"])


def drawn() -> str:
    """The drawing that stands in CONTRIBUTING.md; an empty string where there is none."""
    text = DRAWING.read_text(encoding="utf-8")
    match = re.search(f"{re.escape(BEGIN)}\n(.*?)\n{re.escape(END)}", text, re.DOTALL)
    return match[1] if match else ""


def main() -> None:
    """Write the drawing between its two marks in CONTRIBUTING.md."""
    text = DRAWING.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n{drawing(room_graph())}\n{END}{after}"
    DRAWING.write_text(new, encoding="utf-8")
    print(f"{DRAWING.name}: {'as it was' if new == text else 'drawn again'}")


if __name__ == "__main__":
    main()
