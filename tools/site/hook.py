"""What MkDocs is told while it builds: the HTML of each page is there already, with its headings.

MkDocs loads this file by its path. Its own Markdown is not CommonMark, which GitHub and Jupyter
show; so it gets empty pages, and what `tools.site` made of the texts is put in their place.
"""

import importlib
import json
from pathlib import Path
from typing import Any

PAGES = "pages.json"
"""Beside MkDocs's configuration: what is known of each page, by its place."""


def on_config(config: Any) -> Any:
    """Read the pages before the first of them is built."""
    text = (Path(config.config_file_path).parent / PAGES).read_text(encoding="utf-8")
    config.extra["pages"] = json.loads(text)
    return config


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """The HTML of a page in the place of MkDocs's, and its headings as table of contents."""
    made = config.extra["pages"][page.file.src_uri]
    # Only who builds the site has MkDocs; the types of the rest are checked without it.
    contents = importlib.import_module("mkdocs.structure.toc")
    page.toc = contents.get_toc(made["contents"])
    return made["html"]


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """Where the header's switch of language leads from this page."""
    context["twin"] = config.extra["pages"][page.file.src_uri]["twin"]
    return context
