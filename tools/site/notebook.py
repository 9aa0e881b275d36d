"""HTML of an executed notebook: its prose, its code, and what each cell showed."""

import html
import re
from typing import Any

from nbformat import NotebookNode

from tools.site.markdown import Heading, LinkTarget, Page, code_block, render, same_target

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PICTURES = ("image/png", "image/jpeg", "image/gif")


def render_notebook(notebook: NotebookNode, target: LinkTarget = same_target) -> Page:
    """The page of a notebook; ``target`` says where each address of its prose leads."""
    pieces: list[str] = []
    headings: list[Heading] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            prose = render(cell.source, target, jupyter=True)
            pieces.append(prose.html)
            headings += prose.headings
        elif cell.cell_type == "code":
            pieces.append(code_cell(cell, target))
    return Page("\n".join(pieces), headings)


def code_cell(cell: NotebookNode, target: LinkTarget) -> str:
    """A cell of code with its number, and below it what it showed."""
    number = cell.get("execution_count") or " "
    code = code_block(cell.source, "ipython3")
    shown = "".join(output_html(output, target) for output in cell.get("outputs", []))
    if shown:
        shown = f'<div class="output">\n{shown}</div>\n'
    return f'<div class="cell" data-number="[{number}]">\n{code}{shown}</div>\n'


def output_html(output: NotebookNode, target: LinkTarget) -> str:
    """One output: of several forms of it the one that shows most."""
    if output.output_type == "stream":
        return printed(output.text)
    if output.output_type == "error":
        return printed("\n".join(output.traceback))
    data: dict[str, Any] = output.get("data", {})
    for kind in PICTURES:
        if kind in data:
            alt = output.metadata.get(kind, {}).get("alt", "")
            return picture(kind, data[kind], alt)
    if "text/html" in data:
        return f'<div class="wide" tabindex="0">{data["text/html"]}</div>\n'
    if "text/markdown" in data:
        return render(data["text/markdown"], target).html
    return printed(data.get("text/plain", ""))


def printed(text: str) -> str:
    """Printed text, without the colours of a terminal."""
    if not text.strip():
        return ""
    plain = html.escape(ANSI.sub("", text).rstrip("\n"))
    return f'<pre class="printed" tabindex="0">{plain}</pre>\n'


def picture(kind: str, encoded: str, alt: str) -> str:
    """A picture that is part of the page; ``encoded``: base64, with or without line breaks."""
    source = f"data:{kind};base64,{''.join(encoded.split())}"
    return f'<p><img alt="{html.escape(alt)}" src="{source}"></p>\n'
