"""Make docs/teaching/slides.html and docs/zh/teaching/slides.html from the committed notebooks:
``make slides``.

No sentence is written here. The first slide lists the notebooks. For each notebook follow, in its
own words:

- its title, its abstract and its table of time and hardware, and its list "You will";
- for each numbered section from 1 on: heading and minutes, the first sentences, the sentences with
  a **bold** word, its first figure, and the sentence after that ("what to notice"); without a
  figure, the longest printed output that fits;
- its exercises, without hints and solutions;
- "What you built" and "What can go wrong".

The file needs no network: figures are the notebooks' own PNGs. Keys: arrows, space, Page Up and
Page Down, Home, End; d for dark. nbconvert's slides (``--to slides``, reveal.js) put whole cells on
a slide, so that notebooks written to be read would need a second, shorter text for the room. They
also load reveal.js from another host, and a classroom may have no network.
"""

import base64
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from helpers.command_line import run
from helpers.settings.paths import NOTEBOOKS, ROOT
from tools import slides_html
from tools.slides_html import inline, paragraphs_of, render, slide

TEMPLATE = ROOT / "tools" / "templates" / "slides.html"  # style and keys


@dataclass(frozen=True)
class Language:
    """What the notebooks of a language call their parts, and how they write."""

    notebooks: Path
    slides: Path
    code: str
    will: str
    exercises: str
    built: str
    wrong: str
    wide: int
    """Columns that a character takes: a Chinese one is as wide as two letters."""
    characters: int
    """That a section's slide takes, and"""
    sentences: int
    """so many of these."""


ENGLISH = Language(
    notebooks=NOTEBOOKS,
    slides=ROOT / "docs" / "teaching" / "slides.html",
    code="en",
    will="You will",
    exercises="Exercises",
    built="What you built",
    wrong="What can go wrong",
    wide=1,
    characters=520,
    sentences=6,
)
CHINESE = Language(
    notebooks=NOTEBOOKS / "zh",
    slides=ROOT / "docs" / "zh" / "teaching" / "slides.html",
    code="zh-CN",
    will="你将",
    exercises="练习",
    built="你搭建了什么",
    wrong="会出什么问题",
    wide=2,
    characters=200,
    sentences=3,
)


EXERCISE = re.compile(r"\*\*\d\.\d")
"""How the paragraph of an exercise begins, which no slide of its section shows."""
FOR_A_LINE = 12
"""Characters of a section's sentences for which a printed line takes the room."""


@dataclass(frozen=True)
class Figure:
    """A picture among the outputs of a notebook."""

    alt: str
    png: bytes


@dataclass(frozen=True)
class Printed:
    """What a cell printed."""

    text: str


@dataclass
class Section:
    """What stands under one heading of level two: pieces of markdown and outputs, in order."""

    heading: str
    parts: list[str | Figure | Printed] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The heading without its minutes."""
        return re.sub(r"\s*(?:\(~.*\)|（约.*）)$", "", self.heading)

    @property
    def minutes(self) -> str:
        """The minutes of the heading, such as "~7 min" or "约 7 分钟", or nothing."""
        match = re.search(r"\((~\d+ min)|（(约 \d+ 分钟)", self.heading)
        return match[1] or match[2] if match else ""

    @property
    def number(self) -> int:
        """The number of the heading; 0 where it has none."""
        match = re.match(r"(\d+)\. ", self.heading)
        return int(match[1]) if match else 0

    @property
    def markdown(self) -> str:
        """Its prose."""
        return "\n\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def output(self) -> Figure | Printed | None:
        """The output that its slide shows: the first figure, else the longest text that fits."""
        for part in self.parts:
            if isinstance(part, Figure):
                return part
        texts = [part for part in self.parts if isinstance(part, Printed)]
        fitting = [t for t in texts if len(t.text.splitlines()) <= slides_html.PRINTED_LINES]
        return max(fitting or texts[:1], key=lambda printed: len(printed.text), default=None)

    def add_markdown(self, text: str) -> None:
        """Take a piece of prose in, unless it is empty."""
        if text.strip():
            self.parts.append(text.strip())

    def add_output(self, output: NotebookNode) -> None:
        """Take an output in, if it is a picture or printed."""
        png = output.get("data", {}).get("image/png")
        if png is not None:
            alt = output.metadata.get("image/png", {}).get("alt", "figure")
            self.parts.append(Figure(alt, base64.b64decode(png)))
        elif output.output_type == "stream" and output.name == "stdout":
            self.parts.append(Printed(output.text.strip("\n")))


def read_sections(notebook: NotebookNode) -> list[Section]:
    """The notebook cut at its headings; the first section is what stands above them all.

    A line that is nothing but bold, **What can go wrong**, counts as a heading.
    """
    folded_or_code = re.compile(r"<details>.*?</details>|^```.*?^```$", re.DOTALL | re.MULTILINE)
    found = [Section("")]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = folded_or_code.sub("", cell.source)
            for piece in re.split(r"^(?=## |\*\*[^*]+\*\*$)", text, flags=re.MULTILINE):
                heading = re.match(r"## (.+)|\*\*([^*]+)\*\*$", piece, re.MULTILINE)
                if heading:
                    found.append(Section(heading[1] or heading[2]))
                found[-1].add_markdown(piece[heading.end() :] if heading else piece)
        for output in cell.get("outputs", []):
            found[-1].add_output(output)
    return found


def paragraphs(markdown: str) -> list[str]:
    """Paragraphs and list items, each in one line; no tables and no badges."""
    blocks = re.split(r"\n\s*\n|\n(?=- )", markdown)
    return [
        " ".join(block.removeprefix("- ").split())
        for block in blocks
        if not block.startswith(("|", "[!", "#", "!["))
    ]


def sentences(paragraph: str) -> list[str]:
    """A paragraph cut where a sentence ends.

    A **lead.** in bold stays with the sentence that it heads.
    """
    ends = r"(?:(?<=[.?!])|(?<=[.?!]\*\*))(?<!\s\d\.)(?<!^\d\.)(?<!Dr\.)\s+(?=[A-Z`*$\"])"
    chinese_ends = r"(?<=[。？！])(?![”）])(?=.)"
    found = re.split(f"{ends}|{chinese_ends}", paragraph)
    for i in reversed(range(len(found) - 1)):
        if found[i].count("**") % 2:  # the end stands within bold
            found[i : i + 2] = ["".join(found[i : i + 2])]
    for i in reversed(range(len(found) - 1)):
        if re.fullmatch(r"\*\*[^*]+\*\*", found[i]):
            found[i : i + 2] = [" ".join(found[i : i + 2])]
    return found


def sentence_after(section: Section, output: Figure | Printed | None) -> str:
    """The first sentence that stands after the shown output: what to notice in it."""
    if output is None:
        return ""
    at = section.parts.index(output)
    for part in section.parts[at + 1 :]:
        if isinstance(part, str):
            for paragraph in paragraphs(part):
                return sentences(paragraph)[0]
    return ""


def key_sentences(section: Section, words: Language) -> list[str]:
    """The sentences of a section that go on its slide: see the top of this file."""
    output = section.output
    notice = sentence_after(section, output)
    kept: list[str] = []
    opening: list[str] = []
    bold: list[str] = []
    told = [each for each in paragraphs(section.markdown) if not EXERCISE.match(each)]
    for i, paragraph in enumerate(told):
        for j, sentence in enumerate(sentences(paragraph)):
            opens = (i == 0 and j < 2) or (output is None and j == 0)
            if opens:
                opening.append(sentence)
            if "**" in sentence:
                bold.append(sentence)
            if opens or "**" in sentence or sentence == notice:
                kept.append(sentence)
    printed = len(output.text.splitlines()) if isinstance(output, Printed) else 0
    room = words.characters - FOR_A_LINE * min(printed, slides_html.PRINTED_LINES) // words.wide
    return shortened(kept, opening, bold, words.sentences, room)


def shortened(
    kept: list[str], opening: list[str], bold: list[str], most: int, room: int
) -> list[str]:
    """As many of the kept sentences as a slide takes: ``most``, in ``room`` characters."""
    kept = list(kept)
    while len(kept) > 1:
        if len(kept) <= most and sum(map(len, kept)) <= room:
            break
        # What goes first: the second sentence of the opening, then the longest of the middle.
        second = [s for s in opening[1:2] if s in kept and s not in bold]
        kept.remove(max(second or kept[1:-1] or kept[1:], key=len))
    return kept


def section_slide(section: Section, title: str, words: Language) -> str:
    """The slide of a numbered section."""
    points = key_sentences(section, words)
    kind = "below"
    shown = ""
    room = 450  # characters that fit at the usual size beside or above what is shown
    output = section.output
    if isinstance(output, Figure):
        kind, shown = slides_html.figure(output.alt, output.png, points)
        room = 330
    elif isinstance(output, Printed):
        shown = slides_html.printed(output.text)
        room -= 12 * shown.count("\n")
    if words.wide * sum(map(len, points)) > room:
        kind += " long"
    body = f'<div class="points">{paragraphs_of(points)}</div>{shown}'
    return slide(kind, section.name, body, title, section.minutes)


def exercises_slide(section: Section, title: str, words: Language) -> str:
    """The slide of a notebook's exercises: what is asked, and no more."""
    asked = [p for p in paragraphs(section.markdown) if EXERCISE.match(p)]
    kind = "list long" if words.wide * sum(map(len, asked)) > 500 else "list"
    return slide(kind, words.exercises, paragraphs_of(asked), title)


def end_slide(sections: list[Section], title: str, words: Language) -> str:
    """What was built, and what can go wrong."""
    texts = {section.name: section.markdown for section in sections}
    wrong = re.sub(r"\n\n\*\*(Next:|接下来).*", "", texts[words.wrong], flags=re.DOTALL)
    body = f"{render(texts[words.built])}<h3>{words.wrong}</h3>{render(wrong)}"
    return slide("end", words.built, body, title)


def opening_slides(opening: str, title: str, abstract: str, words: Language) -> list[str]:
    """The title's slide and the list of what you will do, from what stands above all headings."""
    table = "\n".join(line for line in opening.splitlines() if line.startswith("|"))
    will = next(block for block in opening.split("\n\n") if block.startswith("- "))
    return [
        slide("title", title, f"<p>{inline(abstract)}</p>{render(table)}", title),
        slide("list", words.will, render(will), title),
    ]


def notebook_slides(path: Path, words: Language) -> tuple[str, str, list[str]]:
    """Title, abstract and the slides of one notebook."""
    sections = read_sections(nbformat.read(path, as_version=4))
    opening = sections[0].markdown
    title = re.findall(r"^# (.+)$", opening, re.MULTILINE)[0]
    abstract = paragraphs(opening)[0]
    exercises = [section for section in sections if words.exercises in section.heading]
    slides = opening_slides(opening, title, abstract, words)
    for section in sections:
        if section.number and section not in exercises:
            slides.append(section_slide(section, title, words))
    slides += [exercises_slide(section, title, words) for section in exercises]
    slides.append(end_slide(sections, title, words))
    return title, abstract, slides


def make(notebooks: list[Path], words: Language = ENGLISH) -> str:
    """The whole page."""
    contents = ""
    slides: list[str] = []
    for path in notebooks:
        title, abstract, made = notebook_slides(path, words)
        first = len(slides) + 2  # its slide's number; the contents are number 1
        contents += f'<p><a href="#{first}">{inline(title)}</a>{inline(abstract)}</p>'
        slides += made
    page = "\n".join([slide("contents", "", contents, ""), *slides])
    template = TEMPLATE.read_text(encoding="utf-8")
    template = template.replace('<html lang="en">', f'<html lang="{words.code}">')
    return template.replace("<!-- slides -->", page)


def main() -> None:
    """Write the slides of both languages from the committed notebooks."""
    for words in (ENGLISH, CHINESE):
        page = make(sorted(words.notebooks.glob("*.ipynb")), words)
        words.slides.write_text(page, encoding="utf-8")
        megabytes = len(page.encode()) / 1e6
        count = page.count("<section")
        print(f"  {words.slides.relative_to(ROOT)}: {count} slides, {megabytes:.2f} MB")


if __name__ == "__main__":
    sys.exit(run(main))
