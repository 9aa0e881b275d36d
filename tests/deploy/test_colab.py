"""The notebooks' set-up cells where a notebook comes alone: under Colab's conditions, as far as
these can be had without it and without a network, with a ZIP file instead of a repository's name,
and in a Python without the packages of the course.

Emulated: an IPython kernel that runs already, in a working directory outside the repository;
``google.colab`` imported in it; a stdout without ``fileno``; chromium and chromium-browser on the
PATH as Ubuntu's snap stubs; no Docker; none of the course's variables. ``git clone`` is real, from
a repository on this disk, and so is unpacking. The set-up script is recorded: the packages are
those of this environment, and the browser "installed" where Playwright puts its own is the one that
the tests use.

Not emulated, and so not tested: Colab's image (its Ubuntu, its Python, packages that are loaded
before the cell runs), the downloads, vLLM on its GPU, a runtime that is cut off, and widgets in its
front end.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from patience import LONG_PATIENCE, PATIENCE

from helpers.settings.paths import ROOT, notebook_paths
from tools.set_repository import SETTING

SNAP = """#!/bin/sh
if ! [ -x /snap/bin/chromium ]; then
    echo "Command '$0' requires the chromium snap to be installed." >&2
    echo "Please install it with: snap install chromium" >&2
    exit 1
fi
exec /snap/bin/chromium "$@"
"""
COLAB = """
import io, json, os, shutil, subprocess, sys
import google.colab

def record(command):
    with open(os.environ["ASKED"], "a") as file:
        file.write(json.dumps(command) + "\\n")

def system(command):  # what "!command" calls
    command = get_ipython().var_expand(command, depth=1)
    record(command)
    if command.startswith("git clone") or "zipfile" in command:
        subprocess.run(command, shell=True, check=True)
    if "setup.py" in command:
        os.makedirs(os.path.dirname(os.environ["BUILD"]), exist_ok=True)
        shutil.copy(os.environ["BROWSER"], os.environ["BUILD"])

def no_fileno(self):
    raise io.UnsupportedOperation("fileno")

get_ipython().system = system
type(sys.stdout).fileno = no_fileno
"""


def setup_cells():
    """{notebook: source} of the first code cell of each; cells that differ by the notebook's name
    only count once."""
    found = {}
    for path in notebook_paths():
        cells = nbformat.read(path, as_version=4).cells
        source = next(cell.source for cell in cells if cell.cell_type == "code")
        without_number = re.sub(r'setup\("[\w ]+", FETCHED, minutes=\d+\)', "setup", source)
        found.setdefault(without_number, (path.stem, source))
    return dict(found.values())


CELLS = setup_cells()
REPOSITORY = "octocat/browser-course"


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """What the set-up needs of this repository, as a git repository."""
    folder = tmp_path_factory.mktemp("origin")
    skip = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("helpers", "notebooks", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    for path in [*ROOT.glob("requirements*.txt"), ROOT / "constraints.txt"]:
        shutil.copy(path, folder)
    author = ["-c", "user.name=x", "-c", "user.email=x@y.z"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


def a_machine_like_colab(top):
    """Fill a folder with /content, a home, a PATH with snap stubs, google.colab and a browser;
    returns where Playwright would look for its own."""
    from playwright.sync_api import sync_playwright

    from helpers.browser.chromium import find_chromium

    for name in ("content", "home", "bin", "packages/google/colab"):
        (top / name).mkdir(parents=True)
    (top / "packages" / "google" / "colab" / "__init__.py").touch()
    for name in ("git", "sh"):
        (top / "bin" / name).symlink_to(shutil.which(name))
    for name in ("chromium", "chromium-browser"):
        executable(top / "bin" / name, SNAP)
    path = os.environ["PATH"]
    executable(top / "browser", f'#!/bin/sh\nPATH={path} exec {find_chromium()} "$@"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(top / "builds"))
        with sync_playwright() as playwright:
            return playwright.chromium.executable_path


def run_in(client, code):
    """Execute code in a kernel; returns what it prints, and fails where it raises."""
    said = []

    def listen(message):
        if message["msg_type"] == "stream":
            said.append(message["content"]["text"])

    reply = client.execute_interactive(
        code, timeout=LONG_PATIENCE, allow_stdin=False, output_hook=listen
    )
    content = reply["content"]
    assert content["status"] == "ok", "\n".join(content.get("traceback", [])) + "".join(said)
    return "".join(said)


@pytest.fixture(scope="module")
def kernels(origin):
    """Starts kernels as on Colab, in a folder that it fills: returns the folder where the notebook
    is, what runs code in the kernel, and what lists the shell commands so far."""
    started = []

    def start(top):
        build = a_machine_like_colab(top)
        env = {
            "PATH": str(top / "bin"),
            "HOME": str(top / "home"),
            "PYTHONPATH": str(top / "packages"),
            "LANG": "C.UTF-8",
            "PLAYWRIGHT_BROWSERS_PATH": str(top / "builds"),
            "BUILD": build,
            "BROWSER": str(top / "browser"),
            "ASKED": str(top / "asked.jsonl"),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.file://{origin}.insteadOf",
            "GIT_CONFIG_VALUE_0": f"https://github.com/{REPOSITORY}",
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        content = top / "content"
        started.append(start_new_kernel(kernel_name="python3", env=env, cwd=str(content)))
        client = started[-1][1]
        run_in(client, COLAB)
        (top / "asked.jsonl").touch()

        def asked():
            return [json.loads(line) for line in (top / "asked.jsonl").read_text().splitlines()]

        return SimpleNamespace(
            content=content,
            course=content / "course",
            build=build,
            asked=asked,
            run=lambda code: run_in(client, code),
            client=client,
        )

    yield start
    for manager, client in started:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module", params=CELLS)
def colab(request, kernels, tmp_path_factory):
    """A kernel in which the set-up cell has run, with the name of a repository in it."""
    kernel = kernels(tmp_path_factory.mktemp("colab"))
    source = CELLS[request.param]
    kernel.cell = SETTING.sub(lambda found: found[1] + REPOSITORY, source)
    kernel.number = request.param[:2]
    kernel.first = kernel.run(kernel.cell)
    return kernel


def test_set_up_fetches_installs_and_says_where_it_is(colab):
    assert f"Notebook {colab.number} · Python " in colab.first
    assert "profile " in colab.first
    clone, install = colab.asked()
    assert re.fullmatch(rf"git clone .*https://github\.com/{REPOSITORY} course", clone)
    python, script, here = install.split()
    assert Path(python).samefile(sys.executable)  # into the kernel's own Python
    assert here == "--here"
    assert Path(script) == colab.course / "scripts" / "setup.py"
    assert Path(script).is_file()


def test_the_course_is_imported_from_the_clone(colab):
    assert (colab.course / ".git").is_dir()
    root, file = colab.run(
        "import helpers.settings.profiles; print(ROOT); print(helpers.settings.profiles.__file__)"
    ).split()
    assert Path(root) == colab.course
    assert Path(file) == colab.course / "helpers" / "settings" / "profiles.py"


def test_a_second_run_fetches_nothing_again(colab):
    before = colab.asked()
    again = colab.run(colab.cell)
    assert colab.asked() == before
    assert again.splitlines()[-2:] == colab.first.splitlines()[-2:]


def test_the_snap_stub_is_no_browser(colab):
    said = colab.run("from helpers.browser.chromium import find_chromium\nprint(find_chromium())")
    assert said.strip() == colab.build
    said = colab.run("""
import os
builds = os.environ["PLAYWRIGHT_BROWSERS_PATH"]
os.environ["PLAYWRIGHT_BROWSERS_PATH"] = builds + "-none"  # as if the download had failed
try:
    print(find_chromium())
except FileNotFoundError as error:
    print(error)
os.environ["PLAYWRIGHT_BROWSERS_PATH"] = builds
""")
    assert said.startswith("There is no browser to use (")
    assert "snap stub" in said
    assert "COURSE_CHROMIUM" in said


def test_a_page_is_solved_in_the_kernel(colab):
    said = colab.run("""
from helpers.browser import start_browser_server
with start_browser_server(workers=1, timeout=120) as server, server.client(screenshot=True) as env:
    page = env.reset("click-test", 0)
    print(len(page.screenshot) > 1000, env.step(f"click('{page.elements[0].bid}')").ended)
""")
    assert said.split() == ["True", "solved"]


def test_without_docker_a_container_is_refused_in_a_sentence(colab):
    said = colab.run("""
from helpers.browser import BrowserServerError, connect
try:
    connect(image="browsergym-env:latest")
except BrowserServerError as error:
    print(error)
""")
    assert re.fullmatch(
        r"The container 'browsergym-env:latest' did not start \(.+\); does Docker run\?\n", said
    )


def test_vllm_gets_a_stdout_with_a_fileno_that_still_prints(colab):
    said = colab.run("""
import io
try:
    sys.stdout.fileno()
except io.UnsupportedOperation:
    print("none")
from helpers.policy.vllm_engine import prepare_vllm
prepare_vllm()
print(type(sys.stdout.fileno()).__name__)
""")
    assert said.split() == ["none", "int"]


@pytest.fixture(scope="module")
def zipped(origin, tmp_path_factory):
    """The course as GitHub's ZIP file has it: in one folder, named after the branch."""
    folder = tmp_path_factory.mktemp("zip")
    shutil.copytree(origin, folder / "browser-course-main", ignore=shutil.ignore_patterns(".git"))
    return shutil.make_archive(str(folder / "course"), "zip", folder, "browser-course-main")


def test_a_notebook_alone_says_what_it_needs_and_then_takes_a_zip_file(kernels, zipped, tmp_path):
    """As on Kaggle, ModelScope or a bare JupyterHub, where nobody knows the repository's name."""
    kernel = kernels(tmp_path)
    [cell, *_] = CELLS.values()
    cell = SETTING.sub(lambda found: found[1], cell)
    reply = kernel.client.execute_interactive(cell, timeout=PATIENCE, output_hook=lambda _: None)
    assert reply["content"]["ename"] == "SystemExit"
    assert "put its ZIP file beside this notebook as course.zip" in reply["content"]["evalue"]
    assert kernel.asked() == []

    shutil.copy(zipped, kernel.content / "course.zip")
    assert "profile " in kernel.run(cell)
    unpack, install = kernel.asked()
    assert unpack.endswith("-m zipfile -e course.zip course")
    assert install.endswith("course/browser-course-main/scripts/setup.py --here")


WITHOUT_PACKAGES = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from helpers.course.first_cell import prepare

class Shell:
    def system(self, command):
        print(command)

prepare(Shell(), pathlib.Path(sys.argv[2]))
"""


def prepare_without_packages(fetched):
    """``prepare`` in a Python that has the standard library only."""
    command = [sys.executable, "-S", "-E", "-c", WITHOUT_PACKAGES, ROOT, fetched]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_kernel_without_the_packages_says_how_to_get_them(tmp_path):
    """In VS Code or a JupyterHub, where the whole course is there and another Python was chosen."""
    done = prepare_without_packages(tmp_path / "course")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "lacks the packages of the course" in done.stderr
    assert f"`make setup` in {ROOT}" in done.stderr


def test_an_installation_that_failed_ends_the_cell():
    done = prepare_without_packages(ROOT)
    assert done.returncode == 1
    assert done.stdout.endswith("setup.py --here\n")
    assert done.stderr == "The course could not be installed: the lines above say why.\n"
