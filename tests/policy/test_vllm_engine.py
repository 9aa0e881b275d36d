"""What is set before vLLM starts."""

import os
import socket

from helpers.policy.vllm_engine import prepare_vllm


def test_two_runs_that_start_together_do_not_meet_at_one_port(monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "")
    monkeypatch.delenv("MASTER_PORT")
    prepare_vllm()
    first = int(os.environ["MASTER_PORT"])
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", first))
        busy.listen()
        monkeypatch.delenv("MASTER_PORT")
        prepare_vllm()
        assert int(os.environ["MASTER_PORT"]) != first


def test_a_port_that_was_chosen_stays(monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "29777")
    prepare_vllm()
    assert os.environ["MASTER_PORT"] == "29777"
