"""The commands for readers in mainland China do what the page says: the course asks the address
that was set. Whether a mirror answers is not asked: the tests run offline.
"""

import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from documents import CODE_BLOCK, read, sections
from patience import PATIENCE

from helpers.settings.known_policies import POLICIES
from helpers.settings.paths import ROOT
from helpers.settings.profiles import PROFILES

pytestmark = pytest.mark.docs

# Without a bundle, which would forbid every question.
SETUP = "from scripts import setup; setup.find_bundle = lambda: None; "
# /etc/apt/sources.list.d/ubuntu.sources of Ubuntu 24.04.
UBUNTU_SOURCES = """Types: deb
URIs: http://cn.archive.ubuntu.com/ubuntu/
Suites: noble noble-updates noble-backports
Components: main restricted universe multiverse

Types: deb
URIs: http://security.ubuntu.com/ubuntu/
Suites: noble-security
Components: main restricted universe multiverse
"""


def commands(name):
    """The lines of the blocks of the page's section on mainland China."""
    text = read(name)
    heading = {"docs/troubleshooting.md": "In mainland China"}.get(name, "在中国大陆使用")
    section = text.partition(f"\n## {heading}\n")[2]
    assert section
    blocks = [block.strip("`\n") for block in CODE_BLOCK.findall(section)]
    return "\n".join(blocks).splitlines()


@pytest.fixture
def lines():
    return commands("docs/troubleshooting.md")


def line_with(word, lines):
    """The one command that has a word."""
    (found,) = [line for line in lines if word in line]
    return found


@pytest.fixture
def environment(tmp_path):
    """The variables of somebody who has configured nothing yet."""
    ours = ("PIP_", "UV_", "HF_", "COURSE_", "PLAYWRIGHT_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "COURSE_APT": "0"}


class Asked(BaseHTTPRequestHandler):
    """A mirror that has nothing and remembers what it was asked for."""

    def do_GET(self):
        self.server.paths.append(self.path)
        self.send_error(404)

    do_HEAD = do_GET

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def mirror():
    """A mirror on this machine: its ``url`` and the ``paths`` that it was asked for."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    server.paths = []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def run_python(code, environment, **variables):
    """What a Python in the repository prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, **variables},
        text=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_languages_have_the_same_commands(lines):
    assert len(lines) == 8
    assert commands("docs/zh/troubleshooting.md") == lines
    assert len(sections(read("docs/zh/troubleshooting.md"))) > 10


def test_indexes_that_pip_is_told_of_reach_uv(lines, environment):
    told = [line for line in lines if " -m pip config set " in line]
    assert len(told) == 2
    for line in told:
        arguments = line.removeprefix("python3 ").split()
        subprocess.run(
            [sys.executable, *arguments], env=environment, check=True, capture_output=True
        )
    options = run_python(SETUP + "print(*setup.pip_indexes())", environment)
    index, wheels = (line.split()[-1] for line in told)
    assert f"--index-url {index}" in options
    assert f"--find-links {wheels}" in options


def test_chromium_is_asked_for_at_the_host_that_was_set(lines, environment, mirror, tmp_path):
    variable, address = line_with("PLAYWRIGHT", lines).split()[0].split("=")
    path = re.fullmatch(r"https://[^/]+(/.+)", address)[1]
    code = SETUP + "setup.PYTHON = setup.sys.executable; print(repr(setup.download_chromium()))"
    browsers = {"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "browsers")}
    found = run_python(code, environment, **browsers, **{variable: mirror.url + path})
    assert found == "''\n"  # this mirror has none
    assert mirror.paths
    assert all(asked.startswith(f"{path}/builds/chromium/") for asked in mirror.paths)


def test_weights_are_asked_for_at_the_endpoint_that_was_set(lines, environment, mirror):
    variable = line_with("HF_ENDPOINT", lines).split("=")[0]
    hub_id = POLICIES[PROFILES["t4"].policy].hub_id
    code = f"from helpers.policy.hub import hub_answers; print(hub_answers({hub_id!r}))"
    assert run_python(code, environment, **{variable: mirror.url}) == "False\n"
    assert any(asked.startswith(f"/{hub_id}/resolve/") for asked in mirror.paths)


def test_the_packaged_policy_needs_no_hub(lines, environment, mirror):
    named = line_with("COURSE_POLICY", lines).split()[0].split("=")[1]
    code = f"from helpers.policy.at_hand import can_be_had; print(can_be_had({named!r}))"
    assert run_python(code, environment, HF_ENDPOINT=mirror.url) == "True\n"
    assert mirror.paths == []


def test_ubuntus_sources_lead_to_the_mirror(lines, tmp_path):
    words = line_with("sed -i", lines).split()
    assert words[-1] == "/etc/apt/sources.list.d/ubuntu.sources"
    script = words[-2].strip("'")
    sources = tmp_path / "ubuntu.sources"
    sources.write_text(UBUNTU_SOURCES)
    subprocess.run(["sed", "-i", script, sources], check=True)
    changed = sources.read_text()
    assert "URIs: http://mirrors.tuna.tsinghua.edu.cn/ubuntu/\n" in changed
    assert "URIs: http://security.ubuntu.com/ubuntu/\n" in changed
