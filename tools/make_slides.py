"""Make docs/teaching/slides.html from the committed notebooks: ``make slides``.

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

SLIDES = ROOT / "docs" / "teaching" / "slides.html"
TEMPLATE = ROOT / "tools" / "templates" / "slides.html"  # style and keys
MAX_CHARACTERS = 520  # that a section's slide takes
MAX_SENTENCES = 6


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
        return re.sub(r"\s*\(~.*\)$", "", self.heading)

    @property
    def minutes(self) -> str:
        """The minutes of the heading, such as "~7 min", or nothing."""
        match = re.search(r"\((~\d+ min)", self.heading)
        return match[1] if match else ""

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
    found = re.split(ends, paragraph)
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


def key_sentences(section: Section) -> list[str]:
    """The sentences of a section that go on its slide: see the top of this file."""
    output = section.output
    notice = sentence_after(section, output)
    kept: list[str] = []
    opening: list[str] = []
    bold: list[str] = []
    for i, paragraph in enumerate(paragraphs(section.markdown)):
        for j, sentence in enumerate(sentences(paragraph)):
            opens = (i == 0 and j < 2) or (output is None and j == 0)
            if opens:
                opening.append(sentence)
            if "**" in sentence:
                bold.append(sentence)
            if opens or "**" in sentence or sentence == notice:
                kept.append(sentence)
    return shortened(kept, opening, bold)


def shortened(kept: list[str], opening: list[str], bold: list[str]) -> list[str]:
    """As many of the kept sentences as a slide takes."""
    kept = list(kept)
    while len(kept) > 1:
        if len(kept) <= MAX_SENTENCES and sum(map(len, kept)) <= MAX_CHARACTERS:
            break
        # What goes first: the second sentence of the opening, then the longest of the middle.
        second = [s for s in opening[1:2] if s in kept and s not in bold]
        kept.remove(max(second or kept[1:-1] or kept[1:], key=len))
    return kept


def section_slide(section: Section, title: str) -> str:
    """The slide of a numbered section."""
    points = key_sentences(section)
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
    if sum(map(len, points)) > room:
        kind += " long"
    body = f'<div class="points">{paragraphs_of(points)}</div>{shown}'
    return slide(kind, section.name, body, title, section.minutes)


def exercises_slide(section: Section, title: str) -> str:
    """The slide of a notebook's exercises: what is asked, and no more."""
    asked = [p for p in paragraphs(section.markdown) if re.match(r"\*\*\d\.\d", p)]
    kind = "list long" if sum(map(len, asked)) > 500 else "list"
    return slide(kind, "Exercises", paragraphs_of(asked), title)


def end_slide(sections: list[Section], title: str) -> str:
    """What was built, and what can go wrong."""
    texts = {section.name: section.markdown for section in sections}
    built = texts["What you built"]
    wrong = re.sub(r"\n\n\*\*Next:.*", "", texts["What can go wrong"], flags=re.DOTALL)
    body = f"{render(built)}<h3>What can go wrong</h3>{render(wrong)}"
    return slide("end", "What you built", body, title)


def opening_slides(opening: str, title: str, abstract: str) -> list[str]:
    """The title's slide and the list "You will", from what stands above all headings."""
    table = "\n".join(line for line in opening.splitlines() if line.startswith("|"))
    will = next(block for block in opening.split("\n\n") if block.startswith("- "))
    return [
        slide("title", title, f"<p>{inline(abstract)}</p>{render(table)}", title),
        slide("list", "You will", render(will), title),
    ]


def notebook_slides(path: Path) -> tuple[str, str, list[str]]:
    """Title, abstract and the slides of one notebook."""
    sections = read_sections(nbformat.read(path, as_version=4))
    opening = sections[0].markdown
    title = re.findall(r"^# (.+)$", opening, re.MULTILINE)[0]
    abstract = paragraphs(opening)[0]
    exercises = [section for section in sections if "Exercises" in section.heading]
    slides = opening_slides(opening, title, abstract)
    for section in sections:
        if section.number and section not in exercises:
            slides.append(section_slide(section, title))
    slides += [exercises_slide(section, title) for section in exercises]
    slides.append(end_slide(sections, title))
    return title, abstract, slides


def make(notebooks: list[Path]) -> str:
    """The whole page."""
    contents = ""
    slides: list[str] = []
    for path in notebooks:
        title, abstract, made = notebook_slides(path)
        first = len(slides) + 2  # its slide's number; the contents are number 1
        contents += f'<p><a href="#{first}">{inline(title)}</a>{inline(abstract)}</p>'
        slides += made
    page = "\n".join([slide("contents", "", contents, ""), *slides])
    return TEMPLATE.read_text(encoding="utf-8").replace("<!-- slides -->", page)


def main() -> None:
    """Write docs/teaching/slides.html from the committed notebooks."""
    page = make(sorted(NOTEBOOKS.glob("*.ipynb")))
    SLIDES.write_text(page, encoding="utf-8")
    megabytes = len(page.encode()) / 1e6
    count = page.count("<section")
    print(f"  {SLIDES.relative_to(ROOT)}: {count} slides, {megabytes:.2f} MB")


if __name__ == "__main__":
    sys.exit(run(main))
