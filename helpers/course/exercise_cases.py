"""What each exercise is checked with: cases with their answers, or a function that looks closer."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from typing_extensions import override

from helpers.browser.actions import ACTIONS, parse_action, signature
from helpers.settings.language import say

Call = Callable[..., Any]
"""Calls the learner's function; its result may be anything."""
Check = Callable[[Call], str]
"""Calls the learner's function and returns what is wrong with it, or an empty string."""
NOT_WRITTEN = "not written yet"
"""What a check returns for a class whose methods still return None."""


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
            if not _is_same(got, case.answer):
                arguments = ", ".join(map(repr, case.arguments))
                return _not_the_answer(arguments, case.answer, got)
        return ""

    return find_problem


def _not_the_answer(arguments: str, wanted: Any, got: Any) -> str:
    return say(
        "For {arguments} the answer is {wanted!r}, not {got!r}.",
        arguments=arguments,
        wanted=wanted,
        got=got,
    )


def _is_same(got: Any, wanted: Any) -> bool:
    """Whether an answer is the right one, whatever its type: 0 for 0.0, a tuple for a list.

    Arrays and tensors are compared as lists, numbers to the sixth decimal.
    """
    if hasattr(got, "tolist"):
        got = got.tolist()
    if isinstance(wanted, list | tuple):
        if not isinstance(got, list | tuple) or len(got) != len(wanted):
            return False
        return all(_is_same(one, other) for one, other in zip(got, wanted, strict=True))
    if isinstance(wanted, dict):
        same_keys = isinstance(got, dict) and got.keys() == wanted.keys()
        return same_keys and all(_is_same(got[key], wanted[key]) for key in wanted)
    if isinstance(wanted, int | float):
        return isinstance(got, int | float) and abs(got - wanted) < 1e-6
    return type(got) is type(wanted) and bool(got == wanted)


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


# Name of an action, values, and whether the values can be its arguments.
_VALUES: tuple[tuple[str, list[Any], bool], ...] = (
    ("click", ["13"], True),
    ("click", ["a7"], True),
    ("click", [13], False),
    ("click", ["13", "14"], False),
    ("click", [], False),
    ("click", ["the button"], False),
    ("click", [""], False),
    ("click", [["13"]], False),
    ("fill", ["15", "blue sky"], True),
    ("fill", ["15", ""], True),
    ("fill", ["15", 3], False),
    ("fill", ["15", ["a"]], False),
    ("fill", ["15"], False),
    ("select_option", ["16", "Peru"], True),
    ("select_option", ["16", ["Peru", "Chile"]], True),
    ("select_option", ["16", []], False),
    ("scroll", [0, -200.5], True),
    ("scroll", ["0", "200"], False),
    ("noop", [500], True),
    ("noop", [], True),
    ("noop", ["500"], False),
)


def fitting_values(call: Call) -> str:
    """Exercise 2.2: whether values can be the arguments of an action."""
    given = [call(ACTIONS[name].params, values) for name, values, _ in _VALUES]
    for (name, values, right), got in zip(_VALUES, given, strict=True):
        if bool(got) != right:
            about = say(
                "the parameters of {call} and the values {values!r}",
                call=signature(name),
                values=values,
            )
            return _not_the_answer(about, right, got)
    return ""


def worked_example(call: Call) -> str:
    """Exercise 2.3: goal, page and answer of an example that chooses from a list."""
    goal, lines, answer = call() or ("", "", "")
    bids = set(re.findall(r'^".*?" \w+ (\w+)', lines, re.MULTILINE))
    parsed = parse_action(answer, bids)
    if not parsed.ok:
        return say(
            "Of {answer!r} the parser says {kind}: {reason}.",
            answer=answer,
            kind=parsed.kind,
            reason=parsed.reason,
        )
    quoted = re.search(r'"([^"]+)"', goal)
    if parsed.name != "select_option" or not quoted or quoted[1] not in str(parsed.args[1]):
        return say(
            "The answer must be a select_option that chooses the text in double quotes of the goal."
        )
    if not re.search(rf'^".*?" combobox {parsed.args[0]}\b', lines, re.MULTILINE):
        return say("The answer must act on a combobox of the page.")
    return ""


def _ledger(ids: list[int], mask: list[int], logprobs: list[float]) -> dict[str, list[Any]]:
    return {"ids": ids, "mask": mask, "logprobs": logprobs}


_TURNS = _ledger([5, 6, 7], [0, 0, 1], [0.0, 0.0, -0.5])  # a prompt and an answer
_APPENDED = compare(
    case(_ledger([], [], []), [5, 6], answer=_ledger([5, 6], [0, 0], [0.0, 0.0])),
    case(_ledger([5, 6], [0, 0], [0.0, 0.0]), [7], [-0.5], answer=_TURNS),
    case(
        _TURNS,
        [8, 9],
        answer=_ledger([5, 6, 7, 8, 9], [0, 0, 1, 0, 0], [0.0, 0.0, -0.5, 0.0, 0.0]),
    ),
    case(
        _ledger([5, 8], [0, 0], [0.0, 0.0]),
        [3, 3],
        [-1.5, 0.0],
        answer=_ledger([5, 8, 3, 3], [0, 0, 1, 1], [0.0, 0.0, -1.5, 0.0]),
    ),
)


def appended_tokens(call: Call) -> str:
    """Exercise 3.1: a ledger with more tokens at its end."""
    if problem := _APPENDED(call):
        return problem
    try:
        call(_TURNS, [8, 9], [-0.5])
    except ValueError:
        return ""
    return say("Two tokens and one logprob do not match: raise a ValueError.")


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


def _losses() -> tuple[LossCase, ...]:
    """Cases in each of which one usual mistake gives another number."""
    return (
        LossCase(
            say("Two rollouts of 3 tokens and of 1, ratios 1, advantages 1 and -0.5"),
            ratios=[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
            advantages=[1.0, -0.5],
            mask=[[1, 1, 1], [1, 0, 0]],
            epsilon=0.2,
            loss=-0.625,  # -(3 * 1 - 0.5) / 4; a mean of the rollouts' means is -0.25
        ),
        LossCase(
            say(
                "A rollout whose middle token is the environment's, ratios 1, 9 and 1, advantage 2"
            ),
            ratios=[[1.0, 9.0, 1.0]],
            advantages=[2.0],
            mask=[[1, 0, 1]],
            epsilon=0.2,
            loss=-2.0,
        ),
        LossCase(
            say("A good rollout, advantage 2, ratios 1.5 and 0.5, epsilon 0.25"),
            ratios=[[1.5, 0.5]],
            advantages=[2.0],
            mask=[[1, 1]],
            epsilon=0.25,
            loss=-1.75,  # -2 * (1.25 + 0.5) / 2: only the larger ratio is clipped
        ),
        LossCase(
            say("A bad rollout, advantage -2, ratios 1.5 and 0.5, epsilon 0.25"),
            ratios=[[1.5, 0.5]],
            advantages=[-2.0],
            mask=[[1, 1]],
            epsilon=0.25,
            loss=2.25,  # 2 * (1.5 + 0.75) / 2: only the smaller ratio is clipped
        ),
    )


def grpo_loss(call: Call) -> str:
    """Exercise 5.1: the loss of a batch, as a tensor that can be differentiated."""
    cases = _losses()
    given = [call(*_loss_arguments(case)) for case in cases]
    for case, got in zip(cases, given, strict=True):
        value = _as_number(got)
        if not abs(value - case.loss) < 1e-5:
            return say(
                "{about}: the loss is {wanted:g}, not {value:g}.",
                about=case.about,
                wanted=case.loss,
                value=value,
            )
        if not (torch.is_tensor(got) and got.requires_grad):
            return _no_tensor()
    return ""


def _no_tensor() -> str:
    return say("The loss must be a tensor that backward() can go through, not a plain number.")


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


# Four tokens of a vocabulary of three, of which the script wrote the last two. What a token's
# logits say of the token after it: the probabilities of the ids 0, 1 and 2.
_TOKENS = torch.tensor([2, 0, 1, 0])
_FOLLOWING = torch.tensor([[0.2, 0.3, 0.5], [0.4, 0.5, 0.1], [0.25, 0.25, 0.5], [0.1, 0.2, 0.7]])


def _warm_ups() -> tuple[tuple[str, list[int], tuple[float, ...]], ...]:
    """What is said of a case, its mask, and the probabilities of the tokens in it."""
    return (
        (say("The script wrote the last two tokens"), [0, 0, 1, 1], (0.5, 0.25)),
        (say("The script wrote the last token"), [0, 0, 0, 1], (0.25,)),
        (
            say("The environment wrote a token between two of the script's"),
            [0, 1, 0, 1],
            (0.2, 0.25),
        ),
    )


def warm_up_loss(call: Call) -> str:
    """Exercise 5.2: the cross-entropy of the tokens that a script wrote."""
    given = []
    cases = _warm_ups()
    for _, mask, _ in cases:
        logits = (_FOLLOWING.log() + 3.0).requires_grad_()  # logits: their e powers add up to e³
        given.append(call(logits, _TOKENS, torch.tensor(mask)))
    for (about, _, chances), got in zip(cases, given, strict=True):
        value = _as_number(got)
        wanted = -sum(math.log(chance) for chance in chances) / len(chances)
        if not abs(value - wanted) < 1e-5:
            return say(
                "{about}, which the model gave probability {chances}: the loss is {wanted:.3f}, "
                "not {value:.3f}.",
                about=about,
                chances=say(" and ").join(f"{chance:g}" for chance in chances),
                wanted=wanted,
                value=value,
            )
        if not (torch.is_tensor(got) and got.requires_grad):
            return _no_tensor()
    return ""


_RANK, _ALPHA = 2, 6.0
_A = torch.tensor([[1.0, 0.0, 2.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0, 3.0]])
_B = torch.tensor([[1.0, 2.0], [0.0, 1.0], [-1.0, 0.0]])


def lora_layer(call: Call) -> str:
    """Exercise 6.2: a frozen linear layer of 5 to 3 numbers, with an adapter beside it."""
    linear = nn.Linear(5, 3)
    x = torch.linspace(-1, 1, 20).reshape(4, 5)
    layer = call(linear, _RANK, _ALPHA)
    if layer is None:
        return NOT_WRITTEN
    at_first = layer(x)
    if at_first is None:
        return NOT_WRITTEN
    problem = _what_is_trained(layer)
    if problem:
        return problem
    frozen = linear(x).detach()
    if not torch.allclose(at_first, frozen, atol=1e-5):
        return say(
            "A new layer gives {got} where the frozen one gives {frozen}: B starts at 0, and W and "
            "its bias stay.",
            got=_rounded(at_first[0]),
            frozen=_rounded(frozen[0]),
        )
    if not layer.A.any():
        return say("A must start with random numbers: with A and B at 0 neither has a gradient.")
    with torch.no_grad():
        layer.A.copy_(_A)
        layer.B.copy_(_B)
    added = layer(x) - frozen
    wanted = _ALPHA / _RANK * (x @ _A.T @ _B.T)
    if not torch.allclose(added, wanted, atol=1e-4):
        return say(
            "With r = {r}, alpha = {alpha:g}, A = {A} and B = {B} it adds {got} for {x}, not "
            "{wanted}.",
            r=_RANK,
            alpha=_ALPHA,
            A=_A.tolist(),
            B=_B.tolist(),
            got=_rounded(added[0]),
            x=_rounded(x[0]),
            wanted=_rounded(wanted[0]),
        )
    return ""


def _what_is_trained(layer: nn.Module) -> str:
    """What is wrong with a layer's parameters: A and B have a gradient, W and its bias none."""
    for name, shape in (("A", (_RANK, 5)), ("B", (3, _RANK))):
        weights = getattr(layer, name, None)
        if not isinstance(weights, nn.Parameter):
            return say(
                "{name} must be an nn.Parameter: the optimizer sees nothing else.", name=name
            )
        if tuple(weights.shape) != shape:
            return say(
                "For a layer of 5 to 3 numbers and r = {r} the shape of {name} is {wanted}, not "
                "{got}.",
                r=_RANK,
                name=name,
                wanted=shape,
                got=tuple(weights.shape),
            )
    trained = {name for name, weights in layer.named_parameters() if weights.requires_grad}
    if trained != {"A", "B"}:
        return say("Trained are A and B alone, not {names}.", names=", ".join(sorted(trained)))
    return ""


def _rounded(numbers: torch.Tensor) -> list[float]:
    return [round(number, 2) for number in numbers.tolist()]


def report_of_a_result(call: Call) -> str:
    """Exercise 6.4: a sentence with both rates, the difference, its interval and n."""
    results = [_result(12, 85, 100), _result(0, 7, 250)]
    texts = [call(result) for result in results]
    for result, text in zip(results, texts, strict=True):
        said = {abs(int(number)) for number in re.findall(r"-?\d+", str(text))}
        for name, row in result.items():
            missing = [key for key, number in _to_be_said(name, row).items() if number not in said]
            if missing:
                return say(
                    "{text!r} does not give {name}: {missing} (in %, rounded) of {row}.",
                    text=str(text),
                    name=name,
                    missing=", ".join(missing),
                    row=row,
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


def _scaled(differences: list[float], deviation: float) -> list[float]:
    """Advantages as TRL has them: differences from the mean over the standard deviation."""
    return [difference / (deviation + 1e-4) for difference in differences]


# By the number of the exercise: the notebook's, and that of the exercise in it.
CHECKS: dict[str, Check] = {
    "1.1": compare(
        case([1.0, 0.0, 0.0, 0.0], answer=[0.75, -0.25, -0.25, -0.25]),
        case([1.0, 1.0, 0.0, 1.0], answer=[0.25, 0.25, -0.75, 0.25]),
        case([0.0, 0.0, 0.0, 0.0], answer=[0.0, 0.0, 0.0, 0.0]),
        case([1.0, 1.0], answer=[0.0, 0.0]),
        case([2.0, 0.5, -1.0], answer=[1.5, 0.0, -1.5]),
    ),
    "1.2": compare(
        case(_ELEMENTS, "button", "Yes", answer="15"),
        case(_ELEMENTS, "button", "No", answer="16"),
        case(_ELEMENTS, "checkbox", "Yes", answer="13"),
        case(_ELEMENTS, "button", "yes", answer="14"),
        case(_ELEMENTS, "link", "Yes", answer=None),
    ),
    "1.3": compare(
        case(page(_GOAL, *_BOXES), 0, answer="click('21')"),
        case(page(_GOAL, *_BOXES, checked=("21",)), 1, answer="click('23')"),
        case(page(_GOAL, *_BOXES, checked=("21", "23")), 2, answer="click('24')"),
        case(page(_GOAL, *_BOXES), 1, answer="click('21')"),
        case(page("Select nothing and click Submit.", *_BOXES), 0, answer="click('24')"),
    ),
    "2.1": compare(
        case("click('13')", answer=("click", "'13'")),
        case("Action: click('13')", answer=("click", "'13'")),
        case("\n click('13') ", answer=("click", "'13'")),
        case("fill('15', 'a) b')", answer=("fill", "'15', 'a) b'")),
        case("fill('15', 'two\nlines')", answer=("fill", "'15', 'two\nlines'")),
        case("scroll(0, 200)", answer=("scroll", "0, 200")),
        case("select_option('16', 'Peru')", answer=("select_option", "'16', 'Peru'")),
        case("noop()", answer=("noop", "")),
        case("I must not click('13').", answer=None),
        case("click('13') now", answer=None),
        case("click('13')\nGoal: x", answer=None),
        case("click('13'", answer=None),
        case("click", answer=None),
        case("('13')", answer=None),
        case("2(13)", answer=None),
        case("", answer=None),
    ),
    "2.2": fitting_values,
    "2.3": worked_example,
    "3.1": appended_tokens,
    "3.2": compare(
        case([-1.0, 0.0, -3.0], [-1.5, -9.0, -2.75], [1, 0, 1], answer=[0.5, 0.25]),
        case([0.0, -2.0], [-7.0, -2.0], [0, 1], answer=[0.0]),
        case([0.0, 0.0], [-1.0, -4.0], [0, 0], answer=[]),
    ),
    "3.3": compare(
        case(
            _ledger([5, 6, 7, 8], [0, 0, 1, 1], [0.0, 0.0, -0.5, -1.0]),
            answer={
                "prompt_ids": [5, 6],
                "completion_ids": [7, 8],
                "env_mask": [1, 1],
                "logprobs": [-0.5, -1.0],
            },
        ),
        case(
            _ledger([5, 6, 7, 8, 9], [0, 1, 0, 1, 1], [0.0, -0.5, 0.0, -1.0, -2.0]),
            answer={
                "prompt_ids": [5],
                "completion_ids": [6, 7, 8, 9],
                "env_mask": [1, 0, 1, 1],
                "logprobs": [-0.5, 0.0, -1.0, -2.0],
            },
        ),
        case(
            _ledger([5, 6, 7, 8, 9], [0, 0, 1, 0, 0], [0.0, 0.0, -0.5, 0.0, 0.0]),
            answer={
                "prompt_ids": [5, 6],
                "completion_ids": [7],
                "env_mask": [1],
                "logprobs": [-0.5],
            },
        ),
    ),
    "4.1": compare(
        case(
            [1.0, 1.0, 0.0, None],
            [[1.0], [0.0, 0.0, 1.0], [0.0, 0.0], [None]],
            answer=[1.0, 0.5, 0.0, None],
        ),
    ),
    "4.2": compare(
        case([1.0, 0.0, 0.0, 1.0], answer=_scaled([0.5, -0.5, -0.5, 0.5], math.sqrt(1 / 3))),
        case([1.0, 0.0, 0.0, 0.0], answer=_scaled([0.75, -0.25, -0.25, -0.25], 0.5)),
        case([1.0, None, 0.0], answer=_scaled([0.5, 0.0, -0.5], math.sqrt(1 / 2))),
        case([0.0, 0.0], answer=[0.0, 0.0]),
        case([1.0, None], answer=[0.0, 0.0]),
        case([None, None], answer=[0.0, 0.0]),
    ),
    "4.3": compare(
        case(1.0, 2.0, 0.25, answer=2.0),
        case(1.5, 2.0, 0.25, answer=2.5),
        case(0.5, 2.0, 0.25, answer=1.0),
        case(1.5, -2.0, 0.25, answer=-3.0),
        case(0.5, -2.0, 0.25, answer=-1.5),
    ),
    "5.1": grpo_loss,
    "5.2": warm_up_loss,
    "5.3": compare(
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
    "6.2": lora_layer,
    "6.4": report_of_a_result,
}
# The exercise of the notebook on eyes.
SQUARES = compare(
    case("mouse_click(0, 75)", answer=0),
    case("mouse_click(239, 314)", answer=63),
    case("mouse_click(120, 150)", answer=20),
    case("mouse_click(29,105)", answer=8),
    case("mouse_click(120, 60)", answer=None),
    case("mouse_click(240, 150)", answer=None),
    case("I see nothing.", answer=None),
)
