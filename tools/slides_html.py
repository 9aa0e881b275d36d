"""The HTML of the slides: markdown, formulas, figures, printed output, and a slide around them."""

import base64
import html
import re
import struct

import mistune
from rich.cells import cell_len

MARKDOWN = mistune.create_markdown(escape=True, plugins=["table"])
BODY_WIDTH = 1160  # pixels of a slide's body
BODY_HEIGHT = 540
LINE_HEIGHT = 34  # pixels of a line of text,
LINE_LENGTH = 85  # which holds about so many characters
PRINTED_LINES = 15  # of printed output that fit on a slide
PRINTED_COLUMNS = 108
TEX = {
    r"\frac{\alpha}{r}": "α/r",
    r"\mathrm{clip}": "clip",
    r"\min": "min",
    r"\epsilon": "ε",
    r"\times": "×",
    r"\ ": " ",
}


def mathematics(tex: str) -> str:
    """A simple formula as letters, with its indices and exponents."""
    for name, sign in TEX.items():
        tex = tex.replace(name, sign)

    def shifted(match: re.Match[str]) -> str:
        tag = "sub" if match[1] == "_" else "sup"
        return f"<{tag}>{match[2] or match[3]}</{tag}>"

    letters = re.sub(r"([_^])(?:\{(\w+)\}|(\w))", shifted, html.escape(tex))
    return f"<i>{letters}</i>"


def render(markdown: str) -> str:
    """HTML of markdown; links become their text, simple formulas become letters."""
    formulas: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        formulas.append(mathematics(match[1]))
        return f"\0{len(formulas) - 1}\0"

    text = re.sub(r"(?<!!)\[([^\]]+)\]\([^)]+\)", r"\1", markdown)
    text = re.sub(r"\$([^$\n]+)\$", put_away, text)
    rendered = str(MARKDOWN(text)).strip()
    return re.sub("[\0\ufffd](\\d+)[\0\ufffd]", lambda found: formulas[int(found[1])], rendered)


def inline(markdown: str) -> str:
    """HTML of one sentence or heading; "2. Title" is no list."""
    rendered = render(re.sub(r"^(\d+)\. ", r"\1\\. ", markdown))
    return rendered.removeprefix("<p>").removesuffix("</p>")


def paragraphs_of(texts: list[str]) -> str:
    """Each text as a paragraph."""
    return "".join(f"<p>{inline(text)}</p>" for text in texts)


def figure(alt: str, png: bytes, points: list[str]) -> tuple[str, str]:
    """Where a figure is larger, "below" its text or "beside" it, and the HTML that holds it."""
    width, height = struct.unpack(">II", png[16:24])
    text_height = sum(LINE_HEIGHT * -(-len(point) // LINE_LENGTH) + 12 for point in points)
    below = min(BODY_WIDTH / width, (BODY_HEIGHT - text_height) / height)
    beside = min(0.54 * BODY_WIDTH / width, BODY_HEIGHT / height)
    scale = max(below, beside)
    image = (
        f'<img width="{scale * width:.0f}" height="{scale * height:.0f}" alt="{html.escape(alt)}" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    )
    return "below" if below >= beside else "beside", f"<figure>{image}</figure>"


def printed(text: str) -> str:
    """Printed output; what is too long or too wide is cut off at "…"."""
    lines = [line.expandtabs(4).rstrip() for line in text.splitlines()]
    shown = [cut_off(line, PRINTED_COLUMNS) for line in lines[:PRINTED_LINES]]
    small = max(map(cell_len, shown)) <= 88 and len(shown) <= 8
    if len(lines) > PRINTED_LINES:
        shown.append("…")
    opening = '<pre class="few">' if small else "<pre>"
    return opening + html.escape("\n".join(shown)) + "</pre>"


def cut_off(line: str, most: int) -> str:
    """A line, or what of it fits in ``most`` columns with "…" behind it; a Chinese letter takes
    two of them."""
    if cell_len(line) <= most:
        return line
    while cell_len(line) >= most:
        line = line[:-1]
    return f"{line}…"


def slide(kind: str, heading: str, body: str, foot: str, minutes: str = "") -> str:
    """One slide. ``kind`` is its CSS class, ``minutes`` stands at the right of the heading."""
    length = f'<span class="minutes">{html.escape(minutes)}</span>' if minutes else ""
    return (
        f'<section class="slide {kind}">\n<header><h2>{inline(heading)}</h2>{length}</header>\n'
        f'<div class="body">{body}</div>\n<footer>{inline(foot)}</footer>\n</section>'
    )
