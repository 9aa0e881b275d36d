"""The self-checks: each tells right from wrong, knows an answer that is not written yet, and never stops a notebook."""

import json
import re

import nbformat
import pytest

from helpers.course.exercises import CHECKS, check, check_agent
from helpers.episodes.config import EpisodeSpec
from helpers.settings.paths import ROOT


def find_bid(elements, role, name):
    return next((e.bid for e in elements if e.role == role and e.name == name), None)


def checkbox_agent(seen, turn):
    names = seen.goal.removeprefix("Select ").removesuffix(" and click Submit.").split(", ")
    left = [
        e.bid
        for e in seen.elements
        if e.role == "checkbox" and e.name in names and e.value != "true"
    ]
    return f"click('{(left or [e.bid for e in seen.elements if e.name == 'Submit'])[0]}')"


def click_parser(answer):
    match = re.fullmatch(r"""click\((['"])([0-9]+)\1\)""", answer.strip())
    return match[2] if match else None


def completion_mask(owners):
    last = max(i for i, owner in enumerate(owners) if owner == 1)
    return [int(owner == 1) for owner in owners[owners.index(1) : last + 1]]


def make_groups(task, seeds, groups, size):
    return [EpisodeSpec(task, seed) for seed in seeds[:groups] for _ in range(size)]


def centred(rewards, size=None):
    known = [r for r in rewards if r is not None]
    mean = sum(known) / (size or len(known) or 1)
    return [0.0 if r is None else r - mean for r in rewards]


def early(strict, turns):
    return [
        None if s is None else s - 0.25 * (len(t) - 1) * s
        for s, t in zip(strict, turns, strict=True)
    ]


def objective(ratio, advantage, epsilon):
    return min(ratio * advantage, min(max(ratio, 1 - epsilon), 1 + epsilon) * advantage)


def solution(cell, name):
    """What the folded solution in a cell of notebook 6 defines; the part before an empty line goes into another file."""
    notebook = nbformat.read(next((ROOT / "notebooks").glob("06_*.ipynb")), as_version=4)
    text = next(c.source for c in notebook.cells if c.id == cell)
    found = {}
    exec(
        re.search(
            r"<summary>Solution</summary>\n\n```python\n(?:\S.*\n\n)?(def .*?)```", text, re.DOTALL
        )[1],
        found,
    )
    return found[name]


report = solution("n06-p4", "report")


RIGHT = {
    "1.1": find_bid,
    "1.2": checkbox_agent,
    "2.1": click_parser,
    "2.2": lambda: (
        'Select "Peru".',
        '"Country" combobox 31\n"Submit" button 36',
        "select_option('31', 'Peru')",
    ),
    "3.1": completion_mask,
    "3.2": make_groups,
    "4.1": centred,
    "4.2": early,
    "4.3": objective,
    "5.1": lambda before, after: (
        sum(a > b for b, a in zip(before, after, strict=True)),
        sum(b > a for b, a in zip(before, after, strict=True)),
    ),
    "5.2": lambda minutes, seconds, start: max(0, int((60 * minutes - start) // seconds)),
    "6.1": lambda d_in, d_out, r: r * (d_in + d_out),
    "6.2": lambda modules, targets: sorted(name for name in modules if name not in targets),
    "6.4": report,
}
WRONG = {
    "1.1": [
        lambda elements, role, name: find_bid(
            [e for e in elements if e.role == role], role, name.capitalize()
        ),
        lambda elements, role, name: next((e.bid for e in elements if e.name == name), None),
        lambda elements, role, name: next((e.bid for e in elements if e.role == role), None),
        lambda elements, role, name: next(
            (e for e in elements if e.role == role and e.name == name), None
        ),
    ],
    "1.2": [
        lambda seen, turn: "click('24')",
        lambda seen, turn: (
            f"click('{[e for e in seen.elements if e.name in seen.goal][turn].bid}')"
        ),
        lambda seen, turn: next(f"click('{e.bid}')" for e in seen.elements if e.name in seen.goal),
    ],
    "2.1": [
        lambda answer: m[1] if (m := re.search(r"click\(['\"](\d+)['\"]\)", answer)) else None,
        lambda answer: m[1] if (m := re.match(r"click\('(\d+)'\)", answer.strip())) else None,
        lambda answer: (
            m[1] if (m := re.fullmatch(r"click\(['\"]?(\d+)['\"]?\)", answer.strip())) else None
        ),
    ],
    "2.2": [
        lambda: (
            'Select "Peru".',
            "[31] combobox ''\n[36] option 'Peru'",
            "select_option('36', 'Peru')",
        ),
        lambda: ('Select "Peru".', "[31] combobox ''", "select_option('31', 'Chile')"),
        lambda: ('Select "Peru".', "[31] combobox ''", "select_option(31, 'Peru')"),
        lambda: ('Select "Peru".', "[31] combobox ''", "click('31')"),
        lambda: "select_option",
    ],
    "3.1": [
        lambda owners: [int(owner == 1) for owner in owners],
        lambda owners: [int(owner == 1) for owner in owners[owners.index(1) :]],
        lambda owners: [1 for owner in owners if owner == 1],
    ],
    "3.2": [
        lambda task, seeds, groups, size: [
            EpisodeSpec(task, seed) for seed in seeds[: groups * size]
        ],
        lambda task, seeds, groups, size: make_groups(task, seeds, groups, 1) * size,
        lambda task, seeds, groups, size: [EpisodeSpec(task, seeds[0])] * (groups * size),
        lambda task, seeds, groups, size: make_groups(task, range(groups), groups, size),
    ],
    "4.1": [
        lambda rewards: centred([r or 0.0 for r in rewards]),
        lambda rewards: centred(rewards, len(rewards)),
        lambda rewards: [r or 0.0 for r in rewards],
    ],
    "4.2": [
        lambda strict, turns: [
            None if s is None else s - 0.25 * (len(t) - 1)
            for s, t in zip(strict, turns, strict=True)
        ],
        lambda strict, turns: [
            (s or 0.0) - 0.25 * (len(t) - 1) * (s or 0.0)
            for s, t in zip(strict, turns, strict=True)
        ],
        lambda strict, turns: strict,
    ],
    "4.3": [
        lambda ratio, advantage, epsilon: ratio * advantage,
        lambda ratio, advantage, epsilon: min(max(ratio, 1 - epsilon), 1 + epsilon) * advantage,
        lambda ratio, advantage, epsilon: -objective(ratio, advantage, epsilon),
    ],
    "5.1": [
        lambda before, after: (max(0, sum(after) - sum(before)), max(0, sum(before) - sum(after))),
        lambda before, after: (sum(after), sum(before)),
        lambda before, after: RIGHT["5.1"](after, before),
    ],
    "5.2": [
        lambda minutes, seconds, start: round((60 * minutes - start) / seconds),
        lambda minutes, seconds, start: int((60 * minutes - start) // seconds),
        lambda minutes, seconds, start: int(60 * minutes // seconds),
    ],
    "6.1": [
        lambda d_in, d_out, r: d_in * r * r * d_out,
        lambda d_in, d_out, r: d_in * d_out,
        lambda d_in, d_out, r: r * d_in,
    ],
    "6.2": [
        lambda modules, targets: sorted(set(modules) & set(targets)),
        lambda modules, targets: [name for name in modules if name not in targets],
    ],
    "6.4": [
        lambda result: (
            f"{100 * result['before']['success']:.0f} % -> {100 * result['after']['success']:.0f} %"
        ),
        lambda result: report(result).split(", n = ")[0],
        lambda result: report(result).split(", change")[0],
        lambda result: report(result | {"after": result["before"]}),
        lambda result: "12 % [9, 21] -> 85 % [81, 95], n = 100; change +73 [+68, +77]",
    ],
}


@pytest.mark.parametrize(
    "agent, wanted",
    [
        (lambda seen, turn: None, r"todo"),
        (
            lambda seen, turn: f"click('{seen.elements[-1].bid}')",
            r"try again\. \d of 20 .* Seed 10\d\d: Select .* It did: click",
        ),
        (lambda seen, turn: seen.nonsense, r"try again\. AttributeError: .*nonsense"),
        (solution("n06-p2", "my_agent"), r"ok\. 20 of 20 validation pages of choose-list solved"),
    ],
    ids=["todo", "wrong", "raises", "right"],
)
def test_an_agent_is_played_in_real_browsers(capsys, browsers, agent, wanted):
    check_agent("6.3", agent, "choose-list", browsers)
    assert re.fullmatch(rf"Exercise 6\.3: {wanted}.*\n", capsys.readouterr().out)


def said(capsys, number, answer):
    check(number, answer)
    return capsys.readouterr().out


def test_every_check_has_right_and_wrong_answers_here():
    assert set(CHECKS) == set(RIGHT) == set(WRONG)
    assert all(len(answers) >= 2 for answers in WRONG.values())


@pytest.mark.parametrize("number", CHECKS)
def test_a_right_answer_is_ok(capsys, number):
    assert said(capsys, number, RIGHT[number]) == f"Exercise {number}: ok\n"


@pytest.mark.parametrize(
    "number, answer", [(number, answer) for number, answers in WRONG.items() for answer in answers]
)
def test_a_wrong_answer_is_told_what_fails(capsys, number, answer):
    assert re.match(
        rf"Exercise {re.escape(number)}: try again\. \S.{{5,}}", said(capsys, number, answer)
    )


@pytest.mark.parametrize("number", CHECKS)
def test_what_is_not_written_yet_is_todo(capsys, number):
    for answer in (None, lambda *_: None):
        assert said(capsys, number, answer) == f"Exercise {number}: todo\n"


@pytest.mark.parametrize("number", CHECKS)
@pytest.mark.parametrize("result", [0, "", [], (1, 2), object(), float("nan")])
def test_any_other_result_is_try_again(capsys, number, result):
    assert "try again" in said(capsys, number, lambda *_: result)


@pytest.mark.parametrize("number", [*CHECKS, "9.9"])
def test_an_answer_that_raises_stops_nothing(capsys, number):
    def breaks(*_):
        raise SystemExit("stop")

    assert "try again" in said(capsys, number, breaks)
    assert "try again" in said(capsys, number, lambda: undefined_name)  # noqa: F821


def test_an_answer_cannot_spoil_the_cases(capsys):
    def spoils(elements, role, name):
        elements.clear()

    check("1.1", spoils)
    assert said(capsys, "1.1", find_bid) == "Exercise 1.1: ok\n" or "ok" in said(
        capsys, "1.1", find_bid
    )


@pytest.mark.parametrize("folder", ["notebooks", "notebooks/zh"])
def test_the_solution_quotes_the_recorded_project(folder):
    recorded = ROOT / "recordings" / "project" / "choose-list"
    notebook = nbformat.read(next((ROOT / folder).glob("06_*.ipynb")), as_version=4)
    text = (
        next(c.source for c in notebook.cells if c.id == "n06-p4")
        .replace("，变化 ", ", change ")
        .replace("，", ", ")
    )
    assert report(json.loads((recorded / "result.json").read_text())) in text
    untrained = json.loads((recorded / "untrained" / "evaluation.json").read_text())["result"]
    assert (
        "{:.0f} % [{:.0f}, {:.0f}]".format(
            *(100 * untrained[key] for key in ("success", "low", "high"))
        )
        in text
    )
