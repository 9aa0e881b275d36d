"""The environment as a package of its own: what OpenEnv's tools expect of it, and its server."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tomllib

import psutil
import pytest
import requests
import yaml
from openenv.cli._cli_utils import validate_env_structure
from openenv.cli._validation import validate_running_environment
from patience import PATIENCE

from helpers.browser import BrowserServerError, connect
from scripts.setup import find_uv
from tools.make_space import ROOT, make_space

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "warm_browsergym_env")


def test_openenv_takes_the_package(space):
    command = [sys.executable, "-m", "openenv.cli", "validate", str(space), "--level", "static"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict: PASS" in done.stdout
    # A folder for outputs is recommended; we write nothing.
    assert all("outputs" in warning for warning in validate_env_structure(space))


def test_its_pins_are_those_of_the_course(space):
    pinned = set((ROOT / "requirements-common.txt").read_text().split())
    wanted = {line for line in (space / "requirements.txt").read_text().split() if "==" in line}
    assert wanted
    assert wanted <= pinned
    project = tomllib.loads((space / "pyproject.toml").read_text())["project"]
    assert set(project["dependencies"]) == wanted


def test_it_installs_every_folder_of_helpers_that_it_holds(space):
    held = {path.parent.relative_to(space) for path in (space / "helpers").rglob("*.py")}
    named = tomllib.loads((space / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert {".".join(folder.parts) for folder in held} <= set(named)


def test_the_server_imports_nothing_of_helpers_that_is_not_there(space):
    code = "import helpers.browser.launcher, helpers.browser.server, helpers.browser.session, sys\n"
    code += "print(*[m.__file__ for n, m in sys.modules.items() if n.startswith('helpers')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=space, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files = done.stdout.split()
    assert len(files) > 10
    assert all(file.startswith(str(space)) for file in files)


UPSTREAM = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "openenv-browsergym_env"
version = "0.1.0"
[tool.setuptools]
packages = ["browsergym_env", "browsergym_env.server"]
package-dir = { "browsergym_env" = ".", "browsergym_env.server" = "server" }
""",
    "__init__.py": "from .client import BrowserGymEnv\n",
    "client.py": "class BrowserGymEnv: ...\n",
    "server/__init__.py": "",
    "server/app.py": "",
}
BESIDE = """
import importlib.metadata, browsergym_env, browsergym_env.server.app, helpers.browser
import warm_browsergym_env.client, warm_browsergym_env.server.app
print(browsergym_env.BrowserGymEnv.__module__)
print(warm_browsergym_env.client.connect is helpers.browser.connect)
for path in (browsergym_env, warm_browsergym_env, helpers.browser):
    print(path.__file__)
for name in ("openenv-browsergym_env", "openenv-warm-browsergym-env"):
    print(len(importlib.metadata.files(name)))
"""


def install(folders, target):
    """Install packages from their folders, without a network."""
    command = [find_uv(), "pip", "install", "--offline", "--no-deps", "--no-build-isolation", "-q"]
    command += ["--python", sys.executable, "--target", str(target), *map(str, folders)]
    subprocess.run(command, check=True)


def test_upstreams_package_is_installed_beside_it(space, tmp_path):
    """A stand-in with upstream's names: neither package overwrites what the other brings."""
    upstream = tmp_path / "upstream"
    for name, text in UPSTREAM.items():
        path = upstream / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    copy = shutil.copytree(space, tmp_path / "space")  # building leaves files behind
    installed = tmp_path / "installed"
    install([copy, upstream], installed)
    done = subprocess.run(
        [sys.executable, "-c", BESIDE],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    module, same, *paths, ours, theirs = done.stdout.split()
    assert (module, same) == ("browsergym_env.client", "True")
    assert all(path.startswith(str(installed)) for path in paths)
    assert min(int(ours), int(theirs)) > 5


def test_the_manifests_agree_on_the_port(space):
    port = yaml.safe_load((space / "openenv.yaml").read_text())["port"]
    deployment, service = yaml.safe_load_all((space / "kubernetes.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": port}]
    assert service["spec"]["ports"][0]["targetPort"] == port
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert f"EXPOSE {port}" in (space / "Dockerfile").read_text()
    assert f"app_port: {port}" in (space / "README.md").read_text()


def environment():
    """Ours, without the way to our own helpers."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def start(space, **variables):
    return subprocess.Popen(
        [sys.executable, "-m", "server.app"],
        cwd=space,
        env=environment() | {"WORKERS": "1"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_server_of_the_container(space, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = start(space, PORT=str(port), BROWSER_SERVER_TOKEN=TOKEN)
    try:
        assert "listens" in process.stdout.readline()
        tree = psutil.Process(process.pid).children(recursive=True)
        url = f"http://127.0.0.1:{port}"
        with connect(url, token=TOKEN) as env:
            env.reset("click-test", seed=0)
            assert env.step("click('13')").reward == 1.0
        with connect(f"http://me:{TOKEN}@127.0.0.1:{port}") as env:
            assert env.reset("click-test", seed=0).goal
        with pytest.raises(BrowserServerError, match="wants its token"):
            connect(url, token="another")
        # OpenEnv's own check of a running server knows no token, so its requests get ours.
        plain = requests.Session.request

        def with_token(self, *arguments, **named):
            named["headers"] = {"Authorization": f"Bearer {TOKEN}"}
            return plain(self, *arguments, **named)

        monkeypatch.setattr(requests.Session, "request", with_token)
        report = validate_running_environment(url)
        failed = [criterion for criterion in report["criteria"] if not criterion["passed"]]
        assert report["passed"], failed
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert not psutil.wait_procs(tree, timeout=PATIENCE)[1]
    finally:
        process.kill()
        process.wait()


def test_without_a_token_it_does_not_start(space):
    process = start(space, BROWSER_SERVER_TOKEN="")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert said.startswith("Set BROWSER_SERVER_TOKEN")
    assert said.count("\n") == 1
