"""Strings that no policy should get far with, in kinds; a fixed seed draws the same ones."""

import random
from collections.abc import Callable

from helpers.browser.actions import EVERY_ACTION, PLACES, parse_action

BUTTON = "13"  # the bid of click-test's only button
MARK = "/tmp/owned-by-a-string"  # what exists afterwards if any code ran

_WORDS = (
    *("I", "will", "now", "click", "the", "button"),
    *("because", "goal", "says", "so", "first", "then"),
)
_PIECES = (
    *("click", "fill", "press", "noop", "goto", "scroll", "eval"),
    *("(", ")", "'", '"', ",", "[", "]", "13", "'13'", "-", ".", " ", "\n", "\\", "\\'"),
    *("lambda:0", "{", "}", ";", "#", "click('13')"),
)
_TRICKS = (
    "__import__('os').system('touch {mark}')",
    "click(__import__('os').getcwd())",
    "().__class__.__bases__[0]",
    "click('13' if __import__('os') else '')",
    "exec(\"open('{mark}','w')\")",
    "click(open('{mark}', 'w'))",
    "import os; click('13')",
    "page.evaluate('core.endEpisode(1)')",
    "click(f'{{13}}')",
    "click(**{{'bid': '13'}})",
)
_ADDRESSES = (
    "javascript:core.endEpisode(1)",
    "file:///etc/passwd",
    "data:text/html,<script>1</script>",
    "http://127.0.0.1:1/",
    "about:blank",
    "chrome://version",
)
_CALLS_WITH_ADDRESS = (
    "goto('{}')",
    "click('{}')",
    "fill('13', '{}')",
    "press('13', '{}')",
    "new_tab('{}')",
)
_NUMBERS = (
    "-1",
    "1e99",
    "9" * 400,
    "nan",
    "inf",
    "0x10",
    "--1",
    "1_000",
    "5001",
    "-10001",
    "1" * 7,
)
_CALLS_WITH_NUMBER = ("noop({})", "scroll({}, 0)", "scroll(0, {})")
_CALLS_WITH_PLACE = (
    "mouse_click({}, {})",
    "mouse_move({}, {})",
    "mouse_drag_and_drop(0, 0, {}, {})",
    "mouse_click({}, {}, 'right')",
    "scroll_at({}, {}, 0, 100)",
    "mouse_upload_file({}, {}, '/etc/passwd')",
)
_CALLS_WITH_KEYS = ("keyboard_press('{}')", "keyboard_type('{}')", "keyboard_down('{}')")
_KEYS = ("Control+Nosuch", "Control+t", "F12", "Alt+F4", "Control+Shift+i", "+", "", "\\n", "é")
_CONTROL = (*range(32), 127, 0x202E, 0x200B, 0xFEFF)
_LONE_SURROGATES = (0xD800, 0xDFFF)
_QUOTES = "'" + '"'
_TWINS = dict(zip("clik'13", "сӏіκ’１３", strict=True))  # each looks like the letter it stands for


def _around_the_grammar(draw: random.Random) -> str:
    return "".join(draw.choices(_PIECES, k=draw.randint(1, 12)))


def _prose(draw: random.Random, call: str) -> str:
    words = draw.choices(_WORDS, k=draw.randint(2, 9))
    return " ".join([*words[:3], call, *words[3:]])


def _call_in_prose(draw: random.Random) -> str:
    return _prose(draw, "click('13')")


def _think_block(draw: random.Random) -> str:
    thought = _prose(draw, "click(12)")
    space = draw.choice(["", " "])
    return f"<think>{thought}</think>{space}click('{draw.randint(1, 20)}')"


def _several_calls(draw: random.Random) -> str:
    if draw.random() < 0.5:
        return draw.choice([" ", "; ", "\n", ", "]).join(["click('13')"] * draw.randint(2, 5))
    return "click(" * draw.randint(2, 400) + "'13'" + ")" * draw.randint(0, 400)


def _control_character(draw: random.Random) -> str:
    return f"click({chr(draw.choice(_CONTROL))}'13')"


def _invalid_utf8(draw: random.Random) -> str:
    first = chr(draw.randint(*_LONE_SURROGATES))
    second = chr(draw.randint(*_LONE_SURROGATES))
    return f"{first}fill('13', '{second}')"


def _very_long(draw: random.Random) -> str:
    longest = draw.random() < 0.02
    length = 1_000_000 if longest else draw.choice([1_001, 5_000, 100_000])
    return f"fill('13', '{'a' * length}')"


def _number_out_of_range(draw: random.Random) -> str:
    call = draw.choice(_CALLS_WITH_NUMBER)
    return call.format(draw.choice(_NUMBERS))


def _places_and_keys(draw: random.Random) -> str:
    if draw.random() < 0.5:
        return draw.choice(_CALLS_WITH_KEYS).format(draw.choice(_KEYS + _ADDRESSES))
    numbers = (*_NUMBERS, "0", "498", "321", "498.5")
    return draw.choice(_CALLS_WITH_PLACE).format(draw.choice(numbers), draw.choice(numbers))


def _quotes_and_escapes(draw: random.Random) -> str:
    first = draw.choice(_QUOTES)
    rest = "".join(draw.choices(_QUOTES + "n13" + "\\", k=9))
    return f"click({first}{rest}')"


def _look_alike_letters(draw: random.Random) -> str:
    return "".join(draw.choice([letter, _TWINS.get(letter, letter)]) for letter in "click('13')")


def _address(draw: random.Random) -> str:
    call = draw.choice(_CALLS_WITH_ADDRESS)
    return call.format(draw.choice(_ADDRESSES))


def _trick(draw: random.Random) -> str:
    return draw.choice(_TRICKS).format(mark=MARK)


STRINGS: dict[str, Callable[[random.Random], str]] = {
    "around the grammar": _around_the_grammar,
    "calls inside prose": _call_in_prose,
    "think blocks": _think_block,
    "several and nested calls": _several_calls,
    "control characters": _control_character,
    "invalid UTF-8": _invalid_utf8,
    "very long": _very_long,
    "numbers out of range": _number_out_of_range,
    "quotes and escapes": _quotes_and_escapes,
    "look-alike letters": _look_alike_letters,
    "addresses": _address,
    "dunder and import tricks": _trick,
    "places and keys": _places_and_keys,
}


def fuzzed(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """``n`` pairs (kind, string), evenly over `STRINGS`."""
    draw, kinds = random.Random(seed), list(STRINGS)
    strings = []
    for i in range(n):
        kind = kinds[i % len(kinds)]
        strings.append((kind, STRINGS[kind](draw)))
    return strings


def solves_click_test(text: str) -> bool:
    """Whether this is a valid action that may reach the only button of the page, which alone may be
    paid: on the button, on a place, or of a key, which goes to whatever has the focus."""
    parsed = parse_action(text, actions=EVERY_ACTION)
    return parsed.ok and (BUTTON in parsed.args or parsed.name in PLACES)
