"""How the tests of this folder read prose: headings, tables, links, code, in both languages."""

import os
import re
from collections import Counter

from helpers.settings.paths import ROOT

CJK = re.compile(r"[\u4e00-\u9fff]")
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]")  # full-width in Chinese
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- begin [\w:]+ -->.*?<!-- end -->", re.DOTALL)
# Texts of the root and their Chinese twins; the twin of docs/NAME is docs/zh/NAME.
IN_THE_ROOT = {"README.md": "README_zh.md", "CONTRIBUTING.md": "docs/zh/contributing.md"}
TERMS = (
    "观测（observation）",
    "环境（environment）",
    "提示（prompt）",
    "策略（policy）",
    "动作（action）",
    "奖励（reward）",
    "回合（episode）",
    "轨迹（rollout）",
    "词元（token）",
    "优势（advantage）",
    "组（group）",
    "轮（turn）",
    "种子（seed）",
)


def read(name):
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def chinese_page(name):
    """The Chinese twin of an English text, whether it is there or not."""
    if name in IN_THE_ROOT:
        return IN_THE_ROOT[name]
    for folder in ("docs", "notebooks"):
        if name == folder or name.startswith(f"{folder}/"):
            return f"{folder}/zh{name.removeprefix(folder)}"
    return ""


def english_pages():
    """The texts that exist in both languages: those of the root and the pages of docs/."""
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    return [
        *IN_THE_ROOT,
        *sorted(name for name in docs if not name.startswith("docs/zh/")),
    ]


def code_blocks(text):
    """The fenced blocks of a text, without what may differ between languages.

    That is comments, which are prose, LANGUAGE=zh behind a command, and the drawing of the rooms,
    which is made for one page.
    """
    blocks = [block for block in CODE_BLOCK.findall(text) if not block.startswith("```mermaid")]
    return [re.sub(r"[ \t]+(?:# .*|LANGUAGE=zh\b)", "", block) for block in blocks]


def prose(text):
    """A text without its fenced blocks."""
    return CODE_BLOCK.sub("", text)


def sections(text):
    """The pieces between headings, with the level of the heading."""
    return re.split(r"^(?=#+ )", prose(text), flags=re.MULTILINE)[1:]


def levels(text):
    """The level of each heading: "#", "##" ..."""
    return [section.split(" ")[0] for section in sections(text)]


def headings(name):
    """The anchors of a text's headings, in their order, as GitHub makes them."""
    found = []
    for section in sections(read(name)):
        words = section.splitlines()[0].lstrip("# ")
        found.append(re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-"))
    return found


def links(text, folder="."):
    """How often each target is linked to from a file in ``folder``.

    A Chinese file counts as its English twin, and a heading as its number in its file, so that both
    languages have the same links.
    """
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if not link.startswith(("http", "#")):
            name, _, anchor = link.partition("#")
            name = os.path.normpath(os.path.join(folder, name))
            if anchor:
                anchor = f"#{headings(name).index(anchor)}"
            if name in IN_THE_ROOT.values():
                name = next(ours for ours, theirs in IN_THE_ROOT.items() if theirs == name)
            name = name.replace("docs/zh/", "docs/")
            link = re.sub(r"^notebooks/zh(?=/|$)", "notebooks", name) + anchor
        elif link.startswith("#"):
            link = "#"  # a heading of the same text, which test_links looks for
        found.append(link)
    return Counter(found)


def tables(text):
    """For each table, for each row: how many cells, and the numbers and the code in it.

    A date's words may differ.
    """
    rows, found = [], []
    for line in [*prose(text).splitlines(), ""]:
        if line.startswith("|"):
            line = re.sub(r"<!--.*?-->|(?:November|December) 2025|2025 年 1[12] 月", "", line)
            numbers = sorted(re.findall(r"\d+(?:\.\d+)?", line))
            code = sorted(re.findall(r"`[^`]+`", line))
            rows.append((line.count("|"), numbers, code))
        elif rows:
            found.append(rows)
            rows = []
    return found


def invented(quotes):
    """Those of the quoted sentences that the course cannot say."""
    files = [path for room in ("helpers", "scripts") for path in (ROOT / room).rglob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    source = re.sub(r"""["']\s*\n\s*f?["']""", "", source)  # a string that goes on in the next line
    source = re.sub(r"\{[^{}]*\}", "…", source)
    return [text for text in quotes if not all(part.strip() in source for part in text.split("…"))]
