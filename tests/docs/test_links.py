"""Every link inside the repository leads to a file and a heading that exist; links to other sites have the form of one.

No site is asked: the tests run offline.
"""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from helpers.settings.paths import ROOT
from tools.set_repository import current

SKIPPED = {".venv", ".cache", ".git", ".pytest_cache", "runs"}
PLACEHOLDER = re.compile(
    r"[<>{}…]|\.\.\.|\bexample\.|\b(?:your|my)[-_]|\b(?:todo|tbd|xxx|owner|repo|user)\b",
    re.IGNORECASE,
)
LINK = re.compile(
    r"!?\[((?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\(([^)]*)\)"
)  # a badge is a picture in the words of a link


def documents(root: Path = ROOT) -> list[Path]:
    """All texts for readers. (Notebooks of another folder are made by tests and runs.)"""
    texts = (p for p in root.rglob("*.md") if not SKIPPED & set(p.relative_to(root).parts))
    return sorted([*texts, *(root / "notebooks").glob("*.ipynb")])


def markdown(path: Path) -> str:
    """The prose of a file or of a notebook, without blocks of code and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n\n".join(
            "".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown"
        )
    text = re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings: GitHub's slugs, in a notebook Jupyter's."""
    text, found = markdown(path), set()
    for heading in re.findall(r"^#{1,6} +(.+?)(?: +#+)?$", text, re.MULTILINE):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())  # of a link its words
        words = re.sub(r"<[^>]+>|[`*]", "", words)
        if path.suffix == ".ipynb":
            found.add(words.replace(" ", "-"))
            continue
        slug, n = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-"), 0
        while (anchor := f"{slug}-{n}" if n else slug) in found:
            n += 1
        found.add(anchor)
    return found | set(re.findall(r"""<\w+[^>]*\b(?:id|name)=["']([^"']+)["']""", text))


def links(text: str) -> list[tuple[str, str]]:
    """(words, target) of each link, picture, tag and bare address."""
    text = re.sub(r"`[^`\n]*`", "", text)
    found = LINK.findall(text)
    found += [picture for words, _ in found for picture in LINK.findall(words)]
    found = [
        (words, re.sub(r""" +["'].*["']$""", "", target.strip())) for words, target in found
    ]  # without its title
    found += [
        ("", target) for target in re.findall(r"""<\w+[^>]*\b(?:href|src)=["']([^"']*)["']""", text)
    ]
    found += re.findall(r"^\[([^\]]+)\]: *(\S+)", text, re.MULTILINE)
    return found + [
        ("", target) for target in re.findall(r"""(?<![("'])\bhttps?://[^\s)>"'`]+""", text)
    ]


def outside(target: str, path: Path, root: Path) -> str:
    """What is wrong with an address on the web, or an empty string."""
    host = r"https://(?:github\.com|colab\.research\.google\.com/github)"
    if re.fullmatch(rf"{host}/{re.escape(current())}(?:\.git|/.*)?", target):
        name = re.search(r"/(?:blob|tree)/main/([^#?]+)", target)
        if (
            name
            and path.suffix == Path(name[1]).suffix == ".ipynb"
            and Path(name[1]).name != path.name
        ):
            return "is the badge of another notebook"
        return (
            "leads to no file of the repository"
            if name and not (root / unquote(name[1])).exists()
            else ""
        )
    address = urlsplit(target)
    if address.scheme != "https" or not re.fullmatch(r"(?:[\w-]+\.)+[a-z]{2,}", address.netloc):
        return "is not https://host/path"
    return (
        "has a space or a placeholder in it"
        if re.search(r"\s", target) or PLACEHOLDER.search(target)
        else ""
    )


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
    """A sentence for each link of a document that leads nowhere, and for each file and notebook it names that is not there."""
    found, text = [], markdown(path)
    for words, target in links(text):
        far = re.match(r"\w+:", target)
        if wrong := outside(target, path, root) if far else inside(words, target, path, root):
            found.append(f"{path.relative_to(root)}: {target!r} {wrong}.")
    for name in re.findall(
        r"`((?:helpers|scripts|benchmarks|tests|notebooks|media|recordings)/[\w./-]*)`", text
    ):
        if not (root / name).exists():
            found.append(f"{path.relative_to(root)}: there is no {name}.")
    for number in re.findall(r"(?:[Nn]otebooks?|笔记本) *(\d+)", text):
        if not list((root / "notebooks").glob(f"{int(number):02d}_*.ipynb")):
            found.append(f"{path.relative_to(root)}: there is no notebook {number}.")
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert problems(path) == []


def test_the_documents_are_found_and_have_links():
    names = {path.name for path in documents()}
    assert {"README.md", "README_zh.md", "CONTRIBUTING.md", "06_lora_training.ipynb"} <= names
    targets = {
        name: {target for _, target in links(markdown(ROOT / name))}
        for name in ("README.md", "README_zh.md")
    }
    for found in targets.values():
        assert {
            "CONTRIBUTING.md",
            "LICENSE",
            "media/the_loop.png",
            "https://arxiv.org/abs/2402.03300",
        } <= found
    badges = {
        target for _, target in links(markdown(ROOT / "notebooks" / "06_lora_training.ipynb"))
    }
    assert any("colab.research" in b for b in badges) and any(
        "shields.io" in b or "colab-badge" in b for b in badges
    )


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
    (tmp_path / "other.md").write_text(
        "# The `make` command, v1.0!\n\n## 快速开始\n\n## 仓库里有什么？（说明）\n\n## C++ & [Rust](other.md)\n\n"
        '## Again_this\n\n## Again_this\n\n```\n# in a block\n```\n\n<a id="by-hand"></a>\n',
        encoding="utf-8",
    )
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


GOOD = f"""# Read me

[a](other.md) ![b](media/a.png "title") [c](other.md#快速开始) [d](#read-me) [e](other.md#again_this-1) [f](helpers/)
[1. Start](notebooks/01_start.ipynb) [notebook 1](notebooks/01_start.ipynb#What-it-Says) `helpers/` <img src="media/a.png">
[![badge](https://img.shields.io/badge/a-b)](https://github.com/{current()}/blob/main/other.md) https://arxiv.org/abs/1
"""


def test_good_links_are_left_in_peace(folder):
    (folder / "README.md").write_text(GOOD, encoding="utf-8")
    assert problems(folder / "README.md", folder) == []
    assert sorted(target for _, target in links(GOOD)) == sorted(
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
            f"https://github.com/{current()}/blob/main/other.md",
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
    assert len(found) == 1 and wrong in found[0], found


def test_a_badge_of_another_notebook_is_named(folder):
    (folder / "notebooks" / "02_next.ipynb").write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "markdown",
                        "source": [
                            f"[x](https://colab.research.google.com/github/{current()}/blob/main/notebooks/01_start.ipynb)"
                        ],
                    }
                ]
            }
        )
    )
    assert (
        "is the badge of another notebook"
        in problems(folder / "notebooks" / "02_next.ipynb", folder)[0]
    )
