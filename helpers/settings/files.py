"""Files that are written whole or not at all, and one sentence where the disk refuses them."""

import errno
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.settings.errors import CourseError

ANY_CHARACTER = "surrogatepass"  # a page may show half of a pair: it is written, and read back
UNFINISHED = ".unfinished"  # what the name of a file or folder ends with while it is written

_WHAT_TO_DO = {
    errno.ENOSPC: "make room on this disk, or choose a folder on another one",
    errno.EDQUOT: "make room on this disk, or choose a folder on another one",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "choose another folder",
    errno.EACCES: "choose another folder, or change who may write there",
    errno.EPERM: "choose another folder, or change who may write there",
    errno.EEXIST: "a file stands there: choose another folder",
    errno.ENOTDIR: "a file stands in the place of a folder: choose another folder",
    errno.EISDIR: "a folder stands in the place of a file: choose another folder",
}


class RunFileError(CourseError):
    """A file of a run cannot be read or written, or its folder belongs to another run."""


def cannot_write(path: Path | str, error: OSError) -> RunFileError:
    """The error that says in a sentence what the system has said about writing ``path``."""
    reason = error.strerror or str(error)
    advice = _WHAT_TO_DO.get(error.errno or 0, "choose another folder")
    return RunFileError(f"{path} cannot be written ({reason}): {advice}.")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn what the system refuses inside of the block into a `RunFileError` about ``path``."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error) from error


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one move: whoever reads it finds the old one or the new one, never half.

    Folders that are missing are made. Raises `RunFileError`; the old file then stays.
    """
    unfinished = path.with_name(path.name + UNFINISHED)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("wb") as file:
                file.write(text.encode("utf-8", ANY_CHARACTER))
                file.flush()
                os.fsync(file.fileno())  # or a crash could leave the new name on an empty file
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise


def write_json(path: Path, content: Any) -> None:
    """`write_whole` with ``content`` as JSON, one entry a line."""
    write_whole(path, json.dumps(content, indent=1) + "\n")


def read_object(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is no such file, or something else is in it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def copy_file(path: Path, target: Path) -> None:
    """Copy a file; folders that are missing are made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes the place of ``folder`` when the block has ended well.

    Until then, and where the block fails, the old one stays. Of several processes that share a run
    the first one makes the exchange.
    """
    unfinished = folder.with_name(folder.name + UNFINISHED)
    if not is_first_process():
        yield unfinished
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        yield unfinished
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            unfinished.replace(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def set_aside(path: Path) -> Path:
    """Give a damaged file or folder a name that nothing writes to; returns the new path."""
    names = itertools.chain(["damaged"], (f"damaged-{i}" for i in itertools.count(2)))
    free = (path.with_name(f"{name}-{path.name}") for name in names)
    aside = next(place for place in free if not place.exists())
    with writing(aside):
        path.replace(aside)
    return aside


def is_first_process() -> bool:
    """Whether this is the first of the processes of a run; ``accelerate launch`` counts them."""
    return os.environ.get("RANK", "0") == "0"
