"""What is set before vLLM starts, and what is left of it."""

import os
import socket

import pytest

from helpers.policy.vllm_engine import own_rendezvous

LEFT_BY_TRL = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in (*LEFT_BY_TRL, "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # so that what the test sets is taken back
        monkeypatch.delenv(name)


def test_two_runs_that_start_together_do_not_meet_at_one_port():
    with own_rendezvous():
        first = int(os.environ["MASTER_PORT"])
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", first))
        busy.listen()
        with own_rendezvous():
            assert int(os.environ["MASTER_PORT"]) != first


def test_the_system_gives_no_connection_a_port_that_was_chosen():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        first, last = map(int, file.read().split())
    with own_rendezvous():
        assert not first <= int(os.environ["MASTER_PORT"]) <= last


def test_a_port_that_was_chosen_stays(monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "29777")
    with own_rendezvous():
        assert os.environ["MASTER_PORT"] == "29777"
    assert os.environ["MASTER_PORT"] == "29777"


@pytest.mark.parametrize("given", [{}, {"RANK": "3", "WORLD_SIZE": "4", "MASTER_PORT": "29777"}])
def test_what_trl_sets_is_taken_back_also_where_it_fails(monkeypatch, given):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with pytest.raises(RuntimeError), own_rendezvous():
        os.environ.update(LEFT_BY_TRL)
        raise RuntimeError
    assert dict(os.environ) == before
