"""Put the site together: every text as HTML, then MkDocs with Material's theme, once a language."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.settings.errors import CourseError
from helpers.settings.paths import ROOT
from tools.site.documents import CHINESE, ENGLISH, linked, main_documents, place_of
from tools.site.player import RECORDING_SCRIPT, write_recording
from tools.site.project import notebook_file, pages_of, root_of, write_project


class SiteError(CourseError):
    """The site cannot be built."""


def run_mkdocs(configuration: Path, site: Path) -> None:
    """Build the pages of one language; `SiteError` with what MkDocs says where it cannot."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    command += ["--config-file", str(configuration), "--site-dir", str(site)]
    # Material tells of its successor on every build.
    environment = {**os.environ, "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise SiteError(
            f"MkDocs could not build the site: {said[-1]} If it is not there, `make site` installs "
            "it from tools/site/requirements.txt, which needs a network."
        )


def check_folder(site: Path) -> None:
    """Raise `SiteError` where a folder holds something else than a site: it would be lost."""
    if site.exists() and any(site.iterdir()) and not (site / RECORDING_SCRIPT).exists():
        raise SiteError(f"{site} holds something else than a site: choose another --output.")


def build(site: Path, work: Path) -> int:
    """Build the site into a folder, with ``work`` as scratch; returns how many pages it has.

    Both folders are made anew. Raises `SiteError`.
    """
    check_folder(site)
    texts = main_documents()
    further, files = linked(texts)
    documents = [*texts, *further]
    for folder in (site, work):
        shutil.rmtree(folder, ignore_errors=True)
    count = 0
    for language in (ENGLISH, CHINESE):  # MkDocs empties the folder that it writes into
        pages = pages_of(documents, language)
        configuration = write_project(work / language, pages, language)
        run_mkdocs(configuration.resolve(), site.resolve() / root_of(language))
        count += len(pages)
    for name in files:
        copy(name, site / place_of(name))
    for document in documents:
        if document.source.endswith(".ipynb"):
            copy(document.source, site / notebook_file(document))
    write_recording(site)
    return count


def copy(source: str, target: Path) -> None:
    """Copy a file of the repository to a place of the site."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / source, target)
