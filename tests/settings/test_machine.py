"""What is found out about the machine, and what a result says of it."""

import pytest
import torch

from helpers.settings.machine import has_fast_bf16, run_facts


def test_a_result_names_the_gpu_that_it_was_made_on(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    without = run_facts()["machine"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H200")
    assert run_facts()["machine"] == f"NVIDIA H200, {without}"


@pytest.mark.parametrize(
    ("abilities", "fast"),
    [
        ({"avx2": True, "avx512_bf16": False, "amx_bf16": False}, False),
        ({"avx2": True, "avx512_bf16": True, "amx_bf16": False}, True),
        ({"avx2": True, "avx512_bf16": False, "amx_bf16": True}, True),
        ({"neon": True}, False),
    ],
)
def test_a_processor_has_fast_bf16_where_it_has_instructions_for_it(monkeypatch, abilities, fast):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: abilities)
    assert has_fast_bf16("cpu") == fast


def test_what_torch_says_of_this_processor_is_what_the_system_says():
    with open("/proc/cpuinfo") as file:
        flags = set(file.read().split())
    if "avx2" in flags:  # elsewhere the flags have other names
        assert has_fast_bf16("cpu") == bool({"avx512_bf16", "amx_bf16"} & flags)
