"""Which texts of the repository are pages of the site, where each lies, and which is whose twin.

English pages lie as in the repository, Chinese ones the same way below zh/. A text that a page
links to, such as the README of a recording, is a page, too; any other file is copied.
"""

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property

import nbformat

from helpers.settings.paths import NOTEBOOKS, ROOT, notebook_paths
from tools.site.markdown import Page, render
from tools.site.notebook import render_notebook

ENGLISH, CHINESE = "en", "zh"
HOME = {ENGLISH: "README.md", CHINESE: "README_zh.md"}
# Where the twin of an English text has another name than docs/zh/NAME or notebooks/zh/NAME.
TWINS = {"README.md": "README_zh.md", "CONTRIBUTING.md": "docs/zh/contributing.md"}
# A folder that has no page of its own.
INSTEAD = {
    "notebooks": "README.md",
    "notebooks/more": "README.md",
    "notebooks/zh": "README_zh.md",
    "notebooks/zh/more": "README_zh.md",
}
SHOWN_AS_THEY_ARE = {".html", ".png", ".gif", ".jpg", ".webp", ".ipynb"}


def place_of(source: str) -> str:
    """Where a text or a file of the repository lies on the site."""
    if source in HOME.values():
        return "index.html" if source == HOME[ENGLISH] else "zh/index.html"
    path = re.sub(r"^(docs|notebooks)/zh/(.+)", r"zh/\1/\2", source)
    folder, name = posixpath.split(path)
    stem, ending = posixpath.splitext(name)
    if ending in (".md", ".ipynb"):
        return posixpath.join(folder, f"{'index' if stem == 'README' else stem}.html")
    return path if ending in SHOWN_AS_THEY_ARE else f"{path}.txt"  # which browsers show


def language_of(source: str) -> str:
    """The language of a text."""
    return CHINESE if place_of(source).startswith("zh/") else ENGLISH


def twin_of(source: str) -> str:
    """The same text in the other language; of a text without a twin, that language's first page."""
    back = {theirs: ours for ours, theirs in TWINS.items()}
    if language_of(source) == CHINESE:
        return back.get(source) or re.sub(r"^(docs|notebooks)/zh/", r"\1/", source)
    twin = TWINS.get(source) or re.sub(r"^(docs|notebooks)/", r"\1/zh/", source)
    return twin if (ROOT / twin).is_file() and twin != source else HOME[CHINESE]


def leads(place: str, to: str) -> str:
    """The address of one place of the site on the page at another."""
    return posixpath.relpath(to, posixpath.dirname(place) or ".")


@dataclass(frozen=True)
class Document:
    """A text of the repository that is a page of the site."""

    source: str
    """Its path in the repository."""

    @property
    def place(self) -> str:
        """Its path on the site."""
        return place_of(self.source)

    @property
    def language(self) -> str:
        """en or zh."""
        return language_of(self.source)

    @cached_property
    def page(self) -> Page:
        """Its HTML, in which every address is one of the site."""
        path = ROOT / self.source
        if path.suffix == ".ipynb":
            return render_notebook(nbformat.read(path, as_version=4), self.target)
        return render(path.read_text(encoding="utf-8"), self.target)

    def named(self, address: str) -> str:
        """The path in the repository of what an address of this text names; empty for the web and
        for a heading of the same text."""
        name = address.partition("#")[0]
        if not name or re.match(r"\w+:", name):
            return ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.source), name))
        if path in INSTEAD:
            return INSTEAD[path]
        return f"{path}/README.md" if (ROOT / path / "README.md").is_file() else path

    def target(self, address: str) -> str:
        """What an address of this text is on its page."""
        named = self.named(address)
        if not named:
            return address
        _, hash_sign, anchor = address.partition("#")
        anchor = anchor.replace("%22", "").replace('"', "")  # as `jupyter_anchor` writes it
        return leads(self.place, place_of(named)) + hash_sign + anchor

    @cached_property
    def names(self) -> set[str]:
        """The texts and files of the repository that its addresses name."""
        found: set[str] = set()

        def note(address: str) -> str:
            found.add(self.named(address))
            return address

        path = ROOT / self.source
        if path.suffix == ".ipynb":
            render_notebook(nbformat.read(path, as_version=4), note)
        else:
            render(path.read_text(encoding="utf-8"), note)
        return found - {""}


def main_documents() -> list[Document]:
    """The texts that stand in the navigation: README, contributing, docs and notebooks, twice."""
    found = [
        *sorted(ROOT.glob("docs/**/*.md")),
        *notebook_paths(),
        *notebook_paths(NOTEBOOKS / "zh"),
    ]
    sources = [path.relative_to(ROOT).as_posix() for path in found]
    return [
        Document(source) for source in ("README.md", "README_zh.md", "CONTRIBUTING.md", *sources)
    ]


def linked(documents: list[Document]) -> tuple[list[Document], list[str]]:
    """What pages link to beyond themselves: further texts, which become pages, and files."""
    known = {document.source for document in documents}
    further: list[Document] = []
    files: set[str] = set()
    to_read = list(documents)
    while to_read:
        for name in sorted(to_read.pop().names - known):
            if name.endswith(".md"):
                known.add(name)
                further.append(Document(name))
                to_read.append(further[-1])
            elif (ROOT / name).is_file():
                files.add(name)
    return further, sorted(files)
