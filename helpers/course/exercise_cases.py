"""What each exercise is checked with: cases with their answers, or a function that looks closer."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from typing_extensions import override

from helpers.browser.actions import parse_action

Call = Callable[..., Any]
"""Calls the learner's function; its result may be anything."""
Check = Callable[[Call], str]
"""Calls the learner's function and returns what is wrong with it, or an empty string."""


@dataclass(frozen=True)
class Case:
    """Arguments of a learner's function, and the answer that is right for them."""

    arguments: tuple[Any, ...]
    answer: Any


def case(*arguments: Any, answer: Any) -> Case:
    """A `Case`, written like the call that it stands for."""
    return Case(arguments, answer)


def compare(*cases: Case) -> Check:
    """A check that wants the right answer to each case."""

    def find_problem(call: Call) -> str:
        # All are called before one is judged: an answer that is always None is not yet written.
        given = [call(*case.arguments) for case in cases]
        for case, got in zip(cases, given, strict=True):
            if repr(got) != repr(case.answer):
                arguments = ", ".join(map(repr, case.arguments))
                return f"For {arguments} the answer is {case.answer!r}, not {got!r}."
        return ""

    return find_problem


class _Element(SimpleNamespace):
    """An element of a small page, which shows as a reader of a message needs it."""

    @override
    def __repr__(self) -> str:
        mark = " checked" if self.value == "true" else ""
        return f"[{self.bid}] {self.role} {self.name!r}{mark}"


def page(goal: str, *lines: str, checked: tuple[str, ...] = ()) -> SimpleNamespace:
    """A small observation from lines such as "13 button Yes".

    ``checked``: the bids whose value is "true"; that of all others is "false".
    """
    elements = []
    for line in lines:
        bid, role, name = line.split(" ", 2)
        value = "true" if bid in checked else "false"
        elements.append(_Element(bid=bid, role=role, name=name, value=value))
    return SimpleNamespace(goal=goal, elements=elements)


def worked_example(call: Call) -> str:
    """Exercise 2.2: goal, page and answer of an example that chooses from a list."""
    goal, lines, answer = call() or ("", "", "")
    bids = set(re.findall(r'^".*?" \w+ (\w+)', lines, re.MULTILINE))
    parsed = parse_action(answer, bids)
    if not parsed.ok:
        return f"Of {answer!r} the parser says {parsed.kind}: {parsed.reason}."
    quoted = re.search(r'"([^"]+)"', goal)
    if parsed.name != "select_option" or not quoted or quoted[1] not in str(parsed.args[1]):
        return (
            "The answer must be a select_option that chooses the text in double quotes of the goal."
        )
    if not re.search(rf'^".*?" combobox {parsed.args[0]}\b', lines, re.MULTILINE):
        return "The answer must act on a combobox of the page."
    return ""


def groups_of_one_page(call: Call) -> str:
    """Exercise 3.2: specs of groups, each on a page of its own."""
    seeds = range(40, 60)
    made = [(spec.task, spec.seed) for spec in call("click-tab", seeds, 3, 2) or []]
    if len(made) != 6:
        return f"3 groups of 2 are 6 episodes, not {len(made)}."
    if made[0::2] != made[1::2]:
        return f"The members of a group share task and seed and stand side by side: {made}."
    if any(task != "click-tab" or seed not in seeds for task, seed in made):
        return f"The task and the seeds are those that were given: {made}."
    if len(set(made)) != 3:
        return "Different groups get different seeds."
    return ""


@dataclass(frozen=True)
class LossCase:
    """Rollouts for which the loss of GRPO is known; one list per rollout, one number per token."""

    about: str
    ratios: list[list[float]]
    """Probability of each token now over its probability when it was sampled."""
    advantages: list[float]
    mask: list[list[int]]
    epsilon: float
    loss: float


# In each case one usual mistake gives another number.
_LOSSES = (
    LossCase(
        "Two rollouts of 3 tokens and of 1, ratios 1, advantages 1 and -0.5",
        ratios=[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
        advantages=[1.0, -0.5],
        mask=[[1, 1, 1], [1, 0, 0]],
        epsilon=0.2,
        loss=-0.625,  # -(3 * 1 - 0.5) / 4; a mean of the rollouts' means is -0.25
    ),
    LossCase(
        "A rollout whose middle token is the environment's, ratios 1, 9 and 1, advantage 2",
        ratios=[[1.0, 9.0, 1.0]],
        advantages=[2.0],
        mask=[[1, 0, 1]],
        epsilon=0.2,
        loss=-2.0,
    ),
    LossCase(
        "A good rollout, advantage 2, ratios 1.5 and 0.5, epsilon 0.25",
        ratios=[[1.5, 0.5]],
        advantages=[2.0],
        mask=[[1, 1]],
        epsilon=0.25,
        loss=-1.75,  # -2 * (1.25 + 0.5) / 2: only the larger ratio is clipped
    ),
    LossCase(
        "A bad rollout, advantage -2, ratios 1.5 and 0.5, epsilon 0.25",
        ratios=[[1.5, 0.5]],
        advantages=[-2.0],
        mask=[[1, 1]],
        epsilon=0.25,
        loss=2.25,  # 2 * (1.5 + 0.75) / 2: only the smaller ratio is clipped
    ),
)


def grpo_loss(call: Call) -> str:
    """Exercise 5.1: the loss of a batch, as a tensor that can be differentiated."""
    given = [call(*_loss_arguments(case)) for case in _LOSSES]
    for case, got in zip(_LOSSES, given, strict=True):
        value = _as_number(got)
        if not abs(value - case.loss) < 1e-5:
            return f"{case.about}: the loss is {case.loss:g}, not {value:g}."
        if not (torch.is_tensor(got) and got.requires_grad):
            return "The loss must be a tensor that backward() can go through, not a plain number."
    return ""


def _as_number(loss: Any) -> float:
    """A loss as a plain number, NaN where nothing was returned."""
    if torch.is_tensor(loss):
        return loss.item()
    return math.nan if loss is None else float(loss)


def _loss_arguments(case: LossCase) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Any, float]:
    """The arguments of ``grpo_loss``; the tokens' old probabilities are all 0.1."""
    ratios = torch.tensor(case.ratios)
    old = torch.full_like(ratios, 0.1).log()
    logprobs = (old + ratios.log()).requires_grad_()
    advantages = torch.tensor(case.advantages)
    return logprobs, old, advantages, torch.tensor(case.mask), case.epsilon


def report_of_a_result(call: Call) -> str:
    """Exercise 6.4: a sentence with both rates, the difference, its interval and n."""
    results = [_result(12, 85, 100), _result(0, 7, 250)]
    texts = [call(result) for result in results]
    for result, text in zip(results, texts, strict=True):
        said = {abs(int(number)) for number in re.findall(r"-?\d+", str(text))}
        for name, row in result.items():
            missing = [key for key, number in _to_be_said(name, row).items() if number not in said]
            if missing:
                return (
                    f"{str(text)!r} does not give {name}: {', '.join(missing)} (in %, rounded) "
                    f"of {row}."
                )
    return ""


def _result(before: int, after: int, n: int) -> dict[str, dict[str, float]]:
    """A result as a run leaves it, from rates in percent, with intervals made up."""
    change = after - before
    return {
        "before": {
            "n": n,
            "success": before / 100,
            "low": (before - 3) / 100,
            "high": (before + 9) / 100,
        },
        "after": {
            "n": n,
            "success": after / 100,
            "low": (after - 4) / 100,
            "high": (after + 10) / 100,
        },
        "difference": {
            "change": change / 100,
            "low": (change - 5) / 100,
            "high": (change + 4) / 100,
            "n": n,
        },
    }


def _to_be_said(name: str, row: dict[str, float]) -> dict[str, int]:
    """The numbers that a report names, without their signs: rates in percent, and n once."""
    if name != "difference":
        row = {key: value for key, value in row.items() if key != "n"}
    return {key: abs(round(v if key == "n" else 100 * v)) for key, v in row.items()}


_ELEMENTS = page("", "13 checkbox Yes", "14 button yes", "15 button Yes", "16 button No").elements
_BOXES = ("18 checkbox JE4O", "21 checkbox 1lA", "23 checkbox Qd", "24 button Submit")
_GOAL = "Select 1lA, Qd and click Submit."

# By the number of the exercise: the notebook's, and that of the exercise in it.
CHECKS: dict[str, Check] = {
    "1.1": compare(
        case(_ELEMENTS, "button", "Yes", answer="15"),
        case(_ELEMENTS, "button", "No", answer="16"),
        case(_ELEMENTS, "checkbox", "Yes", answer="13"),
        case(_ELEMENTS, "button", "yes", answer="14"),
        case(_ELEMENTS, "link", "Yes", answer=None),
    ),
    "1.2": compare(
        case(page(_GOAL, *_BOXES), 0, answer="click('21')"),
        case(page(_GOAL, *_BOXES, checked=("21",)), 1, answer="click('23')"),
        case(page(_GOAL, *_BOXES, checked=("21", "23")), 2, answer="click('24')"),
        case(page(_GOAL, *_BOXES), 1, answer="click('21')"),
        case(page("Select nothing and click Submit.", *_BOXES), 0, answer="click('24')"),
    ),
    "2.1": compare(
        case("click('13')", answer="13"),
        case("click('7')", answer="7"),
        case(' click("13") ', answer="13"),
        case("click(13)", answer=None),
        case("Sure! click('13')", answer=None),
        case("click('13'), click('14')", answer=None),
        case("click('13')\nGoal: x", answer=None),
        case("dblclick('13')", answer=None),
        case("click('')", answer=None),
        case("", answer=None),
    ),
    "2.2": worked_example,
    "3.1": compare(
        case([0, 0, 1, 1], answer=[1, 1]),
        case([0, 1, 1, 2, 2, 1], answer=[1, 1, 0, 0, 1]),
        case([0, 0, 1, 2, 1, 2, 2], answer=[1, 0, 1]),
    ),
    "3.2": groups_of_one_page,
    "4.1": compare(
        case([1.0, 0.0, 0.0, 1.0], answer=[0.5, -0.5, -0.5, 0.5]),
        case([1.0, None, 0.0], answer=[0.5, 0.0, -0.5]),
        case([0.0, 0.0], answer=[0.0, 0.0]),
        case([None, None], answer=[0.0, 0.0]),
        case([1.0, 0.0, 0.0, 0.0], answer=[0.75, -0.25, -0.25, -0.25]),
    ),
    "4.2": compare(
        case(
            [1.0, 1.0, 0.0, None],
            [[1.0], [0.0, 0.0, 1.0], [0.0, 0.0], [None]],
            answer=[1.0, 0.5, 0.0, None],
        ),
    ),
    "4.3": compare(
        case(1.0, 2.0, 0.25, answer=2.0),
        case(1.5, 2.0, 0.25, answer=2.5),
        case(0.5, 2.0, 0.25, answer=1.0),
        case(1.5, -2.0, 0.25, answer=-3.0),
        case(0.5, -2.0, 0.25, answer=-1.5),
    ),
    "5.1": grpo_loss,
    "5.2": compare(
        case([False, False, True], [True, False, False], answer=(1, 1)),
        case([False] * 4, [True] * 4, answer=(4, 0)),
        case([True], [True], answer=(0, 0)),
        case([False, True, True], [True, False, False], answer=(1, 2)),
    ),
    "6.1": compare(
        case(576, 1536, 16, answer=33792),
        case(10, 10, 1, answer=20),
        case(64, 32, 4, answer=384),
    ),
    "6.2": compare(
        case(["q_proj", "w1"], {"q_proj", "k_proj"}, answer=["w1"]),
        case(["q_proj"], {"q_proj"}, answer=[]),
        case(["w2", "w1"], set(), answer=["w1", "w2"]),
    ),
    "6.4": report_of_a_result,
}
