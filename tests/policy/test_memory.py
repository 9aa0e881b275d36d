"""Memory that a process frees: kept where a policy computes on a CPU, handed back when asked."""

import sys

import pytest
from in_python import run_script

from helpers.policy import memory

MB_64 = 16 * 1024 * 1024  # numbers of four bytes

# How often the system has to find memory for a tensor, page by page, and how much is in use.
FAULTS = f"""
import resource, psutil, torch
from helpers.policy.memory import hand_back_freed_memory, keep_freed_memory

torch.set_num_threads(1)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros({MB_64})
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def least_faults():  # an aligned tensor may miss the place of the last one by some bytes
    return min(faults() for _ in range(40))

def used():
    return psutil.Process().memory_info().rss
"""

glibc_only = pytest.mark.skipif(
    memory._of_glibc("mallopt") is None, reason="the C library of this machine is not glibc"
)


@glibc_only
def test_a_large_tensor_takes_the_place_of_the_last_one():
    code = """
assert least_faults() > 10_000  # pages of 4 KB
keep_freed_memory()
assert least_faults() < 100
"""
    run_script(FAULTS + code)


@glibc_only
def test_what_is_kept_is_handed_back():
    code = """
keep_freed_memory()
large, small = torch.ones(64 * 1024 * 1024), [torch.ones(8) for _ in range(100)]
del large
kept = used()
hand_back_freed_memory()
assert used() < kept - 200e6
"""
    run_script(FAULTS + code)


@glibc_only
def test_a_policy_on_a_cpu_keeps_what_it_frees(policy):
    code = f"""
from helpers.policy.loading import load_policy

load_policy({policy.name!r})
assert least_faults() < 100
"""
    run_script(FAULTS + code)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_elsewhere_nothing_is_done(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)
    assert memory._of_glibc("mallopt") is None
    memory.keep_freed_memory()
    memory.hand_back_freed_memory()


def test_a_c_library_without_it_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    memory.keep_freed_memory()
    memory.hand_back_freed_memory()
