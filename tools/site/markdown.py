"""HTML of the course's markdown, as GitHub and Jupyter show it, with nothing left to a network.

Formulas become MathML, which browsers draw by themselves; code is coloured here.
"""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mistune
from latex2mathml.converter import convert
from mistune.plugins.math import math
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound
from typing_extensions import override

BADGE = re.compile(r"\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)\n*")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# The switch of languages has a place of its own on every page.
LANGUAGES = re.compile(r"^(?:English|\[English\]\([^)]*\)) \| \S+\n+", re.MULTILINE)
TAG = re.compile(r"<[^>]+>")
# A link or the source of a picture, in raw HTML.
ATTRIBUTE = re.compile(r"""(<\w+[^>]*\b(?:href|src)=["'])([^"']*)""")

LinkTarget = Callable[[str], str]
"""What an address of a text is on the page that is made of it."""


@dataclass(frozen=True)
class Heading:
    """A heading: its level (1 is the title), its anchor, and its words as HTML."""

    level: int
    anchor: str
    words: str

    @property
    def text(self) -> str:
        """The words alone."""
        return html.unescape(TAG.sub("", self.words))


@dataclass
class Page:
    """The HTML of a text, and its headings in their order."""

    html: str
    headings: list[Heading] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The words of the first heading."""
        return self.headings[0].text if self.headings else ""


def github_anchor(words: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def jupyter_anchor(words: str) -> str:
    """The anchor that Jupyter gives to a heading, without quotation marks: the theme's scripts look
    for headings with a selector, in which they would end a name."""
    return words.replace(" ", "-").replace('"', "")


def same_target(target: str) -> str:
    """Leave an address as it is."""
    return target


class Renderer(mistune.HTMLRenderer):
    """mistune's HTML with anchors, coloured code, MathML, and addresses of the page's own."""

    def __init__(self, target: LinkTarget, anchor: Callable[[str], str]) -> None:
        super().__init__(escape=False)
        self.target = target
        self.anchor = anchor
        self.headings: list[Heading] = []

    @override
    def heading(self, text: str, level: int, **attrs: Any) -> str:
        anchor = self._free(self.anchor(Heading(level, "", text).text))
        self.headings.append(Heading(level, anchor, text))
        return f'<h{level} id="{html.escape(anchor)}">{text}</h{level}>\n'

    def _free(self, anchor: str) -> str:
        """The anchor, with a number behind it where another heading has it already."""
        taken = {heading.anchor for heading in self.headings}
        free = anchor
        number = 0
        while free in taken:
            number += 1
            free = f"{anchor}-{number}"
        return free

    @override
    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, self.target(url), title)

    @override
    def image(self, text: str, url: str, title: str | None = None) -> str:
        return super().image(text, self.target(url), title)

    @override
    def block_html(self, html: str) -> str:
        return super().block_html(self._lead(html))

    @override
    def inline_html(self, html: str) -> str:
        return self._lead(html)

    def _lead(self, raw: str) -> str:
        """Raw HTML with the addresses of this page."""
        return ATTRIBUTE.sub(lambda found: found[1] + self.target(found[2]), raw)

    @override
    def block_code(self, code: str, info: str | None = None) -> str:
        return code_block(code, (info or "").split(" ")[0])

    def table(self, text: str) -> str:
        """A table in a box of its own, which scrolls where the page is narrow."""
        return f'<div class="wide" tabindex="0"><table>\n{text}</table></div>\n'

    def inline_math(self, text: str) -> str:
        """A formula in a line."""
        return convert(text, display="inline")

    def block_math(self, text: str) -> str:
        """A formula on a line of its own."""
        return f'<div class="wide" tabindex="0">{convert(text, display="block")}</div>\n'


def code_block(code: str, language: str = "") -> str:
    """Code in the colours of its language; without a language, or an unknown one, as it is."""
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    inside = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<div class="highlight"><pre tabindex="0"><code>{inside}</code></pre></div>\n'


def render(text: str, target: LinkTarget = same_target, jupyter: bool = False) -> Page:
    """The HTML of markdown.

    ``target`` says where each address leads on the page that is made. ``jupyter``: anchors as in a
    notebook, not as on GitHub. Badges, comments and the line that switches the language are left
    out: a badge is a picture of another site.
    """
    renderer = Renderer(target, jupyter_anchor if jupyter else github_anchor)
    plugins = ["table", "strikethrough", "url", math]
    markdown = mistune.create_markdown(escape=False, renderer=renderer, plugins=plugins)
    for leave_out in (COMMENT, LANGUAGES, BADGE):
        text = leave_out.sub("", text)
    return Page(str(markdown(text)), renderer.headings)
