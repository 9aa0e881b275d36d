"""Self-checks of the exercises: ``check("1.1", my_function)`` prints todo, try again or ok, and never stops a notebook."""

import copy
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from helpers.browser.actions import parse_action
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import VALIDATION_SEEDS, rollout_config, specs


def check(number: str, answer: Callable | None) -> None:
    """Print "todo" where ``answer`` only ever returns None, "try again" with the case that fails, or "ok"."""
    _judge(number, answer, lambda call: (CHECKS[number](call), ""))


def _judge(
    number: str, answer: Callable | None, find: Callable[[Callable], tuple[str, str]]
) -> None:
    """``find`` gets a function that calls ``answer``, and returns what is wrong (or an empty string) and a remark for "ok"."""
    results: list[Any] = []
    remark = ""

    def call(*arguments: Any) -> Any:
        results.append(answer(*copy.deepcopy(arguments)))
        return results[-1]

    try:
        problem, remark = find(call) if answer is not None else ("", "")
    except (
        Exception,
        SystemExit,
    ) as error:  # whatever a learner's function does, the notebook runs on
        results.append(error)
        problem = f"{type(error).__name__}: {error}"
    todo = all(result is None for result in results)
    print(
        f"Exercise {number}: "
        + ("todo" if todo else f"try again. {problem}" if problem else f"ok{remark}")
    )


def compare(*cases: tuple) -> Callable[[Callable], str]:
    """A check that calls with the arguments of each case and wants its last entry back. All cases are called, so that an
    answer that is always None is seen as not yet written."""
    return lambda call: next(
        (
            f"For {', '.join(map(repr, args))} the answer is {wanted!r}, not {got!r}."
            for args, wanted, got in [(args, wanted, call(*args)) for *args, wanted in cases]
            if repr(got) != repr(wanted)
        ),
        "",
    )


class _Element(SimpleNamespace):
    def __repr__(self) -> str:
        return f"[{self.bid}] {self.role} {self.name!r}" + " checked" * (self.value == "true")


def page(goal: str, *lines: str, checked: tuple[str, ...] = ()) -> SimpleNamespace:
    """A small observation from lines such as "13 button Yes"; ``checked``: the bids whose value is "true"."""
    return SimpleNamespace(
        goal=goal,
        elements=[
            _Element(bid=bid, role=role, name=name, value=str(bid in checked).lower())
            for bid, role, name in (line.split(" ", 2) for line in lines)
        ],
    )


def _worked_example(call: Callable) -> str:
    goal, lines, answer = call() or ("", "", "")
    parsed = parse_action(answer, set(re.findall(r'^".*?" \w+ (\w+)', lines, re.MULTILINE)))
    wanted = re.search(r'"([^"]+)"', goal)
    if not parsed.ok:
        return f"Of {answer!r} the parser says {parsed.kind}: {parsed.reason}."
    if parsed.name != "select_option" or not wanted or wanted[1] not in parsed.args[1]:
        return (
            "The answer must be a select_option that chooses the text in double quotes of the goal."
        )
    on_list = re.search(rf'^".*?" combobox {parsed.args[0]}\b', lines, re.MULTILINE)
    return "" if on_list else "The answer must act on a combobox of the page."


def _one_task(call: Callable) -> str:
    made = [(spec.task, spec.seed) for spec in call("click-tab", range(40, 60), 3, 2) or []]
    if len(made) != 6:
        return f"3 groups of 2 are 6 episodes, not {len(made)}."
    groups = [made[i : i + 2] for i in range(0, 6, 2)]
    if any(a != b for a, b in groups):
        return f"The members of a group share task and seed and stand side by side: {made}."
    if {seed for _, seed in made} - set(range(40, 60)) or {task for task, _ in made} != {
        "click-tab"
    }:
        return f"The task and the seeds are those that were given: {made}."
    return "" if len(set(made)) == 3 else "Different groups get different seeds."


def _report(call: Callable) -> str:
    results = []
    for before, after, n in ((12, 85, 100), (0, 7, 250)):
        rows = [
            {
                "n": n,
                "success": rate / 100,
                "low": (rate - i - 3) / 100,
                "high": (rate + i + 9) / 100,
            }
            for i, rate in enumerate((before, after))
        ]
        change = {
            "change": (after - before) / 100,
            "low": (after - before - 5) / 100,
            "high": (after - before + 4) / 100,
            "n": n,
        }
        results.append(
            (call({"before": rows[0], "after": rows[1], "difference": change}), rows, change)
        )
    for text, rows, change in results:
        said = [abs(int(number)) for number in re.findall(r"-?\d+", str(text))]
        for name, row, keys in (
            ("before", rows[0], ("success", "low", "high")),
            ("after", rows[1], ("success", "low", "high")),
            ("difference", change, ("change", "low", "high", "n")),
        ):
            wanted = [abs(round(row[key] if key == "n" else 100 * row[key])) for key in keys]
            if missing := [
                key for key, number in zip(keys, wanted, strict=True) if number not in said
            ]:
                return f"{str(text)!r} does not give {name}: {', '.join(missing)} (in %, rounded) of {row}."
    return ""


def check_agent(
    number: str, agent: Callable[[Any, int], str | None], task: str, clients: Any, n: int = 20
) -> None:
    """Play ``n`` validation pages of ``task`` with a learner's agent, in real browsers. Prints "todo" where it answers nothing,
    "ok" where nine of ten pages are solved, else "try again" with the first that is not. Never stops a notebook."""

    def find(call: Callable) -> tuple[str, str]:
        episodes = play_agent(
            lambda seen, turn: str(call(seen, turn)),
            specs(task, VALIDATION_SEEDS, n),
            clients,
            rollout_config(task).max_turns,
        )
        failed = [e for e in episodes if not e.solved]
        said = f"{n - len(failed)} of {n} validation pages of {task} solved"
        if len(failed) <= n // 10:
            return "", f". {said}"
        e = failed[0]
        did = ", ".join(f"{turn.answer} {turn.error}".strip() for turn in e.turns)
        return f"{said}. Seed {e.seed}: {e.goal} It did: {did}. Ended: {e.ended}.", ""

    _judge(number, agent, find)


_FIND = page("", "13 checkbox Yes", "14 button yes", "15 button Yes", "16 button No").elements
_BOXES = ("18 checkbox JE4O", "21 checkbox 1lA", "23 checkbox Qd", "24 button Submit")
_GOAL = "Select 1lA, Qd and click Submit."
# Exercise -> function that calls the learner's function and returns what is wrong with it, or an empty string.
CHECKS: dict[str, Callable[[Callable], str]] = {
    "1.1": compare(
        (_FIND, "button", "Yes", "15"),
        (_FIND, "button", "No", "16"),
        (_FIND, "checkbox", "Yes", "13"),
        (_FIND, "button", "yes", "14"),
        (_FIND, "link", "Yes", None),
    ),
    "1.2": compare(
        (page(_GOAL, *_BOXES), 0, "click('21')"),
        (page(_GOAL, *_BOXES, checked=("21",)), 1, "click('23')"),
        (page(_GOAL, *_BOXES, checked=("21", "23")), 2, "click('24')"),
        (page(_GOAL, *_BOXES), 1, "click('21')"),
        (page("Select nothing and click Submit.", *_BOXES), 0, "click('24')"),
    ),
    "2.1": compare(
        ("click('13')", "13"),
        ("click('7')", "7"),
        (' click("13") ', "13"),
        ("click(13)", None),
        ("Sure! click('13')", None),
        ("click('13'), click('14')", None),
        ("click('13')\nGoal: x", None),
        ("dblclick('13')", None),
        ("click('')", None),
        ("", None),
    ),
    "2.2": _worked_example,
    "3.1": compare(
        ([0, 0, 1, 1], [1, 1]),
        ([0, 1, 1, 2, 2, 1], [1, 1, 0, 0, 1]),
        ([0, 0, 1, 2, 1, 2, 2], [1, 0, 1]),
    ),
    "3.2": _one_task,
    "4.1": compare(
        ([1.0, 0.0, 0.0, 1.0], [0.5, -0.5, -0.5, 0.5]),
        ([1.0, None, 0.0], [0.5, 0.0, -0.5]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([None, None], [0.0, 0.0]),
        ([1.0, 0.0, 0.0, 0.0], [0.75, -0.25, -0.25, -0.25]),
    ),
    "4.2": compare(
        ([1.0, 1.0, 0.0, None], [[1.0], [0.0, 0.0, 1.0], [0.0, 0.0], [None]], [1.0, 0.5, 0.0, None])
    ),
    "4.3": compare(
        (1.0, 2.0, 0.25, 2.0),
        (1.5, 2.0, 0.25, 2.5),
        (0.5, 2.0, 0.25, 1.0),
        (1.5, -2.0, 0.25, -3.0),
        (0.5, -2.0, 0.25, -1.5),
    ),
    "5.1": compare(
        ([False, False, True], [True, False, False], (1, 1)),
        ([False] * 4, [True] * 4, (4, 0)),
        ([True], [True], (0, 0)),
        ([False, True, True], [True, False, False], (1, 2)),
    ),
    "5.2": compare((8, 4.0, 60, 105), (1, 7.0, 0, 8), (1, 5.0, 90, 0), (2, 30.0, 15, 3)),
    "6.1": compare((576, 1536, 16, 33792), (10, 10, 1, 20), (64, 32, 4, 384)),
    "6.2": compare(
        (["q_proj", "w1"], {"q_proj", "k_proj"}, ["w1"]),
        (["q_proj"], {"q_proj"}, []),
        (["w2", "w1"], set(), ["w1", "w2"]),
    ),
    "6.4": _report,
}
