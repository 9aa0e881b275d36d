"""The task sets that results of others are about: which pages are played, and how long.

Tasks and seeds are those of BrowserGym's own package of experiments. Its table is read as a file:
importing the package would load what only its own runs need.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.tasks import TASKS, TEST_SEEDS, specs
from helpers.settings.errors import CourseError

TABLE = "experiments/benchmark/metadata/miniwob.csv"  # in the package browsergym
MISSING = "The package browsergym-experiments is not installed: run make setup."

# As `browsergym.experiments` draws the seeds of its benchmark "miniwob".
SEEDS_DRAWN_WITH = 42
SEED_MAX = 2 ^ 32  # it means a power, and says exclusive or: 34
BROWSERGYM_SEEDS = 5
BROWSERGYM_TURNS = 10

WEBGUM_EPISODES = 100
WEBGUM_TURNS = 24  # those who report on the set name no limit; no script needs more


class MissingSetError(CourseError):
    """A standard set cannot be read here."""


@dataclass(frozen=True)
class StandardSet:
    """Tasks, pages and turns by which results can be compared."""

    name: str
    about: str
    """What it is, in a sentence."""
    pages: tuple[EpisodeSpec, ...]
    turns: int | None
    """Of an episode; None: each task's own number."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks, in order."""
        return tuple(dict.fromkeys(page.task for page in self.pages))


@functools.cache
def task_table() -> tuple[dict[str, str], ...]:
    """BrowserGym's table of its 125 tasks, a row each, with ``task_name`` as the course writes it.

    Raises `MissingSetError` where the package is not installed.
    """
    path = resources.files("browsergym").joinpath(TABLE)
    if not path.is_file():
        raise MissingSetError(MISSING)
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return tuple(row | {"task_name": row["task_name"].removeprefix("miniwob.")} for row in rows)


def tasks_where(column: str = "", value: str = "") -> tuple[str, ...]:
    """The tasks whose row has a value in a column (``webgum_subset``: True or False,
    ``browsergym_split``: train or test); without a column all of them."""
    return tuple(row["task_name"] for row in task_table() if not column or row[column] == value)


def browsergym_pages() -> list[EpisodeSpec]:
    """The pages of BrowserGym's benchmark "miniwob", in its order: five seeds of each task.

    A seed may be drawn twice for a task; its page then counts twice.
    """
    draw = numpy.random.RandomState(SEEDS_DRAWN_WITH)
    return [
        EpisodeSpec(task, int(seed))
        for task in tasks_where()
        for seed in draw.randint(low=0, high=SEED_MAX, size=BROWSERGYM_SEEDS)
    ]


def _test_pages(tasks: Sequence[str], n: int) -> tuple[EpisodeSpec, ...]:
    return tuple(spec for task in tasks for spec in specs(task, TEST_SEEDS, n))


def _webgum56(n: int) -> StandardSet:
    return StandardSet(
        "webgum56",
        "the 56 tasks on which WebGUM and others report, 100 test pages of each",
        _test_pages(tasks_where("webgum_subset", "True"), n or WEBGUM_EPISODES),
        WEBGUM_TURNS,
    )


def _browsergym125(n: int) -> StandardSet:
    pages = browsergym_pages()
    if n:
        pages = [page for i, page in enumerate(pages) if i % BROWSERGYM_SEEDS < n]
    return StandardSet(
        "browsergym125",
        "BrowserGym's benchmark: 125 tasks, its own five seeds of each, ten turns",
        tuple(pages),
        BROWSERGYM_TURNS,
    )


def _browsergym63(n: int) -> StandardSet:
    held_out = set(tasks_where("browsergym_split", "test"))
    return StandardSet(
        "browsergym63",
        "BrowserGym's benchmark, the 63 tasks that it holds out from training",
        tuple(page for page in _browsergym125(n).pages if page.task in held_out),
        BROWSERGYM_TURNS,
    )


def _suite(n: int) -> StandardSet:
    return StandardSet(
        "suite",
        "the course's own fourteen tasks, 100 test pages of each, each with its own turns",
        _test_pages(tuple(TASKS), n or WEBGUM_EPISODES),
        None,
    )


SETS: dict[str, Callable[[int], StandardSet]] = {
    "webgum56": _webgum56,
    "browsergym125": _browsergym125,
    "browsergym63": _browsergym63,
    "suite": _suite,
}


def standard_set(name: str, n: int = 0) -> StandardSet:
    """The set with this name of `SETS`. ``n``: so many pages of each task instead of the set's own
    number, to try (of BrowserGym's at most its five).

    Raises `MissingSetError` where BrowserGym's table is not installed.
    """
    return SETS[name](n)
