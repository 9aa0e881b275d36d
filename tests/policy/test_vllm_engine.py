"""What is set before vLLM starts."""

import os
import socket
import subprocess
import sys

import pytest

from helpers.policy.vllm_engine import prepare_vllm


@pytest.fixture(autouse=True)
def no_port_chosen(monkeypatch):
    for name in ("MASTER_PORT", "MASTER_PORT_CHOSEN"):
        monkeypatch.setenv(name, "")  # so that what the test sets is taken back
        monkeypatch.delenv(name)


def port_of_a_process_that_is_started_here():
    code = "import os; from helpers.policy.vllm_engine import prepare_vllm; prepare_vllm();"
    code += "print(os.environ['MASTER_PORT'])"
    command = [sys.executable, "-c", code]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_two_runs_that_start_together_do_not_meet_at_one_port(monkeypatch):
    prepare_vllm()
    first = int(os.environ["MASTER_PORT"])
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", first))
        busy.listen()
        monkeypatch.delenv("MASTER_PORT")
        prepare_vllm()
        assert int(os.environ["MASTER_PORT"]) != first


def test_a_process_keeps_its_port_and_one_that_it_starts_has_another():
    prepare_vllm()
    first = int(os.environ["MASTER_PORT"])
    prepare_vllm()
    assert int(os.environ["MASTER_PORT"]) == first
    with socket.socket() as busy:  # as a trainer of this process does
        busy.bind(("127.0.0.1", first))
        busy.listen()
        assert port_of_a_process_that_is_started_here() != first


def test_the_system_gives_no_connection_a_port_that_was_chosen():
    prepare_vllm()
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        first, last = map(int, file.read().split())
    assert not first <= int(os.environ["MASTER_PORT"]) <= last


def test_a_port_that_was_chosen_stays(monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "29777")
    prepare_vllm()
    assert os.environ["MASTER_PORT"] == "29777"
    assert port_of_a_process_that_is_started_here() == 29777
