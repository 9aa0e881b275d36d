"""What the processes below a server may do: they know no secret, a page's own script reaches
nothing, and Chromium keeps its sandbox where it can."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from patience import PATIENCE

from helpers.browser import start_browser_server
from helpers.browser.chromium import find_chromium
from helpers.browser.processes import descendants
from helpers.browser.sandbox import WITHOUT_SANDBOX
from helpers.settings.paths import ROOT

SECRETS = {
    "HF_TOKEN": "secret-of-the-hub",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-cloud",
    "COURSE_SERVER_TOKEN": "secret-of-another-server",
    "HTTPS_PROXY": "http://user:secret-of-the-proxy@proxy.invalid",
}
NOBODY = "65534"


def kind(process):
    """What a process below a server is."""
    command = process.cmdline()
    types = [word.partition("=")[2] for word in command if word.startswith("--type=")]
    if "helpers.browser.server" in command:
        return "server"
    if "helpers.browser.worker" in command:
        return "worker"
    if "run-driver" in command:
        return "driver"
    return types[0] if types else "chromium"


@pytest.fixture(scope="module")
def tree():
    """The processes below a server that was started by one who knows secrets, while a page is open,
    by kind; and the server."""
    with pytest.MonkeyPatch.context() as patches:
        for name, secret in SECRETS.items():
            patches.setenv(name, secret)
        with start_browser_server(workers=1, timeout=120) as server, server.client() as env:
            env.reset("click-test", 0)
            processes = descendants(server._process.pid)
            yield {kind(process): process for process in processes}, processes, server


# ---- secrets ----


def test_no_process_below_gets_a_secret(tree):
    kinds, processes, server = tree
    assert {"server", "worker", "driver", "chromium", "renderer"} <= set(kinds)
    for process in processes:
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        for secret in (*SECRETS.values(), server.token):
            assert secret.encode() not in environment, process
            assert secret not in " ".join(process.cmdline()), process
    assert b"PATH=" in Path(f"/proc/{kinds['server'].pid}/environ").read_bytes()


def test_driver_and_chromium_get_nothing_that_is_pythons(tree):
    kinds, _, _ = tree
    for name in ("driver", "chromium"):
        names = set(kinds[name].environ())
        assert "PATH" in names
        assert not [each for each in names if each.startswith(("PYTHON", "COURSE_RUNS", "OMP_"))]


def test_nobody_can_speak_to_chromium_but_its_driver(tree):
    """It is driven through a pipe; a port would be open to every page and every user."""
    kinds, processes, _ = tree
    assert "--remote-debugging-pipe" in kinds["chromium"].cmdline()
    listening = {
        (kind(process), connection.laddr.ip)
        for process in processes
        for connection in process.net_connections("all")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {("server", "127.0.0.1")}


# ---- the sandbox ----

AS_ANOTHER_USER = """
import json, os, warnings
from pathlib import Path
from helpers.browser import start_browser_server
from helpers.browser.chromium import find_chromium
from helpers.browser.processes import descendants
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    server = start_browser_server(workers=1, timeout=120)
with server, server.client() as env:
    env.reset("click-test", 0)
    reward = env.step("click('13')").reward
    found = []
    for process in descendants(server._process.pid):
        command = " ".join(process.cmdline())
        status = Path(f"/proc/{process.pid}/status").read_text()
        filters = [line.split()[1] for line in status.splitlines() if line.startswith("Seccomp:")]
        try:
            namespace = os.readlink(f"/proc/{process.pid}/ns/pid")
        except OSError:  # the sandbox keeps even its own user out
            namespace = "hidden"
        found.append([command, filters[0], namespace])
said = [str(warning.message) for warning in caught if "sandbox" in str(warning.message)]
own = os.readlink("/proc/self/ns/pid")
print(json.dumps({"uid": os.geteuid(), "reward": reward, "found": found, "said": said, "own": own}))
"""


def as_ordinary_user(home):
    """What the script above finds as a user other than root, which it is already if the tests are
    not run by root."""
    command = [sys.executable, "-c", AS_ANOTHER_USER]
    if os.geteuid() == 0:
        # The tests' Python may lie where only root may look: one right goes along, to read.
        right = "+dac_read_search"
        become = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        command = [*become, "--inh-caps", right, "--ambient-caps", right, *command]
        shutil.chown(home, int(NOBODY), int(NOBODY))
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["uid"] != 0
    assert found["reward"] == 1.0
    return found


def has_namespaces():
    """Whether this system lets an ordinary user have namespaces."""
    become = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    command = [
        *(become if os.geteuid() == 0 else ()),
        "unshare",
        "--user",
        "--pid",
        "--fork",
        "true",
    ]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.fixture
def home():
    """A folder that another user may use as a home."""
    folder = Path("/tmp") / f"home-of-another-{os.getpid()}"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def renderers(found):
    return [each for each in found["found"] if "--type=renderer" in each[0]]


def test_as_a_user_other_than_root_chromium_keeps_its_sandbox_or_says_that_it_cannot(home):
    found = as_ordinary_user(home)
    assert renderers(found)
    without = [each[0] for each in found["found"] if "--no-sandbox" in each[0]]
    if not has_namespaces():
        assert found["said"] == [WITHOUT_SANDBOX]
        return
    assert found["said"] == []
    assert without == []
    for command, filters, namespace in renderers(found):
        assert filters == "2", command  # a filter of system calls
        assert namespace != found["own"], command


WITHOUT_NAMESPACES = """#!/bin/sh
case " $* " in *" --no-sandbox "*) exec CHROMIUM "$@" ;; esac
echo "No usable sandbox!" >&2
exit 1
"""


def test_where_the_system_gives_no_namespaces_chromium_runs_and_says_so(home, monkeypatch):
    chromium = home / "chromium"
    chromium.write_text(WITHOUT_NAMESPACES.replace("CHROMIUM", find_chromium()))
    chromium.chmod(0o755)
    monkeypatch.setenv("COURSE_CHROMIUM", str(chromium))
    found = as_ordinary_user(home)
    assert found["said"] == [WITHOUT_SANDBOX]
    assert renderers(found)
