"""Importing any module of the course changes nothing but what is imported."""

import json
import subprocess
import sys

import pytest

from helpers.settings.paths import ROOT

ROOMS = ("helpers", "scripts", "tools", "benchmarks")

# Runs in a process of its own: it imports the modules that it is given and says what else is
# different then. (Libraries set variables of the environment for themselves; that is not compared.)
CODE = """
import importlib, inspect, json, os, signal, sys, threading, traceback
import browsergym.core.action.functions as actions
from playwright._impl._connection import Connection
from playwright.sync_api import BrowserType

def state():
    return {
        "inspect.stack": inspect.stack,
        "traceback.extract_stack": traceback.extract_stack,
        "Playwright's messages": Connection._replace_guids_with_channels,
        "Playwright's launch": BrowserType.launch,
        "BrowserGym's get_elem_by_bid": actions.get_elem_by_bid,
        "excepthook": sys.excepthook,
        "stdout": sys.stdout,
        "stderr": sys.stderr,
        "working directory": os.getcwd(),
        "handlers of signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "threads": threading.enumerate(),
    }

modules = json.loads(sys.argv[1])
before = state()
for name in modules:
    importlib.import_module(name)
after = state()
changed = [name for name in before if before[name] != after[name]]
changed += [f"sys.modules[{name!r}]" for name, module in sys.modules.items() if module is None]
print(json.dumps(changed))
"""


def modules_of(room):
    names = []
    for path in sorted((ROOT / room).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(part for part in parts if part != "__init__"))
    return names


def changed_by(modules, folder=ROOT):
    """What importing these modules changes, and what they print."""
    command = [sys.executable, "-c", CODE, json.dumps(modules)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    *printed, changed = done.stdout.splitlines()
    return json.loads(changed) + printed


@pytest.mark.parametrize("room", ROOMS)
def test_importing_changes_nothing(room):
    modules = modules_of(room)
    assert len(modules) > 5
    assert changed_by(modules) == []


def test_a_change_would_be_noticed(tmp_path):
    (tmp_path / "careless.py").write_text(
        "import inspect, signal, sys\n"
        "inspect.stack = print\n"
        "sys.modules['nothing'] = None\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "print('here I am')\n"
    )
    noticed = ["inspect.stack", "handlers of signals", "sys.modules['nothing']", "here I am"]
    assert changed_by(["careless"], tmp_path) == noticed


def test_a_package_that_is_left_out_can_be_imported_afterwards():
    code = """
import helpers.browser.models, sys
assert "gradio" not in sys.modules
import gradio
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
