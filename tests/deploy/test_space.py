"""The environment as a package of its own: what OpenEnv's tools expect of it, and its server."""

import os
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

from helpers.browser import BrowserServerError, connect
from tools.make_space import ROOT, make_space

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "browsergym_env")


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
        assert process.wait(20) == 0
        assert not psutil.wait_procs(tree, timeout=10)[1]
    finally:
        process.kill()
        process.wait()


def test_without_a_token_it_does_not_start(space):
    process = start(space, BROWSER_SERVER_TOKEN="")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said.startswith("Set BROWSER_SERVER_TOKEN")
    assert said.count("\n") == 1
