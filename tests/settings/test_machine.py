"""What a result says of the machine that it was made on."""

import torch

from helpers.settings.machine import run_facts


def test_a_result_names_the_gpu_that_it_was_made_on(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    without = run_facts()["machine"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H200")
    assert run_facts()["machine"] == f"NVIDIA H200, {without}"
