"""Where runs are written, and that one variable puts them elsewhere."""

import pytest

from helpers.settings.paths import ROOT, runs_folder


def test_runs_are_written_into_the_repositorys_folder(monkeypatch):
    monkeypatch.delenv("COURSE_RUNS", raising=False)
    assert runs_folder() == ROOT / "runs"
    assert runs_folder("notebook05") == ROOT / "runs" / "notebook05"


@pytest.mark.parametrize("value", ["runs/test", str(ROOT / "runs" / "test")])
def test_a_variable_names_another_folder(monkeypatch, value):
    monkeypatch.setenv("COURSE_RUNS", value)
    assert runs_folder("notebook05") == ROOT / "runs" / "test" / "notebook05"
