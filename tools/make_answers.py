"""Write docs/teaching/answers.md and its Chinese twin from the notebooks: ``make answers``.

No sentence is written here: each exercise stands with its text, the common error and the solution
as its notebook has them, so that a teacher has all of them on one page.
"""

import os
import re
import sys
from pathlib import Path

from helpers.command_line import run
from helpers.course.handed_in import Exercise, cells_of, exercises
from helpers.settings.files import write_whole
from helpers.settings.paths import ROOT
from tools.make_zh import chinese_of

DETAILS = re.compile(
    r"<details><summary>(?P<name>.*?)</summary>\s*(?P<text>.*?)\s*</details>", re.DOTALL
)
LINK = re.compile(r"(?<=\]\()(?!https?:|#)(?P<target>[^)#]+)")
# Where an exercise begins in the text above its cell: its number in bold, or a heading.
BEGINS = re.compile(r"\*\*\d\.\d ?[(（]|^## (?:Exercise|练习) ", re.MULTILINE)

ENGLISH = {
    "page": ROOT / "docs" / "teaching" / "answers.md",
    "head": """# Exercises and answers

English | [中文](../zh/teaching/answers.md)

All exercises of the notebooks with their solutions, made from the notebooks by `make answers`.
`make marks FROM=handed-in` judges what students hand in ([A room](room.md#marks)).
""",
    "exercise": "Exercise",
    "error": "Common error:",
}
CHINESE = {
    "page": ROOT / "docs" / "zh" / "teaching" / "answers.md",
    "head": """# 练习与答案

[English](../../teaching/answers.md) | 中文

所有 Notebook 的练习及其答案，由 `make answers` 从 Notebook 生成。
`make marks FROM=handed-in` 评判学生交上来的内容（[教室](room.md#评分)）。
""",
    "exercise": "练习",
    "error": "常见错误：",
}


def main() -> None:
    """Write the pages of answers, one for each language."""
    for texts in (ENGLISH, CHINESE):
        write_whole(texts["page"], page(texts))
        print(f"  {texts['page'].relative_to(ROOT)}")


def page(texts: dict) -> str:
    """One language's page."""
    parts = [texts["head"]]
    before = None
    for exercise in exercises():
        path = exercise.notebook if texts is ENGLISH else chinese_of(exercise.notebook)
        cells = cells_of(path)
        if path != before:
            title = cells[0].source.partition("\n")[0].removeprefix("# ")
            link = os.path.relpath(path, texts["page"].parent)
            parts.append(f"## [{title}]({link})\n")
            before = path
        parts.append(answer(exercise, cells, path, texts))
    return "\n".join(parts)


def answer(exercise: Exercise, cells: list, path: Path, texts: dict) -> str:
    """Text, common error and solution of one exercise."""
    place = next(i for i, cell in enumerate(cells) if cell.id == exercise.cell)
    above = cells[place - 1].source
    begin = [found.start() for found in BEGINS.finditer(above)][-1]
    folds = {fold["name"]: fold["text"] for fold in DETAILS.finditer(cells[place + 1].source)}
    _, error, solution = folds.values()
    text = above[begin:].replace("## ", "### ", 1).strip()
    if not text.startswith("#"):
        text = f"### {texts['exercise']} {exercise.number}\n\n{text}"
    whole = f"{text}\n\n*{texts['error']}* {error}\n\n{solution}\n"
    return LINK.sub(lambda link: _moved(link["target"], path, texts["page"]), whole)


def _moved(target: str, source: Path, page: Path) -> str:
    """A link of one file as another one has to write it."""
    return os.path.relpath((source.parent / target).resolve(), page.parent)


if __name__ == "__main__":
    sys.exit(run(main))
