"""The action parser: what it accepts, what it calls what it refuses, and that nothing can make it
raise."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.browser.actions import (
    ACTIONS,
    KINDS,
    MAX_ANSWER,
    MAX_STRING,
    format_action,
    parse_action,
    signature,
)

BIDS = frozenset({"13", "14", "15", "16"})


@pytest.mark.parametrize("name", ACTIONS)
def test_every_example_is_an_action_in_its_canonical_form(name):
    parsed = parse_action(ACTIONS[name].example, BIDS)
    assert (parsed.kind, parsed.name) == ("ok", name)
    assert (parsed.action, parsed.reason) == (ACTIONS[name].example, "")
    assert len(parsed.args) == len(ACTIONS[name].params)
    assert signature(name).startswith(name + "(")


@pytest.mark.parametrize(
    "answer, action",
    [
        ("Action: click('13')", "click('13')"),
        (' click("13")\n', "click('13')"),
        ("noop()", "noop(500)"),
        ("fill('15', 'it\\'s')", "fill('15', 'it\\'s')"),
        ("fill('15', \"it's\")", "fill('15', 'it\\'s')"),
        ("fill('15', 'a, b) (c')", "fill('15', 'a, b) (c')"),
        ("fill('15', '')", "fill('15', '')"),
        ("select_option('16', ['Peru', 'Chile'])", "select_option('16', ['Peru', 'Chile'])"),
        ("scroll( 0 , -200.5 )", "scroll(0, -200.5)"),
        ("click('a13')", "click('a13')"),
        ("fill('15', 'click(\\'13\\')')", "fill('15', 'click(\\'13\\')')"),
    ],
)
def test_accepts(answer, action):
    parsed = parse_action(answer)
    assert (parsed.kind, parsed.action) == ("ok", action)


@pytest.mark.parametrize(
    "answer, kind",
    [
        ("", "no_call"),
        ("click", "no_call"),
        ("I click the button", "no_call"),
        ("I would click('13')", "no_call"),
        ("click('13') now", "no_call"),
        ("click('13'", "no_call"),
        ("<think>click('13')</think>", "no_call"),
        ("click['13']", "no_call"),
        ("page.click('13')", "no_call"),
        ("x" * (MAX_ANSWER + 1), "no_call"),
        ("goto('javascript:core.endEpisode(1)')", "unknown_action"),
        ("send_keys('Enter')", "unknown_action"),
        ("__import__('os')", "unknown_action"),
        ("Click('13')", "unknown_action"),
        ("action(click)", "unknown_action"),
        ("click(13)", "bad_arguments"),
        ("click()", "bad_arguments"),
        ("click('13', '14')", "bad_arguments"),
        ("click(bid='13')", "bad_arguments"),
        ("click('13' + '4')", "bad_arguments"),
        ("click('1 3')", "bad_arguments"),
        ("click('')", "bad_arguments"),
        ("click(['13'])", "bad_arguments"),
        ("fill('15', 3)", "bad_arguments"),
        ("fill('15', __import__('os'))", "bad_arguments"),
        ("scroll('0', '200')", "bad_arguments"),
        ("scroll('down')", "bad_arguments"),
        ("noop(-1)", "bad_arguments"),
        ("noop(1000000)", "bad_arguments"),
        ("noop(1e3)", "bad_arguments"),
        ("select_option('16', [])", "bad_arguments"),
        ("click('13',)", "bad_arguments"),
        (f"fill('15', '{'x' * (MAX_STRING + 1)}')", "bad_arguments"),
        ("click('13\n')", "bad_arguments"),
        ("click('13'); click('14')", "several_calls"),
        ("click('13')\nclick('14')", "several_calls"),
        ("First fill('15', 'a') then click('13')", "several_calls"),
    ],
)
def test_refuses_with_a_kind_and_a_reason(answer, kind):
    parsed = parse_action(answer)
    assert parsed.kind == kind
    assert kind in KINDS
    assert 0 < len(parsed.reason) < 300
    assert "\n" not in parsed.reason
    assert (parsed.ok, parsed.action, parsed.args) == (False, "", ())


def test_an_element_that_is_not_there_is_unknown_only_where_the_page_is_known():
    assert parse_action("click('99')", BIDS).kind == "unknown_bid"
    assert parse_action("drag_and_drop('13', '99')", BIDS).kind == "unknown_bid"
    assert "'99'" in parse_action("click('99')", BIDS).reason
    assert parse_action("click('99')").ok
    assert parse_action("scroll(0, 99)", BIDS).ok


def canonical(parsed):
    if parsed.ok:
        assert parse_action(parsed.action) == parsed
        assert parse_action(f"Action: {parsed.action}\n") == parsed
        assert format_action(parsed.name, *parsed.args) == parsed.action
    else:
        assert parsed.reason
        assert not parsed.action
    assert parsed.kind in KINDS


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(text):
    canonical(parse_action(text, BIDS))


PIECES = [
    *ACTIONS,
    "(",
    ")",
    ",",
    " ",
    "'13'",
    '"13"',
    "'a\\'b'",
    "'\\n'",
    "13",
    "-1.5",
    "['x', 'y']",
    "[",
    "]",
    "'",
    '"',
    "\\",
    "\n",
    "Action:",
    "goto",
    "é",
    "\x00",
    "１３",
    "(click('13'))",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@settings(max_examples=500)
def test_any_mixture_of_its_own_pieces_is_read_without_an_error(text):
    canonical(parse_action(text, BIDS))


_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r"), max_size=50)
_VALUES = {
    "bid": st.from_regex(r"[A-Za-z0-9]{1,16}", fullmatch=True),
    "number": st.integers(0, 5_000) | st.integers(0, 4_999).map(lambda n: n + 0.25),
    "str": _TEXT,
    "strs": _TEXT | st.lists(_TEXT, min_size=1, max_size=3),
}


@given(st.data())
def test_what_format_action_writes_is_read_back(data):
    name = data.draw(st.sampled_from(list(ACTIONS)))
    args = [data.draw(_VALUES[param.type]) for param in ACTIONS[name].params]
    parsed = parse_action(format_action(name, *args))
    assert (parsed.kind, parsed.name, list(parsed.args)) == ("ok", name, args)


def test_hostile_answers_take_no_longer_than_their_length():
    """Linear, not exponential: an answer that a regular expression could try in 2^n ways returns at
    all."""
    begin = time.process_time()
    for text in (
        "click(" + "'a'," * 900,
        "click('" + "\\'" * 1900,
        "click([" + "'a', " * 700,
        "click(" * 600,
        "Action:" * 500,
        "fill('" + " " * 3900,
    ):
        assert not parse_action(text).ok
    assert time.process_time() - begin < 20
