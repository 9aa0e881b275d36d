"""Importing any module of the course changes nothing but what is imported."""

import gc
import json
import subprocess
import sys

import pytest
from in_python import run_script
from patience import LONG_PATIENCE

from helpers.settings.imports import imported_when_called, without_collecting
from helpers.settings.paths import ROOT

ROOMS = ("helpers", "scripts", "tools", "benchmarks")

# Runs in a process of its own: it imports the modules that it is given, group by group, and says
# what else is different after each group. (Libraries set variables of the environment for
# themselves; that is not compared.)
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

def without_module():
    return {f"sys.modules[{name!r}]" for name, module in sys.modules.items() if module is None}

for modules in json.loads(sys.argv[1]):
    before, missing = state(), without_module()
    for name in modules:
        importlib.import_module(name)
    after = state()
    changed = [name for name in before if before[name] != after[name]]
    print("changed:" + json.dumps(changed + sorted(without_module() - missing)), flush=True)
"""


def modules_of(room):
    names = []
    for path in sorted((ROOT / room).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names.append(".".join(part for part in parts if part != "__init__"))
    return names


def changed_by(groups, folder=ROOT):
    """For each group of modules: what importing it changes, and what it prints."""
    command = [sys.executable, "-c", CODE, json.dumps(groups)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LONG_PATIENCE
    )
    assert done.returncode == 0, done.stderr
    found, printed = [], []
    for line in done.stdout.splitlines():
        mark, is_end, changed = line.partition("changed:")
        if is_end and not mark:
            found.append(json.loads(changed) + printed)
            printed = []
        else:
            printed.append(line)
    assert printed == []
    assert len(found) == len(groups)
    return found


@pytest.fixture(scope="module")
def changed():
    """What importing each room changes. One process imports all of them, one after the other: each
    would take as long as all to import what they share."""
    return dict(zip(ROOMS, changed_by([modules_of(room) for room in ROOMS]), strict=True))


@pytest.mark.parametrize("room", ROOMS)
def test_importing_changes_nothing(room, changed):
    assert len(modules_of(room)) > 5
    assert changed[room] == []


def test_a_change_would_be_noticed(tmp_path):
    (tmp_path / "careless.py").write_text(
        "import inspect, signal, sys\n"
        "inspect.stack = print\n"
        "sys.modules['nothing'] = None\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "print('here I am')\n"
    )
    noticed = ["inspect.stack", "handlers of signals", "sys.modules['nothing']", "here I am"]
    assert changed_by([["json"], ["careless"]], tmp_path) == [[], noticed]


def test_a_package_that_is_left_out_can_be_imported_afterwards():
    code = """
import helpers.browser.models, sys
assert "gradio" not in sys.modules
import gradio
"""
    run_script(code)


def test_what_is_imported_when_it_is_called_works_then():
    """OpenEnv's environments with tools need two of the packages with which it was not imported."""
    code = """
import helpers.browser.models, sys
assert not {"fastmcp", "mcp"} & set(sys.modules)
from openenv.core.env_server import MCPEnvironment, Observation, State
from openenv.core.env_server.mcp_types import CallToolAction
from fastmcp import FastMCP

tools = FastMCP("sums")

@tools.tool
def add(a: int, b: int) -> int:
    return a + b

class Sums(MCPEnvironment):
    state = State()
    reset = _step_impl = lambda *_, **__: Observation()

action = CallToolAction(tool_name="add", arguments={"a": 2, "b": 3})
assert Sums(tools).step(action).result.data == 5
"""
    run_script(code)


def test_a_trainer_is_imported_without_what_few_runs_need():
    code = """
import helpers.learning.trainer, sys
assert not {"trackio", "vllm"} & {name.partition(".")[0] for name in sys.modules}
import trackio
assert trackio.__file__
"""
    run_script(code)


def test_of_a_package_that_is_not_installed_nothing_is_made_up():
    with imported_when_called("no_such_package"), pytest.raises(ModuleNotFoundError):
        import no_such_package.part  # noqa: F401


def test_garbage_is_looked_for_again_afterwards():
    with pytest.raises(ZeroDivisionError), without_collecting():
        assert not gc.isenabled()
        with without_collecting():
            pass
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
