"""Where runs are written, and that one variable puts them elsewhere."""

from pathlib import Path

import pytest

from helpers.settings.paths import ROOT, runs_folder, shown


def test_runs_are_written_into_the_repositorys_folder(monkeypatch):
    monkeypatch.delenv("COURSE_RUNS", raising=False)
    assert runs_folder() == ROOT / "runs"
    assert runs_folder("notebook05") == ROOT / "runs" / "notebook05"


@pytest.mark.parametrize("value", ["runs/test", str(ROOT / "runs" / "test")])
def test_a_variable_names_another_folder(monkeypatch, value):
    monkeypatch.setenv("COURSE_RUNS", value)
    assert runs_folder("notebook05") == ROOT / "runs" / "test" / "notebook05"


def test_a_path_is_told_from_the_repository_on_where_it_is_in_it(tmp_path):
    assert shown(ROOT / "runs" / "notebook05") == Path("runs/notebook05")
    assert shown(tmp_path / "notebook05") == tmp_path / "notebook05"
