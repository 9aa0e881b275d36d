"""Self-checks of the exercises: ``check("1.1", my_function)`` prints todo, try again or ok.

`checked` does the same for a piece that the notebook goes on with. Whatever a learner's function
does, the notebook runs on. What each exercise is checked with is in `exercise_cases`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from helpers.course.exercise_cases import CHECKS, NOT_WRITTEN, Call
from helpers.episodes.episode import Episode
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import VALIDATION_SEEDS, specs, task_spec

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client

Answer = TypeVar("Answer", bound=Callable[..., Any])

__all__ = ["CHECKS", "check", "check_agent", "checked"]


def check(number: str, answer: Callable[..., Any] | None) -> None:
    """Print what the learner's function ``answer`` does on the cases of an exercise.

    "todo" where it only ever returns None, "try again" with the case that fails, or "ok".
    """
    _judge_cases(number, answer, "")


def checked(number: str, answer: Answer | None, ours: Answer) -> Answer:
    """`check`, for a function that the notebook goes on with: the learner's, if it is ok.

    Returns ``ours`` if it is not, and says so.
    """
    if _judge_cases(number, answer, ", and the notebook goes on with yours") and answer is not None:
        return answer
    print("The notebook goes on with the printed solution.")
    return ours


def _judge_cases(number: str, answer: Callable[..., Any] | None, remark: str) -> bool:
    """Print the verdict of an exercise's cases; whether it is ok. ``remark``: what ok adds."""

    def find_problem(call: Call) -> tuple[str, str]:
        return CHECKS[number](call), remark

    return _judge(number, answer, find_problem)


def check_agent(
    number: str,
    agent: Callable[[BrowserObservation, int], str | None],
    task: str,
    clients: Sequence[Client],
    n: int = 20,
) -> None:
    """Play ``n`` validation pages of ``task`` with a learner's agent, in real browsers.

    Prints "todo" where it answers nothing, "ok" where nine of ten pages are solved, else "try
    again" with the first that is not.
    """

    def find_problem(call: Call) -> tuple[str, str]:
        def answer(seen: BrowserObservation, turn: int) -> str:
            return str(call(seen, turn))

        pages = specs(task, VALIDATION_SEEDS, n)
        episodes = play_agent(answer, pages, clients, task_spec(task).max_turns)
        failed = [episode for episode in episodes if not episode.solved]
        said = f"{n - len(failed)} of {n} validation pages of {task} solved"
        if len(failed) <= n // 10:
            return "", f". {said}"
        return f"{said}. {_story(failed[0])}", ""

    _judge(number, agent, find_problem)


def _judge(
    number: str,
    answer: Callable[..., Any] | None,
    find_problem: Callable[[Call], tuple[str, str]],
) -> bool:
    """Print the verdict on an answer; returns whether it is ok.

    ``find_problem`` gets a function that calls the answer with copies of its arguments. It returns
    what is wrong (or an empty string), and what "ok" shall add.
    """
    results: list[Any] = []

    def call(*arguments: Any) -> Any:
        assert answer is not None
        result = answer(*copy.deepcopy(arguments))
        results.append(result)
        return result

    problem = ""
    remark = ""
    if answer is not None:
        try:
            problem, remark = find_problem(call)
        except (Exception, SystemExit) as error:
            results.append(error)
            problem = f"{type(error).__name__}: {error}"
    if problem == NOT_WRITTEN or all(result is None for result in results):
        print(f"Exercise {number}: todo")
    elif problem:
        print(f"Exercise {number}: try again. {problem}")
    else:
        print(f"Exercise {number}: ok{remark}")
        return True
    return False


def _story(episode: Episode) -> str:
    """What was to be done in an episode, and what was done."""
    did = ", ".join(f"{turn.answer} {turn.error}".strip() for turn in episode.turns)
    return f"Seed {episode.seed}: {episode.goal} It did: {did}. Ended: {episode.ended}."
