"""The environment as a package of its own: what OpenEnv's tools expect of it, and its server."""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest
import requests
import yaml
from openenv.cli._cli_utils import validate_env_structure
from openenv.cli._validation import validate_running_environment

from helpers.browser import BrowserServerError, connect
from tools.make_space import ROOT, make_space

TOKEN = "a-token-of-the-test"


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return make_space(tmp_path_factory.mktemp("space") / "browsergym_env")


def test_openenv_takes_the_package(space):
    done = subprocess.run(
        [sys.executable, "-m", "openenv.cli", "validate", str(space), "--level", "static"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "Verdict: PASS" in done.stdout, done.stdout + done.stderr
    assert all(
        "outputs" in warning for warning in validate_env_structure(space)
    )  # a folder it recommends; we write nothing


def test_its_pins_are_those_of_the_course(space):
    pinned = set((ROOT / "requirements-common.txt").read_text().split())
    wanted = {line for line in (space / "requirements.txt").read_text().split() if "==" in line}
    assert wanted and wanted <= pinned
    named = (space / "pyproject.toml").read_text()
    assert all(f'"{pin}"' in named for pin in wanted)


def test_the_manifests_agree_on_the_port(space):
    port = yaml.safe_load((space / "openenv.yaml").read_text())["port"]
    deployment, service = yaml.safe_load_all((space / "kubernetes.yaml").read_text())
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert (
        container["ports"] == [{"containerPort": port}]
        and service["spec"]["ports"][0]["targetPort"] == port
    )
    assert (
        service["spec"]["selector"].items()
        <= deployment["spec"]["template"]["metadata"]["labels"].items()
    )
    assert f"EXPOSE {port}" in (space / "Dockerfile").read_text()
    assert f"app_port: {port}" in (space / "README.md").read_text()


def start(space, **environment):
    names = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        [sys.executable, "-m", "server.app"],
        cwd=space,
        env=names | {"WORKERS": "1"} | environment,
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
        monkeypatch.setattr(
            requests.Session,
            "request",
            lambda self, *arguments, **named: plain(
                self, *arguments, **named | {"headers": {"Authorization": f"Bearer {TOKEN}"}}
            ),
        )
        report = validate_running_environment(url)
        assert report["passed"], [c for c in report["criteria"] if not c["passed"]]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert not psutil.wait_procs(tree, timeout=10)[1]
    finally:
        process.kill()
        process.wait()


def test_without_a_token_it_does_not_start(space):
    process = start(space, BROWSER_SERVER_TOKEN="")
    _, said = process.communicate(timeout=60)
    assert (
        process.returncode == 2
        and said.startswith("Set BROWSER_SERVER_TOKEN")
        and said.count("\n") == 1
    )
