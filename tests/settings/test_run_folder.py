"""A folder belongs to one run at a time, files are written whole, and a refusal is one sentence."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys

import pytest
from full_disk import largest_file, no_rights

from helpers.settings.files import RunFileError, new_folder, set_aside, write_whole
from helpers.settings.paths import ROOT
from helpers.settings.run_folder import hold_folder, release_folder

HOLDER = """
import os, sys, time
from helpers.settings.run_folder import hold_folder, release_folder
hold_folder(sys.argv[1])
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print("holds it", flush=True)
sys.stdin.readline()
release_folder(sys.argv[1])
print("released it", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def holder():
    """A function that starts a process that holds a folder, and returns it."""
    started = []

    def start(folder, *words):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder), *words],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout.readline() == "holds it\n"
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def refusal(folder):
    """The sentence that says why a folder cannot be held."""
    with pytest.raises(RunFileError) as error:
        hold_folder(folder)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert str(folder) in sentence
    return sentence


def test_a_second_run_is_refused_with_folder_and_process(tmp_path, holder):
    process = holder(tmp_path / "run")
    sentence = refusal(tmp_path / "run")
    assert f"belongs to a run of process {process.pid} on " in sentence
    assert "choose another folder" in sentence
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert f"process {process.pid} " in refusal_of_link(tmp_path / "link")
    hold_folder(tmp_path / "another")
    release_folder(tmp_path / "another")


def refusal_of_link(link):
    with pytest.raises(RunFileError) as error:
        hold_folder(link)
    return str(error.value)


def test_a_run_that_has_ended_leaves_the_folder_to_others(tmp_path, holder):
    process = holder(tmp_path / "run")
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "released it\n"
    hold_folder(tmp_path / "run")
    release_folder(tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # nothing of the lock is left
    assert list((tmp_path / "run").iterdir()) == []


def test_a_process_that_ends_without_a_word_leaves_no_lock(tmp_path):
    code = "import os, sys; from helpers.settings.run_folder import hold_folder\n"
    code += "hold_folder(sys.argv[1])\n"
    code += "if os.fork() == 0: sys.exit()\n"  # a fork's end is not that of the run
    code += "os.wait(); print(*sorted(os.listdir(sys.argv[2])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run"), str(tmp_path)],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stdout == ".run.lock run\n"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("words", [(), ("fork",)], ids=["alone", "with a child that lives on"])
def test_a_killed_run_leaves_the_folder_to_others(tmp_path, holder, words):
    process = holder(tmp_path / "run", *words)
    process.kill()
    process.wait()
    hold_folder(tmp_path / "run")
    release_folder(tmp_path / "run")


def test_a_folder_that_somebody_empties_still_belongs_to_its_run(tmp_path, holder):
    """As the first cell of a notebook does."""
    process = holder(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    assert f"process {process.pid} " in refusal(tmp_path / "run")


def test_the_same_process_may_begin_again(tmp_path):
    hold_folder(tmp_path / "run")
    hold_folder(tmp_path / "run")
    release_folder(tmp_path / "run")
    release_folder(tmp_path / "run")
    release_folder(tmp_path / "never held")


def test_of_several_processes_of_a_run_the_first_holds_the_folder(tmp_path, holder, monkeypatch):
    holder(tmp_path / "run")
    monkeypatch.setenv("RANK", "1")
    hold_folder(tmp_path / "run")


def test_where_nothing_can_be_written_beside_a_folder_it_is_held_all_the_same(tmp_path, holder):
    folder = tmp_path / "run"
    (tmp_path / ".run.lock").mkdir()  # in the way
    process = holder(folder)
    assert f"process {process.pid} " in refusal(folder)
    assert (folder / ".run.lock").exists()


# What the disk refuses


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "a file stands there: choose another folder" in refusal(tmp_path / "file")
    assert "a file stands in the place of a folder" in refusal(tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_in_which_nobody_may_write_is_one_sentence():
    with no_rights() as folder:
        for path in (folder, folder / "run"):
            assert "Permission denied" in refusal(path)
            assert "change who may write there" in refusal(path)


def test_a_full_disk_is_one_sentence(tmp_path):
    with largest_file(100):
        assert "File too large" in refusal(tmp_path)
    with pytest.raises(RunFileError, match=r"No space left on device\): make room on this disk"):
        (tmp_path / "metrics.csv.unfinished").symlink_to("/dev/full")
        write_whole(tmp_path / "metrics.csv", "a,b\n")


def test_a_file_that_cannot_be_written_keeps_its_old_content(tmp_path):
    path = tmp_path / "new" / "metrics.csv"
    write_whole(path, "old\n")
    with largest_file(100), pytest.raises(RunFileError, match="metrics.csv cannot be written"):
        write_whole(path, "new\n" * 100)
    assert path.read_text() == "old\n"
    assert [path.name for path in path.parent.iterdir()] == ["metrics.csv"]
    write_whole(path, "новое\r\n")
    assert path.read_bytes() == "новое\r\n".encode()


def test_a_reader_never_sees_half_a_file(tmp_path):
    """Another process reads all the time while the file changes between two contents."""
    path = tmp_path / "file"
    contents = ["a" * 200_000, "b" * 200_000]
    write_whole(path, contents[0])
    code = "import sys\nfor line in sys.stdin:\n print(len(set(open(sys.argv[1]).read())))"
    with subprocess.Popen(
        [sys.executable, "-uc", code, str(path)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as reader:
        reader.stdin.write("\n" * 200)
        reader.stdin.close()
        for i in range(60):
            write_whole(path, contents[i % 2])
        seen = reader.stdout.read().split()
    assert seen == ["1"] * 200


def test_a_new_folder_takes_the_old_ones_place_only_when_it_is_done(tmp_path):
    old = tmp_path / "policy"
    old.mkdir()
    (old / "weights").write_text("old")
    with pytest.raises(OSError, match="disk"), new_folder(old) as unfinished:
        unfinished.mkdir()
        (unfinished / "weights").write_text("ne")
        raise OSError("disk")
    assert (old / "weights").read_text() == "old"
    with new_folder(old) as unfinished:
        unfinished.mkdir()
        (unfinished / "config").write_text("new")
    assert [path.name for path in old.iterdir()] == ["config"]
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]


def test_what_is_set_aside_is_kept(tmp_path):
    asides = []
    for content in ("first", "second"):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "file").write_text(content)
        asides.append(set_aside(tmp_path / "run"))
    assert [path.name for path in asides] == ["damaged-run", "damaged-2-run"]
    assert [(path / "file").read_text() for path in asides] == ["first", "second"]
    assert not (tmp_path / "run").exists()
