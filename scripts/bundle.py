"""Write everything that `make course` needs into one folder, for a machine without a network.

    make bundle                                     into course-bundle/ in the project
    make bundle OUT=/media/stick/course-bundle      onto a stick
    COURSE_DEVICE=gpu make bundle                   for a machine with a GPU, also on one without

It holds what .venv holds, so run it where the set-up went well, on a system like the one it is for.
Lay the folder into the project there, or beside it, or name it with BUNDLE=; `make course` then
asks no network. deploy/bundle/README.md says what the other machine still has to have.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from helpers.browser.chromium import BUNDLED, find_chromium
from helpers.command_line import run
from helpers.policy.at_hand import can_be_had
from helpers.policy.loading import comes_from_the_hub, policy_path
from helpers.settings.errors import CourseError
from helpers.settings.paths import ROOT
from helpers.settings.profiles import PROFILES
from scripts import setup

PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"  # torch's CPU builds, where PyPI is alone
SEEDS = ("pip", "setuptools", "wheel")  # what `uv venv --seed` puts into a new environment
CHROMIUM = "chromium.tar.gz"
FONTS = Path("/usr/share/fonts")
# What every Linux has, and what has to be of one piece with its kernel and its loader.
OF_THE_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[\w-]*)\.so")
# Chromium opens these by name: no program says that it is linked to them.
OPENED_BY_NAME = ("libsoftokn3", "libfreebl3", "libfreeblpriv3", "libnssckbi", "libnssdbm3")

START = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/program/NAME" "$@"
"""
FONTS_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""


class BundleError(CourseError):
    """A bundle cannot be made; the message is one sentence with the next step."""


def call(command: Sequence[str | Path], **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command; returns what it printed and its exit status."""
    words = [str(word) for word in command]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True)


# Wheels


def installed_packages() -> list[str]:
    """ "name==version" of all that .venv holds, with what makes an environment and the set-up's uv.

    The course itself is not among them: it is imported from its folder.
    """
    freeze = call([sys.executable, "-m", "pip", "list", "--format=freeze"])
    if freeze.returncode:
        raise BundleError(
            f"pip cannot list .venv ({freeze.stderr.strip()[-200:]}): see make doctor."
        )
    found = [line for line in freeze.stdout.splitlines() if re.match(r"^[\w.-]+==", line)]
    names = {line.partition("==")[0].lower() for line in found}
    return sorted({*found, setup.UV_PIN}) + [name for name in SEEDS if name not in names]


def collect_wheels(packages: Sequence[str], folder: Path) -> None:
    """A wheel of each package into ``folder``, from wherever pip finds it.

    What is published as source alone is built here. Raises `BundleError`.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listing:
        listing.write("\n".join(packages) + "\n")
        listing.flush()
        wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder]
        command = [*wheel, "-r", listing.name]
        done = call(command)
        if done.returncode:  # torch's CPU build, where no mirror has it
            done = call([*command, "--extra-index-url", PYTORCH_INDEX])
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        raise BundleError(f"Not every wheel can be had ({said}): check the network.")


# Chromium


def linked_libraries(program: Path) -> list[Path]:
    """The libraries that a program is linked to and that not every Linux has."""
    listing = call(["ldd", program]).stdout
    paths = [Path(path) for path in re.findall(r"=> (/\S+)", listing)]
    return [path for path in paths if not OF_THE_SYSTEM.match(path.name)]


def libraries_opened_by_name(linked: Sequence[Path]) -> Iterator[Path]:
    """Those of `OPENED_BY_NAME` that lie beside a linked library."""
    for folder in {path.parent for path in linked}:
        for name in OPENED_BY_NAME:
            for place in (folder, folder / "nss"):
                if (place / f"{name}.so").exists():
                    yield place / f"{name}.so"


def program_of(chromium: Path) -> Path:
    """The program itself, where the path on the PATH is a script that starts it.

    Debian's script starts the program of its own name in /usr/lib/chromium.
    """
    real = chromium.resolve()
    with real.open("rb") as file:
        is_program = file.read(4) == b"\x7fELF"
    if is_program:
        return real
    debian = Path("/usr/lib/chromium") / chromium.name
    if debian.is_file():
        return debian
    raise BundleError(
        f"{chromium} is a script of which the program is not known: name the program with "
        "COURSE_CHROMIUM, or let `playwright install chromium` bring one."
    )


def pack_chromium(program: Path, archive: Path) -> None:
    """Chromium with its libraries, its fonts and a script that starts it with them."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "lib").mkdir()
        shutil.copytree(program.parent, folder / "program", symlinks=False)
        linked = linked_libraries(program)
        for library in [*linked, *libraries_opened_by_name(linked)]:
            shutil.copy(library, folder / "lib" / library.name)
        if FONTS.is_dir():
            skip = shutil.ignore_patterns("*.pcf*", "*.pfb")  # bitmaps, which no page asks for
            shutil.copytree(FONTS, folder / "fonts", ignore=skip, ignore_dangling_symlinks=True)
        (folder / "fonts.conf").write_text(FONTS_CONF)
        start = folder / "chromium"
        start.write_text(START.replace("NAME", program.name))
        start.chmod(0o755)
        write_tar(folder, archive)


def write_tar(folder: Path, archive: Path) -> None:
    """The content of a folder as one file, compressed where its name ends in .gz.

    A stick need not know links, or which files are programs: an archive does.
    """
    how: Any = {"mode": "w:gz", "compresslevel": 1} if archive.suffix == ".gz" else {"mode": "w"}
    with tarfile.open(archive, **how) as tar:
        tar.add(folder, arcname=".")


def pack_libnuma(folder: Path) -> None:
    """The one library of the system that vLLM's CPU kernels are linked to, where it is here."""
    cached = call(["ldconfig", "-p"], PATH=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin").stdout
    found = re.search(rf"{re.escape(setup.LIBNUMA)} .*=> (/\S+)", cached)
    if found:
        shutil.copy(found[1], folder / setup.LIBNUMA)


# Weights


def policies_for(device: str) -> list[str]:
    """The policies that `make course` loads on such a machine and that no package carries."""
    names = ["smollm2-135m"]
    if device == "gpu":
        names.append(PROFILES["h100"].policy)
    return [name for name in dict.fromkeys(names) if comes_from_the_hub(name)]


def pack_policy(name: str, folder: Path) -> None:
    """The Hub's cache of a policy as an archive in ``folder``. Raises `BundleError`."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.file_download import repo_folder_name

    hub_id = policy_path(name)
    if not can_be_had(name):
        raise BundleError(
            f"The weights of {name} ({hub_id}) are not on this machine, and the Hub does not hand "
            "them out: check the name and the network."
        )
    snapshot_download(hub_id)
    cached = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=hub_id, repo_type="model")
    folder.mkdir(exist_ok=True)
    write_tar(cached, folder / f"{cached.name}.tar")


def pack_policies(named: Sequence[str], device: str, folder: Path) -> list[str]:
    """Those that were named, which must be had, and those of the course, of which a sentence says
    what could not be had. Returns the sentences."""
    for name in named:
        pack_policy(name, folder)
    left_out = []
    for name in policies_for(device):
        if name in named:
            continue
        try:
            pack_policy(name, folder)
        except BundleError:
            left_out.append(f"without {name}, which the Hub does not hand out here.")
    return left_out


# All of it


def write_manifest(folder: Path, device: str, left_out: str) -> None:
    """What scripts/setup.py asks of the folder before it takes anything from it."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    manifest: dict[str, Any] = {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "device": device,
        "pins": setup.pins_hash(),
        "left_out": left_out,
        "files": {str(path.relative_to(folder)): path.stat().st_size for path in files},
    }
    (folder / setup.MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def write_bundle(folder: Path, policies: Sequence[str]) -> None:
    """Fill ``folder``, which is emptied first if it is a bundle."""
    stamp = setup.read_stamp()
    (folder / "wheels").mkdir(parents=True)
    packages = installed_packages()
    (folder / "requirements.txt").write_text("\n".join(packages) + "\n")
    with setup.step("wheels", f"of {len(packages)} packages"):
        collect_wheels(packages, folder / "wheels")
    pack_libnuma(folder)
    chromium = Path(find_chromium())
    with setup.step("chromium", str(chromium)):
        if chromium == BUNDLED:  # it came from a bundle itself
            write_tar(chromium.parent, folder / CHROMIUM)
        else:
            pack_chromium(program_of(chromium), folder / CHROMIUM)
    with setup.step("weights", "of the policies"):
        remarks = pack_policies(policies, stamp["device"], folder / "hub")
    for remark in remarks:
        setup.note(remark)
    write_manifest(folder, stamp["device"], stamp.get("left_out", ""))


def make_room(folder: Path) -> None:
    """Empty a folder that is a bundle; raises `BundleError` for one that holds something else."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not (folder / setup.MANIFEST).is_file() and not (folder / "wheels").is_dir():
        raise BundleError(f"{folder} holds something else than a bundle: name another folder.")
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def main(
    output: Annotated[Path, typer.Option(help="the folder to write")] = ROOT / setup.BUNDLE_NAME,
    policy: Annotated[
        list[str] | None, typer.Option(help="a policy of the Hub to take along; may be repeated")
    ] = None,
) -> None:
    """Write everything that `make course` needs into one folder."""
    if not setup.LINUX:
        raise BundleError("A bundle is made on Linux, for Linux: its Chromium and wheels are.")
    if not setup.read_stamp():
        raise BundleError("Nothing is set up here that could be packed: run `make setup` first.")
    started = time.monotonic()
    make_room(output)
    print(f"Writing {output}", flush=True)
    write_bundle(output, policy or [])
    size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    print(f"{size / 1e9:.2f} GB in {time.monotonic() - started:.0f} s.", flush=True)


if __name__ == "__main__":
    sys.exit(run(main))
