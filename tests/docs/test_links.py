"""Every link inside the repository leads to a file and a heading; links to other sites have a form.

No site is asked: the tests run offline.
"""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from helpers.settings.paths import ROOT, notebook_paths
from tools.set_repository import badges, current

pytestmark = pytest.mark.docs

SKIPPED = {".venv", ".cache", ".git", ".pytest_cache", ".ipynb_checkpoints", "build", "runs"}
FOLDERS = "helpers|scripts|tools|benchmarks|tests|notebooks|media|recordings|docs|deploy"
PLACEHOLDER = re.compile(
    r"[<>{}…]|\.\.\.|\bexample\.|\b(?:your|my)[-_]|\b(?:todo|tbd|xxx|owner|repo|user)\b",
    re.IGNORECASE,
)
# The words may hold a picture: a badge.
LINK = re.compile(r"!?\[((?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\(([^)]*)\)")
COLAB = "https://colab.research.google.com/github"
OURS = current() or "octocat/browser-course"  # which nobody has named yet


def documents(root: Path = ROOT) -> list[Path]:
    """All texts for readers. (Notebooks of another folder are made by tests and runs.)

    The sources of the Chinese notebooks are no text of their own: the notebooks are.
    """
    chinese = root / "notebooks" / "zh"
    texts = [
        path
        for path in root.rglob("*.md")
        if not SKIPPED & set(path.relative_to(root).parts) and chinese not in path.parents
    ]
    notebooks = [*notebook_paths(root / "notebooks"), *notebook_paths(chinese)]
    return sorted([*texts, *notebooks])


def markdown(path: Path) -> str:
    """The prose of a file or of a notebook, without blocks of code and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    text = re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings: GitHub's slugs, in a notebook Jupyter's."""
    text = markdown(path)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)(?: +#+)?$", text, re.MULTILINE):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())  # of a link its words
        words = re.sub(r"<[^>]+>|[`*]", "", words)
        if path.suffix == ".ipynb":
            found.add(words.replace(" ", "-"))
        else:
            found.add(_slug(words, found))
    return found | set(re.findall(r"""<\w+[^>]*\b(?:id|name)=["']([^"']+)["']""", text))


def _slug(words: str, taken: set[str]) -> str:
    """GitHub's anchor for a heading; the second of the same words ends in -1, the third in -2."""
    slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
    anchor = slug
    number = 0
    while anchor in taken:
        number += 1
        anchor = f"{slug}-{number}"
    return anchor


def links(text: str) -> list[tuple[str, str]]:
    """(words, target) of each link, picture, tag and bare address."""
    text = re.sub(r"`[^`\n]*`", "", text)
    found = LINK.findall(text)
    for words, _ in list(found):
        found += LINK.findall(words)
    found = [(words, _without_title(target)) for words, target in found]
    found += re.findall(r"^\[([^\]]+)\]: *(\S+)", text, re.MULTILINE)
    bare = re.findall(r"""<\w+[^>]*\b(?:href|src)=["']([^"']*)["']""", text)
    bare += re.findall(r"""(?<![("'])\bhttps?://[^\s)>"'`]+""", text)
    return found + [("", target) for target in bare]


def _without_title(target: str) -> str:
    """The address of a link without the title in quotation marks that may stand behind it."""
    return re.sub(r""" +["'].*["']$""", "", target.strip())


def outside(target: str, path: Path, root: Path) -> str:
    """What is wrong with an address on the web, or an empty string."""
    hosts = rf"(?:https://github\.com|{re.escape(COLAB)})"
    if re.fullmatch(rf"{hosts}/{re.escape(OURS)}(?:\.git|/.*)?", target):
        name = re.search(r"/(?:blob|tree)/main/([^#?]+)", target)
        return _own_repository(unquote(name[1]), path, root) if name else ""
    address = urlsplit(target)
    if address.scheme != "https" or not re.fullmatch(r"(?:[\w-]+\.)+[a-z]{2,}", address.netloc):
        return "is not https://host/path"
    if re.search(r"\s", target) or PLACEHOLDER.search(target):
        return "has a space or a placeholder in it"
    return ""


def _own_repository(name: str, path: Path, root: Path) -> str:
    """What is wrong with an address of a file in this repository, or an empty string."""
    notebooks = path.suffix == Path(name).suffix == ".ipynb"
    if notebooks and Path(name).name != path.name:
        return "is the badge of another notebook"
    return "" if (root / name).exists() else "leads to no file of the repository"


def inside(words: str, target: str, path: Path, root: Path) -> str:
    """What is wrong with a link to a file or a heading, or an empty string."""
    name, _, anchor = target.partition("#")
    there = (path.parent / unquote(name)).resolve() if name else path
    if not there.exists() or not there.is_relative_to(root):
        return "leads to no file of the repository"
    if anchor and (there.suffix not in (".md", ".ipynb") or unquote(anchor) not in anchors(there)):
        return "leads to no heading"
    number = re.match(r"(?:notebook|笔记本)? *(\d)\b", words, re.IGNORECASE)
    if number and there.suffix == ".ipynb" and not there.name.startswith(f"0{number[1]}_"):
        return f"leads to another notebook than {number[1]}"
    return ""


def problems(path: Path, root: Path = ROOT) -> list[str]:
    """A sentence for each link that leads nowhere, and for each file or notebook that is not there.

    ``path``: the document; files and notebooks count where its prose names them.
    """
    text = markdown(path)
    found = []
    for words, target in links(text):
        if re.match(r"\w+:", target):
            wrong = outside(target, path, root)
        else:
            wrong = inside(words, target, path, root)
        if wrong:
            found.append(f"{target!r} {wrong}")
    names = re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", text)
    found += [f"there is no {name}" for name in names if not (root / name).exists()]
    for number in re.findall(r"(?:[Nn]otebooks?|笔记本) *(\d+)", text):
        if not list((root / "notebooks").glob(f"{int(number):02d}_*.ipynb")):
            found.append(f"there is no notebook {number}")
    return [f"{path.relative_to(root)}: {problem}." for problem in found]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert problems(path) == []


def test_the_documents_are_found_and_have_links():
    names = {str(path.relative_to(ROOT)) for path in documents()}
    assert {"README.md", "README_zh.md", "CONTRIBUTING.md", "docs/zh/glossary.md"} <= names
    assert {"notebooks/06_lora_training.ipynb", "notebooks/zh/06_lora_training.ipynb"} <= names
    assert {"docs/README.md", "docs/zh/troubleshooting.md"} <= names
    for name in ("README.md", "README_zh.md"):
        targets = {target for _, target in links(markdown(ROOT / name))}
        assert {"LICENSE", "CITATION.cff", "media/the_loop.png"} <= targets
        assert "https://arxiv.org/abs/2402.03300" in targets
    line = badges(OURS, ROOT / "notebooks" / "06_lora_training.ipynb")
    targets = [target for _, target in links(line)]
    assert any("colab.research" in target for target in targets)
    assert any("shields.io" in target for target in targets)


OTHER = """# The `make` command, v1.0!

## 快速开始

## 仓库里有什么？（说明）

## C++ & [Rust](other.md)

## Again_this

## Again_this

```
# in a block
```

<a id="by-hand"></a>
"""


@pytest.fixture
def folder(tmp_path):
    """A repository with two documents, one picture and one notebook."""
    for name in ("notebooks", "media", "helpers"):
        (tmp_path / name).mkdir()
    (tmp_path / "media" / "a.png").touch()
    cells = [
        {"cell_type": "markdown", "source": ["# 1. Start here\n", "\n", "## What it Says\n"]},
        {"cell_type": "code", "source": ["# not a heading"]},
    ]
    (tmp_path / "notebooks" / "01_start.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "other.md").write_text(OTHER, encoding="utf-8")
    return tmp_path


def test_headings_have_githubs_slugs(folder):
    assert anchors(folder / "other.md") == {
        "the-make-command-v10",
        "快速开始",
        "仓库里有什么说明",
        "c--rust",
        "again_this",
        "again_this-1",
        "by-hand",
    }
    assert anchors(folder / "notebooks" / "01_start.ipynb") == {"1.-Start-here", "What-it-Says"}


OWN_FILE = f"https://github.com/{OURS}/blob/main/other.md"
GOOD = f"""# Read me

[a](other.md) ![b](media/a.png "title") [c](other.md#快速开始) [d](#read-me)
[e](other.md#again_this-1) [f](helpers/) [1. Start](notebooks/01_start.ipynb)
[notebook 1](notebooks/01_start.ipynb#What-it-Says) `helpers/` <img src="media/a.png">
[![badge](https://img.shields.io/badge/a-b)]({OWN_FILE}) https://arxiv.org/abs/1
"""


def test_good_links_are_left_in_peace(folder):
    (folder / "README.md").write_text(GOOD, encoding="utf-8")
    assert problems(folder / "README.md", folder) == []
    targets = [target for _, target in links(GOOD)]
    assert sorted(targets) == sorted(
        [
            "other.md",
            "media/a.png",
            "other.md#快速开始",
            "#read-me",
            "other.md#again_this-1",
            "helpers/",
            "notebooks/01_start.ipynb",
            "notebooks/01_start.ipynb#What-it-Says",
            "media/a.png",
            "https://img.shields.io/badge/a-b",
            "https://arxiv.org/abs/1",
            OWN_FILE,
        ]
    )


@pytest.mark.parametrize(
    "old, new, wrong",
    [
        ("(other.md)", "(others.md)", "'others.md' leads to no file"),
        ("(media/a.png ", "(media/b.png ", "leads to no file"),
        ('src="media/a.png"', 'src="media/c.png"', "'media/c.png' leads to no file"),
        ("(other.md)", "(../other.md)", "leads to no file"),
        ("#快速开始", "#快速结束", "'other.md#快速结束' leads to no heading"),
        ("#read-me", "#Read-me", "leads to no heading"),
        ("#again_this-1", "#again_this-2", "leads to no heading"),
        ("#What-it-Says", "#what-it-says", "leads to no heading"),
        ("[1. Start]", "[2. Start]", "leads to another notebook than 2"),
        ("[notebook 1]", "see notebook 4 [x]", "there is no notebook 4"),
        ("`helpers/`", "`helpers/gone.py`", "there is no helpers/gone.py"),
        ("`helpers/`", "`tools/gone.py`", "there is no tools/gone.py"),
        ("https://arxiv.org/abs/1", "http://arxiv.org/abs/1", "is not https"),
        ("https://arxiv.org/abs/1", "[x](https://arxiv/abs/1)", "is not https"),
        ("https://arxiv.org/abs/1", "[x](https://arxiv.org/abs/1 2)", "has a space"),
        ("https://arxiv.org/abs/1", "https://github.com/your-name/course", "a placeholder"),
        ("https://arxiv.org/abs/1", "[x](https://huggingface.co/<owner>/model)", "a placeholder"),
        ("main/other.md", "main/gone.md", "leads to no file"),
        ("shields.io/badge/a-b", "shields.io/badge/TODO", "a placeholder"),
    ],
)
def test_broken_links_are_named(folder, old, new, wrong):
    assert old in GOOD
    (folder / "README.md").write_text(GOOD.replace(old, new), encoding="utf-8")
    found = problems(folder / "README.md", folder)
    assert len(found) == 1, found
    assert wrong in found[0]


def test_a_badge_of_another_notebook_is_named(folder):
    badge = f"[x]({COLAB}/{OURS}/blob/main/notebooks/01_start.ipynb)"
    cells = [{"cell_type": "markdown", "source": [badge]}]
    notebook = folder / "notebooks" / "02_next.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    assert "is the badge of another notebook" in problems(notebook, folder)[0]


def test_what_jupyterlab_leaves_beside_a_document_is_no_document(folder):
    copies = folder / "notebooks" / ".ipynb_checkpoints"
    copies.mkdir()
    (copies / "notes-checkpoint.md").write_text("[a](gone.md)")
    assert [path.name for path in documents(folder)] == ["01_start.ipynb", "other.md"]
