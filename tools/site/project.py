"""What MkDocs is given for one language: its pages, its menu and its configuration."""

import json
import re
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import yaml

from helpers.settings.paths import ROOT
from tools.site.documents import (
    CHINESE,
    ENGLISH,
    HOME,
    Document,
    leads,
    main_documents,
    place_of,
    twin_of,
)
from tools.site.hook import PAGES
from tools.site.markdown import Heading, Page
from tools.site.player import PLACES, TITLES, player_page

FOLDER = Path(__file__).parent
CONFIGURATION = FOLDER / "mkdocs.yml"
NAMES = {
    ENGLISH: "Browser RL course",
    CHINESE: "浏览器强化学习课程",
}
SECTIONS = {
    ENGLISH: {"home": "Start", "notebooks": "Notebooks", "docs": "Documentation"},
    CHINESE: {"home": "开始", "notebooks": "Notebook", "docs": "文档"},
}
LANGUAGES = {ENGLISH: "English", CHINESE: "中文"}
SOURCE = {ENGLISH: "Notebook as a file", CHINESE: "Notebook 文件"}


def contents_of(headings: Sequence[Heading]) -> list[dict[str, Any]]:
    """Headings as MkDocs wants them: those of a lower level are the children of those above."""
    top: list[dict[str, Any]] = []
    above: list[tuple[int, list[dict[str, Any]]]] = [(0, top)]
    for heading in headings:
        while above[-1][0] >= heading.level:
            above.pop()
        children: list[dict[str, Any]] = []
        above[-1][1].append(
            {
                "level": heading.level,
                "id": escape(heading.anchor),  # a title may have quotation marks
                "name": escape(heading.text),
                "children": children,
            }
        )
        above.append((heading.level, children))
    return top


def root_of(language: str) -> str:
    """Where the pages of a language lie on the site: a folder, with a slash; empty for the top."""
    return "zh/" if language == CHINESE else ""


def inside(place: str, language: str) -> str:
    """A place of the site, seen from where the pages of a language lie."""
    return leads(f"{root_of(language)}index.html", place)


def stub_of(place: str, language: str) -> str:
    """The file that MkDocs makes a page of."""
    return re.sub(r"\.html$", ".md", inside(place, language))


def with_file(document: Document) -> str:
    """The HTML of a page; below a notebook's title a link to the notebook itself."""
    html = document.page.html
    if not document.source.endswith(".ipynb"):
        return html
    address = leads(document.place, notebook_file(document))
    link = (
        f'<p class="course-links"><a href="{address}" download>{SOURCE[document.language]}</a></p>'
    )
    return html.replace("</h1>", f"</h1>\n{link}", 1)


def notebook_file(document: Document) -> str:
    """Where the file of a notebook lies on the site."""
    return re.sub(r"\.html$", ".ipynb", document.place)


def pages_of(documents: Sequence[Document], language: str) -> dict[str, dict[str, Any]]:
    """What MkDocs's hook is told of each page of a language, by the file that it is made of."""
    made = {
        document.place: (document.page, with_file(document), place_of(twin_of(document.source)))
        for document in documents
        if document.language == language
    }
    other = ENGLISH if language == CHINESE else CHINESE
    player = player_page(language)
    made[PLACES[language]] = (player, player.html, PLACES[other])
    return {
        stub_of(place, language): page_record(page, html, place, twin)
        for place, (page, html, twin) in made.items()
    }


def page_record(page: Page, html: str, place: str, twin: str) -> dict[str, Any]:
    """One page for MkDocs's hook; ``twin``: the place of the same page in the other language."""
    other = CHINESE if twin.startswith(root_of(CHINESE)) else ENGLISH
    link = {"name": LANGUAGES[other], "lang": other, "link": leads(place, twin)}
    return {
        "title": page.title,
        "html": html,
        "contents": contents_of(page.headings),
        "twin": link,
    }


def navigation(language: str) -> list[dict[str, Any]]:
    """The menu: notebooks, the player, and the pages of docs/ in the order of their index."""
    index = "docs/README.md" if language == ENGLISH else "docs/zh/README.md"
    text = (ROOT / index).read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\)", text, re.MULTILINE)
    names = SECTIONS[language]
    listing = Document(index)
    docs: list[Any] = [stub_of(place_of(index), language)]
    for words, address in rows:
        docs.append({words: stub_of(place_of(listing.named(address)), language)})
    notebooks = [
        {document.page.title: stub_of(document.place, language)}
        for document in main_documents()
        if document.language == language and document.source.endswith(".ipynb")
    ]
    return [
        {names["home"]: stub_of(place_of(HOME[language]), language)},
        {TITLES[language]: stub_of(PLACES[language], language)},
        {names["notebooks"]: notebooks},
        {names["docs"]: docs},
    ]


def glossary_words() -> list[str]:
    """The course's Chinese terms, which the search is to take for words."""
    text = (ROOT / "docs" / "zh" / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([\u4e00-\u9fff]{2,})（", text, re.MULTILINE)


def write_project(folder: Path, pages: dict[str, dict[str, Any]], language: str) -> Path:
    """Write what MkDocs reads for one language into a folder; returns its configuration."""
    for stub, page in pages.items():
        path = folder / "docs" / stub
        path.parent.mkdir(parents=True, exist_ok=True)
        front = yaml.safe_dump({"title": page["title"]}, allow_unicode=True)
        path.write_text(f"---\n{front}---\n", encoding="utf-8")
    assets = folder / "docs" / "assets"
    assets.mkdir(parents=True)
    for name in ("course.css", "iframe-worker.js"):
        shutil.copy(FOLDER / "assets" / name, assets)
    (folder / PAGES).write_text(json.dumps(pages, ensure_ascii=False), encoding="utf-8")
    configuration: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))
    configuration["site_name"] = NAMES[language]
    configuration["theme"]["language"] = language
    configuration["theme"]["custom_dir"] = str(FOLDER / "theme")
    configuration["hooks"] = [str(FOLDER / "hook.py")]
    configuration["nav"] = navigation(language)
    if language == CHINESE:
        words = folder / "words.txt"
        words.write_text("\n".join(glossary_words()) + "\n", encoding="utf-8")
        configuration["plugins"] = ["offline", {"search": {"jieba_dict_user": str(words)}}]
    written = folder / "mkdocs.yml"
    written.write_text(
        yaml.safe_dump(configuration, allow_unicode=True, sort_keys=False), encoding="utf-8"
    )
    return written
