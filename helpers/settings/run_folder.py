"""A folder belongs to one run at a time: the second one is told which process writes there."""

import atexit
import errno
import fcntl
import json
import os
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.settings.files import (
    RunFileError,
    is_first_process,
    read_object,
    write_json,
    writing,
)

RUN = "run.json"  # what the run in a folder is about


@dataclass(frozen=True)
class _Lock:
    """A lock file that this process has open."""

    path: Path
    file: int
    """Its descriptor."""
    process: int

    @classmethod
    def open(cls, path: Path) -> "_Lock":
        """Open the file; make it where there is none."""
        return cls(path, os.open(path, os.O_RDWR | os.O_CREAT, 0o666), os.getpid())

    def is_in_place(self) -> bool:
        """Whether the path still leads to the file that is open."""
        try:
            return os.path.samestat(os.fstat(self.file), self.path.stat())
        except FileNotFoundError:
            return False


_locks: dict[Path, _Lock] = {}  # by folder, what this process holds


def hold_folder(folder: Path | str) -> None:
    """Make the folder, and keep it for this process until `release_folder` or the process's end.

    A process that holds it already may call this again. Raises `RunFileError` where another
    process holds it, or where nothing can be written. Of several processes that share a run the
    first one holds the folder for all.
    """
    if not is_first_process():
        return
    folder = Path(folder)
    _check_writable(folder)
    folder = folder.resolve()
    if folder not in _locks:
        lock = _lock(folder)
        if lock is not None:
            _locks[folder] = lock
            atexit.register(release_folder, folder)


def release_folder(folder: Path | str) -> None:
    """Let others write into a folder that this process holds; nothing happens where it does not."""
    lock = _locks.pop(Path(folder).resolve(), None)
    if lock is not None and lock.process == os.getpid():  # not a fork of the process that holds it
        lock.path.unlink(missing_ok=True)
        os.close(lock.file)


def hold_to_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write into a folder what the run in it is about, so that the same command can go on with it.

    Raises `RunFileError` where the folder holds a run with other settings.
    """
    path = folder / RUN
    there = read_object(path)
    wanted = json.loads(json.dumps(settings))
    if there is not None and there != wanted:
        differ = ", ".join(key for key in wanted if there.get(key) != wanted[key])
        raise RunFileError(
            f"{folder} holds a run with other settings ({differ}): choose another folder with "
            "--output, or remove it."
        )
    write_json(path, wanted)


def _check_writable(folder: Path) -> None:
    """Make the folder and write something there that is gone again at once."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()


def _lock(folder: Path) -> _Lock | None:
    """Lock the folder and write down who did; None where the file system has no locks."""
    while True:
        lock = _open(folder)
        try:
            # This kind of lock is the process's own: a killed one leaves none, nor do its children.
            fcntl.lockf(lock.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(lock.file, 200, 0).decode(errors="replace") or "another process"
            os.close(lock.file)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                return None
            raise RunFileError(
                f"{folder} belongs to a run of {holder}: wait until it ends, stop it (a notebook "
                "holds it until its kernel is restarted), or choose another folder."
            ) from error
        if lock.is_in_place():
            with writing(lock.path):
                os.ftruncate(lock.file, 0)
                os.pwrite(lock.file, _this_process().encode(), 0)
            return lock
        os.close(lock.file)  # who held it has deleted it since it was opened here


def _open(folder: Path) -> _Lock:
    """The lock file: beside the folder, so that it outlives a folder that somebody deletes, and in
    it where nothing can be written beside it."""
    name = f".{folder.name}.lock"
    try:
        return _Lock.open(folder.parent / name)
    except OSError:
        with writing(folder):
            return _Lock.open(folder / name)


def _this_process() -> str:
    """What others are told about this process."""
    kind = "a notebook" if "ipykernel" in sys.modules else Path(sys.argv[0]).name
    return f"process {os.getpid()} on {socket.gethostname()} ({kind})"
