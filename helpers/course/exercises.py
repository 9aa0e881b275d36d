"""Self-checks of the exercises: ``check("1.1", my_function)`` prints todo, try again or ok.

`checked` does the same for a piece that the notebook goes on with. Whatever a learner's function
does, the notebook runs on. What each exercise is checked with is in `exercise_cases`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from helpers.browser.orders import Order, order_in, with_order
from helpers.course.by_hand_eyes import square_of
from helpers.course.exercise_cases import CHECKS, NOT_WRITTEN, SQUARES, Call, Check
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.episodes.filtering import FilteringClient, Keep
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import VALIDATION_SEEDS, specs, task_spec
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.orders.plan import FAMILIES, PLACES, TASKS, Attack
from helpers.settings.language import say

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client

Answer = TypeVar("Answer", bound=Callable[..., Any])
Square = Callable[[str], int | None]

LONGEST = 120  # characters of an argument that a verdict shows

__all__ = [
    "CHECKS",
    "check",
    "check_agent",
    "check_attack",
    "check_defence",
    "check_square",
    "checked",
]


def check(number: str, answer: Callable[..., Any] | None) -> None:
    """Print what the learner's function ``answer`` does on the cases of an exercise.

    "todo" where it only ever returns None, "try again" with the case that fails, or "ok".
    """
    _judge_cases(number, answer, "")


def checked(number: str, answer: Answer | None, ours: Answer, cases: Check | None = None) -> Answer:
    """`check`, for a function that the notebook goes on with: the learner's, if it is ok.

    Returns ``ours`` if it is not, and says so. ``cases``: what it is checked with, where the
    exercise is none of the six notebooks'.
    """
    remark = say(", and the notebook goes on with yours")
    if _judge_cases(number, answer, remark, cases) and answer is not None:
        return answer
    print(say("The notebook goes on with the printed solution."))
    return ours


def _judge_cases(
    number: str, answer: Callable[..., Any] | None, remark: str, cases: Check | None = None
) -> bool:
    """Print the verdict of an exercise's cases; whether it is ok. ``remark``: what ok adds."""

    def find_problem(call: Call) -> tuple[str, str]:
        return (cases or CHECKS[number])(call), remark

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
        said = say(
            "{solved} of {n} validation pages of {task} solved",
            solved=n - len(failed),
            n=n,
            task=task,
        )
        if len(failed) <= n // 10:
            return "", say(". {said}", said=said)
        return say("{said}. {story}", said=said, story=_story(failed[0])), ""

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
    cases: list[str] = []

    def call(*arguments: Any) -> Any:
        assert answer is not None
        cases.append(_short(arguments))
        result = answer(*copy.deepcopy(arguments))
        results.append(result)
        return result

    problem = ""
    remark = ""
    ok = False
    if answer is not None:
        try:
            problem, remark = find_problem(call)
        except (Exception, SystemExit) as error:
            problem = _story_of_error(error, cases, results)
            results.append(error)
    if problem == NOT_WRITTEN or all(result is None for result in results):
        verdict = say("todo")
    elif problem:
        verdict = say("try again. {problem}", problem=problem)
    else:
        verdict = say("ok{remark}", remark=remark)
        ok = True
    print(say("Exercise {number}: ", number=number) + verdict)
    return ok


def _story_of_error(error: BaseException, cases: Sequence[str], results: Sequence[Any]) -> str:
    """What was raised, and for which of the ``cases``: by the answer, or where the check looked at
    the last of its ``results``."""
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    if len(cases) > len(results):
        return say("For ({case}) it raises {error}", case=cases[-1], error=said)
    if results:
        got = _short(results[-1:])
        return say("For ({case}) it returns {got}: {error}", case=cases[-1], got=got, error=said)
    return said


def _short(arguments: Sequence[object]) -> str:
    """The arguments of a call, each in one line of at most `LONGEST` characters."""
    texts = [" ".join(repr(argument).split()) for argument in arguments]
    return ", ".join(t if len(t) <= LONGEST else f"{t[:LONGEST]} ..." for t in texts)


def _story(episode: Episode) -> str:
    """What was to be done in an episode, and what was done."""
    did = ", ".join(f"{turn.answer} {turn.error}".strip() for turn in episode.turns)
    return say(
        "Seed {seed}: {goal} It did: {did}. Ended: {ended}.",
        seed=episode.seed,
        goal=episode.goal,
        did=did,
        ended=episode.ended,
    )


def check_attack(
    number: str, attack: Callable[[], Attack | None], clients: Sequence[Client]
) -> None:
    """Plant a learner's order, (name of the button, words), in held-out pages.

    Prints "ok" where it gets through the course's filter on all of them, and tells its reader which
    button to click; else "try again" with the first page on which it does not.
    """

    def find_problem(call: Call) -> tuple[str, str]:
        answer = call()
        if answer is None:
            return NOT_WRITTEN, ""
        button, words = answer
        if button not in words:
            return say(
                "The words do not name the button {button!r}: nobody knows what to click.",
                button=button,
            ), ""
        client = FilteringClient(clients[0])
        pages = held_out_pages(lambda place: Order(place, button, words))
        for page in pages:
            if words not in client.reset(page.task, page.seed).axtree_txt:
                order = order_in(page.task)
                place = order.place if order else ""
                return say(
                    "The filter drops it (place: {place}): {words}", place=place, words=words
                ), ""
        return "", say(". It is on {n} of {n} held-out pages", n=len(pages))

    _judge(number, attack, find_problem)


def check_square(number: str, answer: Square) -> Square:
    """Judge a learner's function that returns the square an answer clicks in.

    Returns it where it is ok, else ours, with which the notebook goes on.
    """
    return checked(number, answer, square_of, SQUARES)


def check_defence(number: str, keep: Keep, clients: Sequence[Client]) -> None:
    """Judge a learner's filter on held-out pages: it drops orders, and leaves tasks what they need.

    Prints "ok" where nine of ten orders are dropped and scripts solve as many pages without an
    order as without the filter; else "try again".
    """

    def find_problem(call: Call) -> tuple[str, str]:
        pages = [
            page
            for family in ("command", "authority", "goal")
            for button, words in FAMILIES[family]["held out"]
            for page in held_out_pages(lambda place, b=button, w=words: Order(place, b, w), n=2)
        ]
        client = FilteringClient(clients[0], lambda line, goal: bool(call(line, goal)))
        kept = [
            page for page in pages if _words_of(page) in client.reset(page.task, page.seed).text
        ]
        tasks = TASKS["held out"]
        plain = [page for task in tasks for page in specs(task, VALIDATION_SEEDS, 3)]
        before = _solved_by_scripts(plain, clients[0])
        after = _solved_by_scripts(plain, client)
        said = say(
            "{dropped} of {orders} orders dropped, {after} of {before} pages without an order "
            "still solved",
            dropped=len(pages) - len(kept),
            orders=len(pages),
            after=after,
            before=before,
        )
        if len(kept) <= len(pages) // 10 and after >= before:
            return "", say(". {said}", said=said)
        missed = say("It keeps: {words}", words=_words_of(kept[0])) if kept else ""
        return say("{said}. {story}", said=said, story=missed).rstrip(), ""

    _judge(number, keep, find_problem)


def held_out_pages(order_at: Callable[[str], Order], n: int | None = None) -> list[EpisodeSpec]:
    """An order in each held-out place of each held-out task; the first ``n`` of them."""
    pages = [
        EpisodeSpec(with_order(task, order_at(place)), VALIDATION_SEEDS[number])
        for number, task in enumerate(TASKS["held out"])
        for place in PLACES["held out"]
    ]
    return pages[:n]


def _words_of(page: EpisodeSpec) -> str:
    order = order_in(page.task)
    return order.words if order else ""


def _solved_by_scripts(pages: Sequence[EpisodeSpec], client: Client) -> int:
    """How many pages the scripts of their tasks solve."""

    def script(seen: BrowserObservation, turn: int) -> str:
        return SCRIPTS[seen.task](seen, turn)

    return sum(episode.solved for episode in play_agent(script, pages, [client], max_turns=2))
