"""How texts and notebooks become HTML: for the course's site and for the pages of `make course`."""

import re

import nbformat
import pytest
import test_links
import yaml
from a_chromium import a_chromium
from documents import read

from helpers.settings.paths import NOTEBOOKS, ROOT
from scripts.doctor import read_pins
from tools.run_report import Outcome, save_notebook, write_index
from tools.site.documents import Document, leads, main_documents, place_of, twin_of
from tools.site.markdown import render
from tools.site.project import contents_of

pytestmark = pytest.mark.docs


@pytest.mark.parametrize("document", main_documents(), ids=lambda document: document.source)
def test_headings_have_the_anchors_that_links_are_checked_against(document):
    path = ROOT / document.source
    by_hand = set(re.findall(r'<a id="([^"]+)"', test_links.markdown(path)))
    made = {heading.anchor for heading in document.page.headings}
    assert made == {anchor.replace('"', "") for anchor in test_links.anchors(path) - by_hand}
    assert len(made) == len(document.page.headings)


@pytest.mark.parametrize(
    "source, place, twin",
    [
        ("README.md", "index.html", "README_zh.md"),
        ("README_zh.md", "zh/index.html", "README.md"),
        ("CONTRIBUTING.md", "CONTRIBUTING.html", "docs/zh/contributing.md"),
        ("docs/zh/contributing.md", "zh/docs/contributing.html", "CONTRIBUTING.md"),
        ("docs/teaching/README.md", "docs/teaching/index.html", "docs/zh/teaching/README.md"),
        ("docs/zh/results.md", "zh/docs/results.html", "docs/results.md"),
        (
            "notebooks/zh/05_grpo_training.ipynb",
            "zh/notebooks/05_grpo_training.html",
            "notebooks/05_grpo_training.ipynb",
        ),
        ("recordings/benchmark/README.md", "recordings/benchmark/index.html", "README_zh.md"),
    ],
)
def test_each_text_has_a_place_and_a_twin(source, place, twin):
    assert place_of(source) == place
    assert twin_of(source) == twin
    assert (ROOT / twin).is_file()


def test_addresses_become_those_of_the_site():
    page = Document("docs/zh/results.md")
    assert page.target("../../recordings/click-button-full-seed0") == (
        "../../recordings/click-button-full-seed0/index.html"
    )
    assert page.target("training.md#x") == "training.html#x"
    assert page.target("../../LICENSE") == "../../LICENSE.txt"
    assert page.target("#hier") == "#hier"
    assert page.target("https://arxiv.org/abs/1#a") == "https://arxiv.org/abs/1#a"
    assert Document("README.md").target("notebooks/zh") == "zh/index.html"
    assert leads("zh/docs/results.html", "media/a.png") == "../../media/a.png"


def test_formulas_become_mathml_and_money_stays():
    page = render(r"It is $\frac{\alpha}{r} B$, costs `$x$`, and $5." "\n\n$$\nx^2\n$$\n")
    assert page.html.count("<math") == 2
    assert "<mfrac>" in page.html
    assert "costs <code>$x$</code>, and $5." in page.html
    assert "alpha" not in page.html


def test_what_belongs_to_another_site_is_left_out():
    text = """# Title

English | [中文](zh/a.md)

[![Open](https://img.shields.io/badge/a-b)](https://github.com/a/b)

Text<!-- begin x --> 1<!-- end -->.
"""
    page = render(text)
    assert page.html == '<h1 id="title">Title</h1>\n<p>Text 1.</p>\n'
    assert page.title == "Title"


def test_code_in_a_fold_stays_in_it():
    page = render("<details><summary>Hint</summary>\n\n```python\na = 1\n```\n</details>\n\nAfter.")
    inside = page.html.partition("<details>")[2].partition("</details>")[0]
    assert "highlight" in inside
    assert "After." not in inside


def test_headings_are_nested_as_their_levels_say():
    page = render("# A\n\n## B\n\n#### C\n\n## B\n")
    (top,) = contents_of(page.headings)
    assert (top["name"], [child["id"] for child in top["children"]]) == ("A", ["b", "b-1"])
    assert [child["name"] for child in top["children"][0]["children"]] == ["C"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """What `make course` leaves of the notebook with formulas, without running it."""
    folder = tmp_path_factory.mktemp("run")
    outcomes = []
    for path in sorted(NOTEBOOKS.glob("0[46]_*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        outcomes.append(Outcome(path.stem, notebook.cells[0].source.splitlines()[0].strip("# ")))
        save_notebook(notebook, outcomes[-1], NOTEBOOKS, folder)
    write_index(folder, outcomes, 2)
    return folder


@pytest.mark.parametrize("width", [1280, 400])
def test_the_pages_of_a_run_need_nothing_but_themselves(run_folder, width):
    asked = []
    with a_chromium() as browser:
        tab = browser.new_context(viewport={"width": width, "height": 800}, offline=True).new_page()
        tab.on("request", lambda request: asked.append(request.url))
        pages = sorted(run_folder.glob("*.html"))
        assert len(pages) == 3
        for path in pages:
            tab.goto(path.as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, path.name
            if path.name != "index.html":
                assert tab.locator("math").count() > 5
                assert tab.locator("a[href='index.html']").count() == 1
                assert tab.locator("math").first.bounding_box()["height"] > 8
    files = [url for url in asked if url.startswith("file:")]
    assert len(files) == 3  # the three pages, and nothing beside them
    assert all(url.startswith(("file:", "data:")) for url in asked)


# The workflow


def test_pages_are_deployed_from_what_make_site_writes():
    workflow = yaml.safe_load(read(".github/workflows/pages.yml"))
    site, deploy = workflow["jobs"]["site"], workflow["jobs"]["deploy"]
    commands = [step["run"] for step in site["steps"] if "run" in step]
    assert commands == ["make site"]
    uploaded = [step["with"] for step in site["steps"] if "upload" in step.get("uses", "")]
    assert uploaded == [{"path": "site"}]
    assert deploy["needs"] == "site"
    assert workflow["permissions"] == {"contents": "read"}
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
    assert "\n/site/\n" in read(".gitignore")


def test_what_the_site_needs_is_pinned_and_agrees_with_the_other_pins():
    ours = read_pins("tools/site/requirements.txt")
    assert set(ours) == {"mkdocs", "mkdocs-material", "jieba"}
    locked = read_pins("constraints.txt")
    assert {name: locked.get(name, version) for name, version in ours.items()} == ours
    lines = read("tools/site/requirements.txt").splitlines()
    assert all("==" in line for line in lines if not line.startswith(("#", "-")))
