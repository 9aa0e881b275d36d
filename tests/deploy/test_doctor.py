"""The doctor: one line for each check, also where something is wrong."""

import os
import re
import subprocess
import sys

import pytest
from patience import PATIENCE

from helpers.settings.paths import ROOT
from scripts import doctor


def run(*command, **env):
    """Run a command at the top of the repository; returns the finished process with its text."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        env={**os.environ, **{name: str(value) for name, value in env.items()}},
    )


def test_doctor_is_content_with_this_environment():
    done = run(sys.executable, "-m", "scripts.doctor", "python", "packages", "chromium")
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"(  ok   \w+ +.+\n){3}", done.stdout)


def test_doctor_names_the_mend_and_goes_on():
    command = (sys.executable, "-m", "scripts.doctor", "chromium", "python")
    done = run(*command, COURSE_CHROMIUM="/no/such/browser")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("  FAIL chromium")
    assert "make setup" in first
    assert second.startswith("  ok   python")


def test_doctor_needs_no_package_to_say_that_one_is_missing():
    """-S: without the installed packages, as where the set-up stopped half-way."""
    done = run(sys.executable, "-S", "-m", "scripts.doctor", "space", "python", PYTHONPATH=ROOT)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert re.match(r"  FAIL space +No module named 'psutil' .*; run `make distclean setup`", first)
    assert second.startswith("  ok   python")


def test_doctor_sees_a_wrong_version(monkeypatch, tmp_path):
    for name in ("requirements-common.txt", "requirements.txt", "requirements-cpu.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text().replace("trl==", "trl==9."))
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setenv("COURSE_UNPINNED", "1")
    assert f"trl {doctor.version_of('trl')}" in doctor.check_packages()
    monkeypatch.delenv("COURSE_UNPINNED")
    with pytest.raises(
        doctor.CheckFailed, match=r"^trl is 1\.\S+, not 9\.1\S+: run `make distclean setup`\.$"
    ):
        doctor.check_packages()


def test_doctor_refuses_an_unknown_check():
    done = run(sys.executable, "-m", "scripts.doctor", "weather")
    assert done.returncode == 2
    assert "There is no check weather: use python, packages" in done.stderr
