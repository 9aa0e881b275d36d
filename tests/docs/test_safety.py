"""The table of what each layer stops names tests that there are."""

import ast
import re

import pytest

from helpers.settings.paths import ROOT

pytestmark = pytest.mark.docs

LAYERS = {"Grammar", "Action set", "Server", "Browser"}
ROW = re.compile(r"^\| (?P<layer>[^|]+) \| [^|]+ \| `(?P<file>tests/\S+\.py)::(?P<test>\w+)` \|$")


def rows(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [match for match in map(ROW.match, lines) if match]


@pytest.mark.parametrize("row", rows("docs/safety.md"), ids=lambda row: row["test"])
def test_each_row_names_a_test_that_there_is(row):
    tree = ast.parse((ROOT / row["file"]).read_text(encoding="utf-8"))
    assert row["test"] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_layer_has_a_row_and_both_languages_the_same_tests():
    english, chinese = rows("docs/safety.md"), rows("docs/zh/safety.md")
    assert {row["layer"].strip() for row in english} == LAYERS
    assert [row["test"] for row in english] == [row["test"] for row in chinese]
