"""The first call of each notebook: it prints what the notebook runs on, and returns the profile."""

import logging
import os
import platform
import warnings
from importlib.metadata import PackageNotFoundError, version

from helpers.output import hide_other_bars
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.language import say
from helpers.settings.machine import VLLM_PACKAGES, vllm_problem
from helpers.settings.profiles import Profile, get_profile


def setup(notebook: str, minutes: float | None = None) -> Profile:
    """Print versions, machine, profile and scale; return the `Profile`. Raises `ProfileError`.

    ``minutes``: what the notebook takes at demo scale on the machine named in its opening table.
    Where the weights of the profile's policy cannot be had, it prints so and takes the embedded
    ones.
    """
    _quieten()
    profile = with_policy_at_hand(get_profile())
    versions = [f"{name} {number}" for name, number in _versions().items()]
    name = say("Notebook {name}", name=notebook)
    print(" · ".join([name, f"Python {platform.python_version()}", *versions]))
    facts = [
        say("{cores} cores, {memory:.0f} GB", cores=os.cpu_count(), memory=profile.memory_gb),
        say("profile {name}, scale {scale}", name=profile.name, scale=profile.scale),
        say("policy {policy} ({dtype})", policy=profile.policy, dtype=profile.dtype),
        say("generator {generator}", generator=profile.generator),
    ]
    if minutes:
        facts.append(say("about {minutes:g} min at demo scale", minutes=minutes))
    print(" · ".join(facts))
    problem = vllm_problem()
    if profile.generator == "transformers" and problem:
        print(problem)
    return profile


def _quieten() -> None:
    """Keep bars and warnings that help no reader out of the outputs, and waiting threads off the
    cores.

    This comes before `get_profile`, which is the first to import torch: it reads the first two.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # the cores are for the browsers
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    warnings.filterwarnings("ignore", category=FutureWarning)
    logging.getLogger("vllm").setLevel(logging.ERROR)
    hide_other_bars()


def _versions() -> dict[str, str]:
    """Name -> installed version of what a notebook's numbers depend on; "-" where it is missing."""
    for_gpu, for_cpu = VLLM_PACKAGES
    found = {name: _version(name) for name in ("torch", "transformers", "trl", "openenv")}
    found["vllm"] = _version(for_gpu, for_cpu)
    found["browsergym"] = _version("browsergym-core")
    return found


def _version(*packages: str) -> str:
    """The version of the first package that is installed."""
    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return "-"
