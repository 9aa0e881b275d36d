"""How the tests of this folder read prose: headings, tables, links, code, in both languages."""

import os
import re
from collections import Counter

from helpers.settings.paths import ROOT

CJK = re.compile(r"[\u4e00-\u9fff]")
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]")  # full-width in Chinese
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
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
    "步（turn）",
    "种子（seed）",
)


def read(name):
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def code_blocks(text):
    """The fenced blocks of a text."""
    return CODE_BLOCK.findall(text)


def prose(text):
    """A text without its fenced blocks."""
    return CODE_BLOCK.sub("", text)


def sections(text):
    """The pieces between headings, with the level of the heading."""
    return re.split(r"^(?=#+ )", prose(text), flags=re.MULTILINE)[1:]


def levels(text):
    """The level of each heading: "#", "##" ..."""
    return [section.split(" ")[0] for section in sections(text)]


def links(text, folder="."):
    """How often each target is linked to from a file in ``folder``.

    A Chinese file counts as its English twin, so that both languages have the same links.
    """
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if not link.startswith(("http", "#")):
            link = os.path.normpath(os.path.join(folder, link))
            link = link.replace("_zh.md", ".md").replace("docs/zh/", "docs/")
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
