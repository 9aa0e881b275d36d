"""A room: seats with tokens and shares of their own, a laptop that reports, cards, and what is
refused. A real server, reached as the laptops reach it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil
import pytest
from patience import PATIENCE

from helpers.browser import BrowserServerError, connect, start_browser_server
from helpers.browser.remote import RemoteServers
from helpers.command_line import run
from helpers.policy.vllm_engine import free_port
from helpers.settings.paths import ROOT
from scripts import doctor, ready, room

TOKENS = {"01": "token-of-one", "02": "token-of-two"}


@pytest.fixture(scope="module")
def teacher():
    """A room of two seats with two sessions each."""
    with start_browser_server(
        workers=1, sessions=4, seats=TOKENS, sessions_per_seat=2, timeout=PATIENCE
    ) as server:
        yield server


@pytest.fixture
def seat(teacher, monkeypatch):
    """What `start_browser_server` gives on the laptop of a seat."""

    def at(name):
        address = teacher.url.replace("://", f"://{name}:{TOKENS[name]}@")
        monkeypatch.setenv("COURSE_SERVERS", address)
        return start_browser_server(workers=2)

    return at


def test_a_seat_plays_on_the_browsers_of_the_room(seat, teacher):
    with seat("01") as server, server.client() as env:
        assert isinstance(server, RemoteServers)
        assert server.url == teacher.url
        first = env.reset("click-test", 0)
        assert env.step(f"click('{first.elements[-1].bid}')").reward == 1.0


def test_a_seat_gets_its_share_and_leaves_the_others_theirs(seat, capsys):
    with seat("01") as one, seat("02") as two:
        clients = one.clients(5)
        assert len(clients) == 2
        assert "Seat 01 has 2 browser sessions left, so 2 play, not 5." in capsys.readouterr().out
        with pytest.raises(BrowserServerError, match="all of its 2 browser sessions: close some"):
            one.client().reset("click-test", 0)
        assert two.client().reset("click-test", 0).goal
        clients[0].close()
        assert one.client().reset("click-test", 0).goal


def test_a_seats_notebook_kills_no_browser_of_the_room(seat, teacher, capsys):
    with seat("01") as server:
        before = teacher.stats()["workers"][0]
        server.kill_browsers()
        assert "none is killed" in capsys.readouterr().out
        assert server.client().reset("click-test", 0).goal
        after = teacher.stats()["workers"][0]
    assert (after["pid"], after["restarts"]) == (before["pid"], before["restarts"])


def test_the_teacher_sees_who_is_there_and_a_seat_only_itself(seat, teacher):
    with seat("02") as server:
        server.client().reset("click-test", 0)
        server.say("ready, checked in 1:03")
        own = server.stats()
        seats = teacher.stats()["seats"]
    assert (own["seat"], own["sessions_of_seat"], own["sessions_per_seat"]) == ("02", 1, 2)
    assert "seats" not in own
    assert seats["02"]["sessions"] == 1
    assert abs(seats["02"]["seen"] - time.time()) < 600
    shown = room.seats_table(teacher.stats())
    assert re.search(r"^02 .* ready, checked in 1:03$", shown, re.MULTILINE)
    assert "1 said that they are ready" in shown


def test_no_token_and_a_token_of_another_room_are_refused(teacher):
    for token in (None, "token-of-three", "token-of-on"):
        with pytest.raises(BrowserServerError, match="wants its token"):
            connect(teacher.url, token=token)


@pytest.mark.parametrize("address", ["192.0.2.1:8765", "ftp://a", "http://"])
def test_what_is_no_address_is_refused_in_a_sentence(monkeypatch, address):
    monkeypatch.setenv("COURSE_SERVERS", address)
    with pytest.raises(BrowserServerError, match="which is no address"):
        start_browser_server()


def test_a_server_of_ones_own_is_still_started_where_it_is_asked_for(monkeypatch):
    monkeypatch.setenv("COURSE_SERVERS", "http://127.0.0.1:9")
    with start_browser_server(workers=1, host="0.0.0.0", token="mine", timeout=PATIENCE) as server:
        assert server.stats()["sessions"] == 0


def open_room(folder, *options):
    """`make room` on a free port, as its own process; the process, its port and what it printed."""
    port = free_port()
    command = [sys.executable, "-m", "scripts.room", "--output", str(folder), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--address", "127.0.0.1", "--workers", "1", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(150, process.kill)
    guard.start()
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "seats were here" in line:
            break
    guard.cancel()
    return process, "".join(lines)


def comes_back(env):
    """Whether a lost server is started again by the room."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(BrowserServerError):
            return bool(env.reset("click-test", 0).goal)
        time.sleep(0.5)
    return False


def test_the_room_opens_prints_cards_and_opens_again_with_the_same_tokens(tmp_path):
    process, said = open_room(tmp_path, "--seats", "2", "--sessions", "1")
    try:
        line = re.search(r"COURSE_SERVERS=(http://01:(\w+)@127\.0\.0\.1:\d+) make lab", said)
        with RemoteServers([line[1]]) as laptop:
            env = laptop.client()
            assert env.reset("click-test", 0).goal
            lost = psutil.Process(process.pid).children()
            for server in lost:
                server.kill()
            psutil.wait_procs(lost)
            assert env.step("noop()").ended == "infrastructure_error"
            assert comes_back(env)
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 0
    assert "The room is closed" in rest
    cards = (tmp_path / "cards.html").read_text()
    assert cards.count('class="card"') == 2
    assert f"COURSE_SERVERS={line[1]} make ready" in cards
    assert tmp_path.stat().st_mode & 0o077 == 0
    tokens = json.loads((tmp_path / "seats.json").read_text())["seats"]
    again = room.read_room(tmp_path, 3)["seats"]
    assert {name: again[name] for name in tokens} == tokens
    assert len(set(again.values())) == 3


def test_a_file_of_tokens_that_is_none_is_named(tmp_path, capsys):
    (tmp_path / "seats.json").write_text("{}")
    assert run(room.main, ["--output", str(tmp_path)]) == 2
    assert "cannot be read as the tokens of a room: delete it" in capsys.readouterr().err


def test_more_seats_than_the_memory_holds_are_refused(capsys, tmp_path):
    arguments = ["--seats", "200", "--sessions", "64", "--output", str(tmp_path)]
    assert run(room.main, arguments) == 2
    assert "fewer SEATS, or fewer SESSIONS" in capsys.readouterr().err


def test_ready_tells_the_room_and_says_what_fails(seat, teacher, monkeypatch, capsys):
    def broken():
        raise doctor.CheckFailed("the disk is full: make room.")

    seat("01").close()
    server = doctor.CHECKS["server"]
    monkeypatch.setattr(ready, "CHECKS", {"server": server, "training": broken})
    assert ready.main() == 1
    printed = capsys.readouterr().out
    assert re.search(rf"ok +server +{teacher.url}, click-test says", printed)
    assert "FAIL training  the disk is full: make room." in printed
    assert "This machine is NOT ready: training" in printed
    assert teacher.stats()["seats"]["01"]["said"] == "NOT ready: training"
    monkeypatch.setattr(ready, "CHECKS", {"server": server})
    assert ready.main() == 0
    assert teacher.stats()["seats"]["01"]["said"].startswith("ready, checked in 0:")


def test_an_update_of_the_training_goes_through_on_the_rooms_browsers(seat, teacher):
    seat("02").close()
    before = teacher.stats()["episodes"]
    assert re.fullmatch(r"one update of \S+ in \d+:\d\d, \d+\.\d GB", ready.check_training())
    assert teacher.stats()["episodes"] > before
