"""A script in a Python process of its own, for what the tests' process must not do itself."""

import os
import subprocess
import sys

from patience import LONG_PATIENCE

from helpers.settings.paths import ROOT


def run_script(script, *arguments):
    """Run Python code as from the course's folder, with the tests' own modules at hand; returns
    what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
        timeout=LONG_PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
