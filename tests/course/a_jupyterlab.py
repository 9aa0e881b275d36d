"""A real JupyterLab in a folder of a test's own, and a notebook in it."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import nbformat
import psutil
from patience import PATIENCE

from helpers.settings.paths import ROOT

OPTIONS = [
    "--no-browser",
    "--allow-root",
    "--ServerApp.port=0",
    "--IdentityProvider.token=secret",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.news_url=None",
    "--ServerApp.root_dir=.",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]


def wait_for(condition):
    """The first true value of ``condition()``.

    This is for what is not in the page, and for which Playwright does not wait by itself.
    """
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"nothing after {PATIENCE} s"
        time.sleep(0.1)
    return value


def write_notebook(path, sources):
    """Write a notebook of code cells."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source.strip()) for source in sources],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, path)


@contextmanager
def jupyterlab(top):
    """The port of a JupyterLab whose root is the folder work/ in ``top``.

    At the end it and what it started are ended; a process that it has started and that stays is a
    failure.
    """
    environment = os.environ | {
        "JUPYTER_RUNTIME_DIR": str(top / "runtime"),
        "JUPYTER_CONFIG_DIR": str(top / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(top / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(top / "workspaces"),
        "PYTHONPATH": str(ROOT),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    command = [sys.executable, "-m", "jupyterlab", *OPTIONS]
    with (top / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=top / "work", env=environment, stdout=log, stderr=log
        )
    try:
        yield port_of(server, top)
    finally:
        started = psutil.Process(server.pid).children(recursive=True)
        server.terminate()  # it ends its kernel; with that the browser server ends
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            # On a busy machine it has been seen to wait for ever, its work done, for a thread of
            # anyio's. What it has started is looked at all the same.
            server.kill()
            server.wait()
        left = psutil.wait_procs(started, 20)[1]
        for process in left:
            process.kill()
    assert not left


def port_of(server, top):
    """The port that JupyterLab writes down once it listens."""

    def written():
        assert server.poll() is None, (top / "log").read_text()
        return next((top / "runtime").glob("jpserver-*.json"), None)

    file = wait_for(written)
    return json.loads(wait_for(file.read_text))["port"]
