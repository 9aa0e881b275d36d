"""The shape of the house: rooms import downwards only, nothing imports in a circle, and the drawing
in CONTRIBUTING.md is what the imports are."""

import json
import re
import subprocess

import pytest

from helpers.course.handed_in import python_of
from helpers.settings.paths import NOTEBOOKS, ROOT
from tools import draw_imports
from tools.draw_imports import ROOMS, circle, import_graph, imported_names, room_graph, upward

MADE_BY_RUNS = {"course-bundle", "mine", "runs", "build", "site"}
OURS = {"helpers", "scripts", "tools", "benchmarks", "tests", "deploy"}


@pytest.fixture(scope="module")
def graph():
    """{module: modules that it imports} of the whole repository, without its tests."""
    return import_graph()


def foreign_folders(graph, folder):
    """What modules of a folder import from other folders, as "scripts.x -> tools.y"."""
    return [
        f"{module} -> {name}"
        for module, imported in graph.items()
        for name in sorted(imported)
        if module.startswith(f"{folder}.") and not name.startswith(f"{folder}.")
    ]


def is_helpers(arrow):
    """Whether the arrow leads to helpers or into it."""
    return re.search(r"-> helpers(\.|$)", arrow) is not None


# The rules


def test_every_folder_of_helpers_is_a_room():
    folders = {path.parent.name for path in (ROOT / "helpers").glob("*/__init__.py")}
    assert folders == set(ROOMS)


def test_rooms_import_downwards_only():
    assert upward(room_graph()) == []


def test_no_modules_import_each_other_in_a_circle(graph):
    assert circle(graph) == []


def test_helpers_import_nothing_else_of_the_repository():
    for path in sorted((ROOT / "helpers").rglob("*.py")):
        tops = {name.partition(".")[0] for name in imported_names(path.read_text())}
        assert tops & (OURS - {"helpers"}) == set(), path


@pytest.mark.parametrize("folder", ["scripts", "benchmarks", "tools"])
def test_commands_import_helpers_and_their_own_folder_only(graph, folder):
    assert [arrow for arrow in foreign_folders(graph, folder) if not is_helpers(arrow)] == []


@pytest.mark.parametrize(
    "path",
    sorted(NOTEBOOKS.rglob("[0-9a-z]*.ipynb")),
    ids=lambda path: str(path.relative_to(NOTEBOOKS)),
)
def test_notebooks_import_helpers_alone(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    ours = set()
    for cell in cells:
        if cell["cell_type"] == "code":
            ours |= {name.partition(".")[0] for name in imported_names(python_of(cell))} & OURS
    assert ours <= {"helpers"}


def test_the_top_level_can_be_taken_in_at_a_glance():
    entries = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    entries = {name for name in entries - MADE_BY_RUNS if not name.endswith(".egg-info")}
    assert len(entries) <= 22, sorted(entries)


# The drawing


def test_the_drawing_is_what_the_imports_are():
    """Where this fails: `python -m tools.draw_imports`."""
    assert draw_imports.drawn() == draw_imports.drawing(room_graph())


def test_the_drawing_has_an_arrow_for_each_import():
    graph = room_graph()
    arrows = set()
    for line in draw_imports.drawing(graph).splitlines():
        room, arrow, below = line.strip().partition(" --> ")
        if arrow and room in ROOMS:
            arrows |= {(room, other) for other in below.split(" & ")}
    assert arrows == {(room, other) for room, others in graph.items() for other in others}


def test_the_command_draws_it_again(tmp_path, monkeypatch):
    text = draw_imports.DRAWING.read_text(encoding="utf-8")
    page = tmp_path / "CONTRIBUTING.md"
    page.write_text(text.replace("learning --> ", "learning --> nothing & "), encoding="utf-8")
    monkeypatch.setattr(draw_imports, "DRAWING", page)
    assert draw_imports.drawn() != draw_imports.drawing(room_graph())
    draw_imports.main()
    assert page.read_text(encoding="utf-8") == text


# What would be missed without being noticed


def test_imports_are_found_wherever_they_stand():
    code = """
import a.b
from c import d
if TYPE_CHECKING:
    from e.f import g

def late():
    from .near import thing
    from .. import further
"""
    assert list(imported_names(code, "house.room.file")) == [
        "a.b",
        "c.d",
        "e.f.g",
        "house.room.near.thing",
        "house.further",
    ]


def test_an_arrow_up_is_noticed():
    rooms = {room: set() for room in ROOMS}
    assert upward({**rooms, "learning": {"episodes", "settings"}}) == []
    assert upward({**rooms, "policy": {"browser", "episodes"}}) == ["policy -> episodes"]
    assert upward({**rooms, "policy": {"policy"}}) == ["policy -> policy"]


def test_a_circle_is_noticed():
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    found = circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert found[0] == found[-1]
    assert set(found) == {"a", "b", "c"}


def test_a_module_is_what_an_import_of_its_names_leads_to():
    known = draw_imports.modules(("helpers",))
    resolved = draw_imports.resolve("helpers.browser.client.connect", known)
    assert resolved == "helpers.browser.client"
    assert draw_imports.resolve("helpers.browser.no_module", known) == "helpers.browser"
    assert draw_imports.resolve("torch.nn", known) == ""


def test_what_git_ignores_is_not_counted():
    """What `MADE_BY_RUNS` names is made, not committed."""
    folders = [f"{name}/" for name in sorted(MADE_BY_RUNS)]
    command = ["git", "check-ignore", *folders]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ignored.returncode == 128:
        pytest.skip("this is no git checkout")
    assert ignored.stdout.split() == folders
