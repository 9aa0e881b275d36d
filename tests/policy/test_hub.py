"""The Hub that does not answer: what is taken instead, and in which words."""

import os
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants
from patience import PATIENCE

from helpers.course.banner import setup
from helpers.policy.at_hand import can_be_had, with_policy_at_hand
from helpers.policy.hub import hub_answers
from helpers.policy.loading import PolicyError, load_policy
from helpers.policy.vision import load_with_processor
from helpers.settings.known_policies import POLICIES
from helpers.settings.paths import ROOT
from helpers.settings.profiles import PROFILES

NAME = "qwen3-0.6b"
HUB_ID = POLICIES[NAME].hub_id
GPU = replace(PROFILES["h100"], policy=NAME)
COMMIT = "0" * 40
CONFIG = b"{}"


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache of the Hub, and no policy that somebody named."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("COURSE_POLICY", raising=False)
    return tmp_path / "hub"


def place_hub_at(url, monkeypatch):
    """Let huggingface_hub take this address for the Hub's."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


def closed_port():
    """An address of this machine at which nobody answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def no_hub(cache, monkeypatch):
    """A machine that does not reach the Hub."""
    place_hub_at(closed_port(), monkeypatch)


class OneModel(BaseHTTPRequestHandler):
    """A Hub with one file of one model."""

    def do_GET(self):
        known = self.path == f"/{HUB_ID}/resolve/main/config.json"
        self.send_response(200 if known else 404)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", '"etag"')
        self.send_header("Content-Length", str(len(CONFIG) if known else 0))
        self.end_headers()
        if known and self.command == "GET":
            self.wfile.write(CONFIG)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(cache, monkeypatch):
    """A Hub on this machine that has `HUB_ID` and nothing else."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), OneModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place_hub_at(f"http://127.0.0.1:{server.server_port}", monkeypatch)
    yield
    server.shutdown()
    server.server_close()


def keep_weights(cache, *files):
    """Lay files of `HUB_ID` into the Hub's cache, as a download leaves them."""
    repository = cache / f"models--{HUB_ID.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    index = '{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}'
    for file in files:
        (snapshot / file).write_text(index if file.endswith("index.json") else "{}")


def test_without_a_hub_the_default_policy_is_the_embedded_one_and_says_so(no_hub, capsys):
    assert with_policy_at_hand(GPU) == replace(GPU, policy="smollm2-135m")
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 1
    assert NAME in said[0]
    assert "the policy is smollm2-135m, which needs no Hub." in said[0]


def test_with_a_hub_the_default_policy_stays(hub, capsys):
    assert with_policy_at_hand(GPU) is GPU
    assert capsys.readouterr().out == ""
    assert not hub_answers("nobody/has-this")


def test_a_policy_that_somebody_named_stays_and_cannot_be_loaded(no_hub, monkeypatch):
    monkeypatch.setenv("COURSE_POLICY", NAME)
    assert with_policy_at_hand(GPU) is GPU
    with pytest.raises(
        PolicyError, match="could not be loaded: .*; check the name and the network"
    ):
        load_policy(NAME)


@pytest.mark.parametrize(
    ("files", "whole"),
    [
        (["config.json", "model.safetensors"], True),
        (["config.json"], False),
        (["config.json", "model.safetensors.index.json", "model-1.safetensors"], False),
        (
            [
                "config.json",
                "model.safetensors.index.json",
                "model-1.safetensors",
                "model-2.safetensors",
            ],
            True,
        ),
    ],
)
def test_weights_in_the_cache_need_no_hub(no_hub, cache, files, whole):
    keep_weights(cache, *files)
    assert can_be_had(NAME) == whole


def test_what_never_comes_from_the_hub_does_not_ask_it(no_hub, tmp_path):
    assert can_be_had("smollm2-135m")
    assert can_be_had(str(tmp_path))
    with pytest.raises(PolicyError, match="There is no policy"):
        can_be_had("smollm9")


def test_the_banner_of_a_notebook_says_which_policy_it_goes_on_with(no_hub, monkeypatch, capsys):
    monkeypatch.setattr("helpers.course.banner.get_profile", lambda: GPU)
    assert setup("05").policy == "smollm2-135m"
    said = capsys.readouterr().out
    assert f"The weights of {NAME} are not on this machine" in said
    assert "· policy smollm2-135m (" in said


def test_a_policy_with_eyes_that_was_asked_for_is_not_replaced(no_hub):
    with pytest.raises(PolicyError, match="could not be loaded: .* the Hub does not hand them out"):
        load_with_processor("qwen3-vl-2b", GPU)


BARS = """
import sys
from tqdm import tqdm, trange
from tqdm.auto import tqdm as auto
from tqdm.asyncio import tqdm as asynchronous
from huggingface_hub.utils import tqdm as of_the_hub
from transformers.utils.logging import tqdm as of_transformers

def draw():
    for bar in (tqdm, auto, asynchronous, of_the_hub, of_transformers):
        list(bar(range(3), desc="Capturing CUDA graphs", disable=False, mininterval=0))

if "before" in sys.argv:
    draw()
from helpers.course.banner import setup
from helpers.output import Progress
setup("05")
print("banner")
draw()
from datasets import Dataset
Dataset.from_list([{"a": 1}] * 4).map(lambda row: row)
from helpers.policy.loading import load_policy
load_policy()
with Progress(2, "updates") as progress:
    progress.reach(2)
"""


@pytest.mark.slow  # two processes that import all libraries
def test_no_bar_of_another_library_is_drawn_and_the_courses_own_is():
    command = [sys.executable, "-c", BARS]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COURSE_POLICY": "smollm2-135m"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    after = done.stdout.partition("banner\n")[2]
    assert after.splitlines() == ["updates 2 of 2 · 0:00"]
    # The bars are real ones: without the banner they are drawn.
    drawn = subprocess.run(
        [*command, "before"], env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert drawn.stderr.count("Capturing CUDA graphs:   0%") == 5
