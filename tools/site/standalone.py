"""A page that stands alone: its style is in it, and it looks like a page of the site."""

from collections.abc import Sequence
from pathlib import Path

import jinja2

FOLDER = Path(__file__).parent
PAGES = FOLDER / "templates"
STYLES = ("page.css", "course.css")
Link = tuple[str, str]
"""Its words and its address."""


def page_templates(folder: Path, chinese: bool) -> jinja2.Environment:
    """The templates of a folder, with ``t``, which chooses between English and Chinese."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True
    )
    environment.globals["t"] = lambda in_english, in_chinese: in_chinese if chinese else in_english
    return environment


def standalone(title: str, body: str, links: Sequence[Link] = (), chinese: bool = False) -> str:
    """A whole HTML page around ``body``, which is HTML; ``links`` stand at its top."""
    style = "".join((FOLDER / "assets" / name).read_text(encoding="utf-8") for name in STYLES)
    return (
        page_templates(PAGES, chinese)
        .get_template("page.html.j2")
        .render(
            title=title,
            body=body,
            links=links,
            style=style,
            language="zh-CN" if chinese else "en",
        )
    )
