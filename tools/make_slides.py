"""Make docs/teaching/slides.html from the committed notebooks: ``make slides``. No sentence is written here.

The first slide lists the notebooks. For each notebook follow, in its own words:

- its title, its abstract and its table of time and hardware, and its list "You will";
- for each numbered section from 1 on: heading and minutes, the first sentences, the sentences with a **bold** word, its first
  figure, and the sentence after that ("what to notice"); without a figure, the longest printed output that fits;
- its exercises, without hints and solutions;
- "What you built" and "What can go wrong".

The file needs no network: figures are the notebooks' own PNGs. Keys: arrows, space, Page Up and Down, Home, End; d for dark.
"""

import base64
import html
import re
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

import mistune
import nbformat

from helpers.settings.paths import ROOT

SLIDES = ROOT / "docs" / "teaching" / "slides.html"
TEMPLATE = ROOT / "scripts" / "slides_template.html"  # style and keys
MARKDOWN = mistune.create_markdown(escape=True, plugins=["table"])
BUDGET, POINTS = 520, 6  # characters and sentences that a section's slide takes at most
LINES, COLUMNS = 15, 108  # of printed output
WIDTH, HEIGHT, LINE = 1160, 540, 34  # pixels of a slide's body and of a line of text
TEX = {
    r"\frac{\alpha}{r}": "α/r",
    r"\mathrm{clip}": "clip",
    r"\min": "min",
    r"\epsilon": "ε",
    r"\times": "×",
    r"\ ": " ",
}


@dataclass
class Section:
    """What stands under one heading of level two: pieces of markdown and outputs (alt or None, bytes or text), in order."""

    heading: str
    parts: list = field(default_factory=list)

    @property
    def name(self) -> str:
        """The heading without its minutes."""
        return re.sub(r"\s*\(~.*\)$", "", self.heading)

    @property
    def number(self) -> int:
        match = re.match(r"(\d+)\. ", self.heading)
        return int(match[1]) if match else 0

    @property
    def markdown(self) -> str:
        return "\n\n".join(part for part in self.parts if isinstance(part, str))

    @property
    def output(self) -> tuple:
        """(alt, PNG bytes) of the first figure, else ("", text) of the longest printed output that fits, else ()."""
        shown = [part for part in self.parts if isinstance(part, tuple)]
        printed = [part for part in shown if len(part[1].splitlines()) <= LINES] or shown[:1]
        return next(
            (part for part in shown if part[0]),
            max(printed, key=lambda part: len(part[1]), default=()),
        )


def read_sections(notebook) -> list[Section]:
    """The notebook cut at its headings; a line that is nothing but bold, **What can go wrong**, counts as one. The first
    section is what stands above them all."""
    found = [Section("")]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(
                r"<details>.*?</details>|^```.*?^```$",
                "",
                cell.source,
                flags=re.DOTALL | re.MULTILINE,
            )
            for piece in re.split(r"^(?=## |\*\*[^*]+\*\*$)", text, flags=re.MULTILINE):
                if heading := re.match(r"## (.+)|\*\*([^*]+)\*\*$", piece, re.MULTILINE):
                    found.append(Section(heading[1] or heading[2]))
                    piece = piece[heading.end() :]
                if piece.strip():
                    found[-1].parts.append(piece.strip())
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                alt = output.metadata.get("image/png", {}).get("alt", "figure")
                found[-1].parts.append((alt, base64.b64decode(data["image/png"])))
            elif output.output_type == "stream" and output.name == "stdout":
                found[-1].parts.append(("", output.text.strip("\n")))
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
    """A paragraph cut where a sentence ends; a **lead.** in bold stays with the sentence that it heads."""
    ends = r"(?:(?<=[.?!])|(?<=[.?!]\*\*))(?<!\s\d\.)(?<!^\d\.)(?<!Dr\.)\s+(?=[A-Z`*$\"])"
    found = re.split(ends, paragraph)
    for i in reversed(range(len(found) - 1)):
        if re.fullmatch(r"\*\*[^*]+\*\*", found[i]):
            found[i : i + 2] = [" ".join(found[i : i + 2])]
    return found


def key_sentences(section: Section) -> list[str]:
    """The sentences of a section that go on its slide: see the top of this file."""
    shown, bold, opening = section.output, [], []
    at = section.parts.index(shown) if shown else len(section.parts)
    notice = next(
        (
            sentences(p)[0]
            for part in section.parts[at + 1 :]
            if isinstance(part, str)
            for p in paragraphs(part)
        ),
        "",
    )
    kept = []
    for i, paragraph in enumerate(paragraphs(section.markdown)):
        for j, sentence in enumerate(sentences(paragraph)):
            bold += [sentence] * ("**" in sentence)
            opening += [sentence] * (i == 0 and j < 2 or not shown and j == 0)
            if sentence in (*bold[-1:], *opening[-1:], notice):
                kept.append(sentence)
    while len(kept) > 1 and (len(kept) > POINTS or sum(map(len, kept)) > BUDGET):
        # What goes first: the second sentence of the opening, then the longest of the middle.
        less = [s for s in opening[1:2] if s in kept and s not in bold] or kept[1:-1] or kept[1:]
        kept.remove(max(less, key=len))
    return kept


def mathematics(tex: str) -> str:
    for name, sign in TEX.items():
        tex = tex.replace(name, sign)
    shown = re.sub(
        r"([_^])(?:\{(\w+)\}|(\w))",
        lambda m: "<{0}>{1}</{0}>".format("sub" if m[1] == "_" else "sup", m[2] or m[3]),
        html.escape(tex),
    )
    return f"<i>{shown}</i>"


def render(markdown: str) -> str:
    """HTML of markdown; links become their text, simple formulas become letters."""
    formulas = []

    def keep(match):
        formulas.append(mathematics(match[1]))
        return f"\0{len(formulas) - 1}\0"

    text = re.sub(r"(?<!!)\[([^\]]+)\]\([^)]+\)", r"\1", markdown)
    text = re.sub(r"\$([^$\n]+)\$", keep, text)
    return re.sub(
        "[\0\ufffd](\\d+)[\0\ufffd]", lambda m: formulas[int(m[1])], MARKDOWN(text).strip()
    )


def inline(markdown: str) -> str:
    """HTML of one sentence or heading; "2. Title" is no list."""
    return (
        render(re.sub(r"^(\d+)\. ", r"\1\\. ", markdown)).removeprefix("<p>").removesuffix("</p>")
    )


def shown_figure(alt: str, png: bytes, points: list[str]) -> tuple[str, str]:
    """Where a figure is larger, "below" its text or "beside" it, and an <img> of that size which holds its bytes."""
    width, height = struct.unpack(">II", png[16:24])
    text = sum(LINE * -(-len(point) // 85) + 12 for point in points)
    below, beside = (
        min(WIDTH / width, (HEIGHT - text) / height),
        min(0.54 * WIDTH / width, HEIGHT / height),
    )
    scale = max(below, beside)
    return "below" if below >= beside else "beside", (
        f'<figure><img width="{scale * width:.0f}" height="{scale * height:.0f}" alt="{html.escape(alt)}" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}"></figure>'
    )


def shown_text(printed: str) -> str:
    """Printed output; what is too long or too wide is cut off at "…"."""
    lines = [line.expandtabs(4).rstrip() for line in printed.splitlines()]
    cut = [line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…" for line in lines[:LINES]]
    few = ' class="few"' if max(map(len, cut)) <= 88 and len(cut) <= 9 else ""
    return f"<pre{few}>{html.escape(chr(10).join(cut + ['…'] * (len(lines) > LINES)))}</pre>"


def slide(kind: str, heading: str, body: str, foot: str, minutes: str = "") -> str:
    minutes = f'<span class="minutes">{html.escape(minutes)}</span>' if minutes else ""
    return (
        f'<section class="slide {kind}">\n<header><h2>{inline(heading)}</h2>{minutes}</header>\n'
        f'<div class="body">{body}</div>\n<footer>{inline(foot)}</footer>\n</section>'
    )


def section_slide(section: Section, title: str) -> str:
    points, kind, shown, room = key_sentences(section), "below", "", 450
    if section.output and section.output[0]:
        kind, shown = shown_figure(*section.output, points)
        room = 330
    elif section.output:
        shown = shown_text(section.output[1])
        room -= 12 * shown.count("\n")
    kind += " long" * (sum(map(len, points)) > room)
    minutes = re.search(r"\((~\d+ min)", section.heading)
    text = "".join(f"<p>{inline(point)}</p>" for point in points)
    return slide(
        kind,
        section.name,
        f'<div class="points">{text}</div>{shown}',
        title,
        minutes[1] if minutes else "",
    )


def notebook_slides(path: Path) -> tuple[str, str, list[str]]:
    """Title, abstract and the slides of one notebook."""
    found = read_sections(nbformat.read(path, as_version=4))
    opening = found[0].markdown
    title = re.search(r"^# (.+)$", opening, re.MULTILINE)[1]
    abstract = paragraphs(opening)[0]
    table = "\n".join(line for line in opening.splitlines() if line.startswith("|"))
    will = [block for block in opening.split("\n\n") if block.startswith("- ")][0]
    made = [
        slide("title", title, f"<p>{inline(abstract)}</p>{render(table)}", title),
        slide("list", "You will", render(will), title),
    ]
    made += [section_slide(s, title) for s in found if s.number and "Exercises" not in s.heading]
    for section in found:
        if "Exercises" in section.heading:
            tasks = [p for p in paragraphs(section.markdown) if re.match(r"\*\*\d\.\d", p)]
            made.append(
                slide(
                    "list long" if sum(map(len, tasks)) > 500 else "list",
                    "Exercises",
                    "".join(f"<p>{inline(task)}</p>" for task in tasks),
                    title,
                )
            )
    ends = {s.name: s.markdown for s in found}
    built, wrong = (
        ends["What you built"],
        re.sub(r"\n\n\*\*Next:.*", "", ends["What can go wrong"], flags=re.DOTALL),
    )
    made.append(
        slide(
            "end",
            "What you built",
            f"{render(built)}<h3>What can go wrong</h3>{render(wrong)}",
            title,
        )
    )
    return title, abstract, made


def make(notebooks: list[Path]) -> str:
    """The whole page."""
    rows, slides = [], []
    for path in notebooks:
        title, abstract, made = notebook_slides(path)
        rows.append(f'<p><a href="#{len(slides) + 2}">{inline(title)}</a>{inline(abstract)}</p>')
        slides += made
    everything = "\n".join([slide("contents", "", "".join(rows), ""), *slides])
    return TEMPLATE.read_text(encoding="utf-8").replace("<!-- slides -->", everything)


def main() -> int:
    page = make(sorted((ROOT / "notebooks").glob("*.ipynb")))
    SLIDES.write_text(page, encoding="utf-8")
    print(
        f"  {SLIDES.relative_to(ROOT)}: {page.count('<section')} slides, {len(page.encode()) / 1e6:.2f} MB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
