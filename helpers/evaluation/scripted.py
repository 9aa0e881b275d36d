"""A scripted solution for one task of each family: what the environment must pay 1.0 for.

Each oracle is an agent, ``oracle(observation, turn) -> action``, that reads only what a policy sees. `SCRIPTS` maps tasks to
them. They are upper bounds for the results and witnesses in the audit of rewards (`benchmarks.audit`); some are not perfect, and
the audit says how often each is paid.
"""

import re
from collections.abc import Callable
from typing import Any

from helpers.browser.actions import format_action
from helpers.evaluation.agents import text_match_agent

Oracle = Callable[[Any, int], str]


def click(element: Any) -> str:
    return format_action("click", getattr(element, "bid", element))


def fill(element: Any, text: str) -> str:
    return format_action("fill", element.bid, text)


def all_of(seen: Any, *roles: str) -> list:
    return [e for e in seen.elements if e.role in roles]


def named(seen: Any, name: str, *roles: str) -> Any:
    """The first element with this name (case apart), of one of the roles if any are given; None where there is none."""
    return next(
        (
            e
            for e in seen.elements
            if e.name.strip().lower() == name.strip().lower() and (not roles or e.role in roles)
        ),
        None,
    )


def quoted(seen: Any) -> list[str]:
    return re.findall(r'"([^"]*)"', seen.goal)


def submit(seen: Any) -> str:
    """The last button of the page, which in these tasks is the one that hands in."""
    return click((named(seen, "Submit", "button") or all_of(seen, "button")[-1]).bid)


def texts(seen: Any) -> list[str]:
    """The plain texts of the page, top down."""
    return re.findall(r"StaticText '(.*)'$", seen.axtree_txt, re.MULTILINE)


def in_turn(*steps: Callable[[Any], str]) -> Oracle:
    """One step per turn; the last one is repeated."""
    return lambda seen, turn: steps[min(turn, len(steps) - 1)](seen)


def fill_fields(values: Callable[[Any], list[str]], *roles: str) -> Oracle:
    """Types one value per turn into the fields, top down, then hands in."""

    def act(seen: Any, turn: int) -> str:
        wanted = values(seen)
        return (
            fill(all_of(seen, *roles or ("textbox",))[turn], wanted[turn])
            if turn < len(wanted)
            else submit(seen)
        )

    return act


def choose(role: str) -> Oracle:
    """Ticks what the goal lists ("Select a, b and click Submit."), one box per turn, then hands in."""

    def act(seen: Any, turn: int) -> str:
        names = re.match(r"Select (.*?)(?: and click Submit\.?)?$", seen.goal)[1].split(", ")
        missing = [e for n in names if (e := named(seen, n, role)) and e.value != "true"]
        return click(missing[0]) if missing else submit(seen)

    return act


def select_option(seen: Any, turn: int) -> str:
    names = re.match(r"Select (.*) from the (?:scroll )?list", seen.goal)[1].split(", ")
    chosen = names if len(names) > 1 else names[0]
    return (
        format_action("select_option", all_of(seen, "combobox", "listbox")[0].bid, chosen)
        if turn == 0
        else submit(seen)
    )


def tab(seen: Any, turn: int) -> str:
    return click(named(seen, re.search(r"Tab #\d+", seen.goal)[0], "link", "tab"))


def button_in_words(seen: Any, turn: int) -> str:
    """ "Click button ONE, then click button TWO." """
    return click(named(seen, re.findall(r"button ([A-Z]+)", seen.goal)[turn], "button"))


def widget(seen: Any, turn: int) -> str:
    kind = quoted(seen)[0]
    if kind in ("text", "textarea"):
        boxes = [e for e in all_of(seen, "textbox") if (e.box[3] > 24) == (kind == "textarea")]
        return click(boxes[0])
    return click(all_of(seen, kind)[0])


def nth(role: str) -> Oracle:
    """The element of a role that the goal counts ("the 2nd input"), or the only one."""

    def act(seen: Any, turn: int) -> str:
        count = re.search(r"(\d+)(?:st|nd|rd|th)", seen.goal)
        return click(all_of(seen, role)[int(count[1]) - 1 if count else 0])

    return act


def menu(seen: Any, turn: int) -> str:
    """Walks down a menu: hover on each step but the last."""
    path = seen.goal.removeprefix("Select ").split(">")
    element = named(seen, path[turn], "menuitem")
    return click(element) if turn == len(path) - 1 else format_action("hover", element.bid)


def menu_button(seen: Any, turn: int) -> str:
    """Opens the menu, then walks to the item; a submenu opens under the mouse."""
    item = named(seen, quoted(seen)[-1], "menuitem")
    if item:
        return click(item)
    branches = [e for e in all_of(seen, "menuitem") if e.name == "Playback"]
    return (
        format_action("hover", branches[0].bid)
        if branches
        else click(named(seen, "Menu", "button"))
    )


def odd_or_even(seen: Any, turn: int) -> str:
    """Each row has one button of either kind, so the button's index is the row's."""
    numbers = [int(t) for t in texts(seen) if re.fullmatch(r"-?\d+", t)]
    if turn >= len(numbers):
        return submit(seen)
    return click(
        [e for e in all_of(seen, "button") if e.name == ("Odd" if numbers[turn] % 2 else "Even")][
            turn
        ]
    )


def arithmetic(seen: Any) -> list[str]:
    a, sign, b = re.search(r"(-?\d+) ([x+\-]) (-?\d+)", " ".join(texts(seen))).groups()
    return [str({"x": int(a) * int(b), "+": int(a) + int(b), "-": int(a) - int(b)}[sign])]


def algebra(seen: Any) -> list[str]:
    left, right = next(t for t in texts(seen) if "=" in t and t != "x =").split("=")
    a, sign, b = re.fullmatch(r"\s*(x|-?\d+)\s*([+\-])\s*(x|-?\d+)\s*", left).groups()
    c = int(right)
    if a == "x":
        return [str(c - int(b) if sign == "+" else c + int(b))]
    return [str(c - int(a) if sign == "+" else int(a) - c)]


def nth_word(seen: Any) -> list[str]:
    words = re.findall(r"[A-Za-z]+", " ".join(texts(seen)))
    return [words[int(re.search(r"(\d+)(?:st|nd|rd|th)", seen.goal)[1]) - 1]]


def table(seen: Any) -> dict[str, str]:
    cells = [e.name for e in all_of(seen, "cell")]
    return dict(zip(cells[::2], cells[1::2], strict=False))


def labels_of_table(seen: Any) -> list[str]:
    found = table(seen)
    below = [t.rstrip(": ") for t in texts(seen) if t.rstrip(": ") in found]
    return [found[name] for name in below[-2:]]


def movie_search(seen: Any, turn: int) -> str:
    genre, director, year = re.match(
        r"Search for (\w+) movies directed by (\w+) from year (\d+)", seen.goal
    ).groups()
    order = re.findall(r"'(Year|Genre|Director)(?: Name)?'", seen.axtree_txt)
    order = list(dict.fromkeys(order))
    values = {"Year": year, "Genre": genre, "Director": director}
    if turn < 3:
        return fill(all_of(seen, "textbox")[turn], values[order[turn]])
    return click(all_of(seen, "button")[-1] if all_of(seen, "button") else seen.elements[-1])


def ticket(seen: Any, turn: int) -> str:
    buttons = [e for e in all_of(seen, "button") if e.name.startswith("Book for")]
    if "duration" in seen.goal:
        values = [
            60 * int(h) + int(m)
            for h, m in re.findall(r"StaticText '(\d+)h (\d+)m'", seen.axtree_txt)
        ]
    else:
        values = [int(e.name.rpartition("$")[2]) for e in buttons]
    best = max if re.search("most expensive|longest", seen.goal) else min
    return click(buttons[values.index(best(values))])


def guess(seen: Any, turn: int) -> str:
    """Goes through the numbers; each takes two turns, typing and handing in."""
    return submit(seen) if turn % 2 else fill(all_of(seen, "spinbutton")[0], str(turn // 2))


def search(seen: Any, turn: int) -> str:
    """Three results stand on a page, in front of the list of pages."""
    wanted, links = int(re.search(r"(\d+)(?:st|nd|rd|th)", seen.goal)[1]) - 1, all_of(seen, "link")
    if turn < 2:
        return (
            fill(all_of(seen, "textbox")[0], text_of(seen))
            if turn == 0
            else click(named(seen, "Search", "button"))
        )
    if turn == 2 and wanted >= 3:
        return click([e for e in links if e.name == str(wanted // 3 + 1)][-1])
    return click(links[wanted % 3])


def calendar(seen: Any, turn: int) -> str:
    """Opens the calendar, goes back from December month by month, takes the day, hands in."""
    month, day = map(int, read_date(seen).split("/")[:2])
    if all_of(seen, "textbox")[0].value:
        return submit(seen)
    if turn == 0:
        return click(all_of(seen, "textbox")[0])
    return click(
        named(seen, "Prev", "link") if turn <= 12 - month else named(seen, str(day), "link")
    )


def in_tree(seen: Any, turn: int) -> str:
    """Clicks the name where it is shown, else opens the folders one after the other: items with parts that can be clicked."""
    lines = seen.axtree_txt.splitlines()
    for line, below in zip(lines, lines[1:], strict=False):
        if below.strip() == f"StaticText '{text_of(seen)}'":
            return click(re.search(r"\[(\w+)\]", line)[1])
    pairs = zip(seen.elements, seen.elements[1:], strict=False)
    return click(
        [e for e, after in pairs if e.role == "listitem" and after.role == "generic"][turn]
    )


def read_date(seen: Any) -> str:
    return re.search(r"\d\d/\d\d/\d{4}", seen.goal)[0]


def enter_date(seen: Any, turn: int) -> str:
    month, day, year = read_date(seen).split("/")
    return format_action("fill", "14", f"{year}-{month}-{day}") if turn == 0 else submit(seen)


def enter_time(seen: Any, turn: int) -> str:
    hour, minute, half = re.search(r"(\d+):(\d+) ([AP]M)", seen.goal).groups()
    hour = int(hour) % 12 + (12 if half == "PM" else 0)
    return format_action("fill", "14", f"{hour:02d}:{minute}") if turn == 0 else submit(seen)


def spinner(seen: Any, turn: int) -> str:
    return (
        fill(all_of(seen, "spinbutton")[0], re.search(r"Select (-?\d+)", seen.goal)[1])
        if turn == 0
        else submit(seen)
    )


def autocomplete(seen: Any, turn: int) -> str:
    """Types the beginning, presses down until the suggestion ends as it should, leaves the field, hands in."""
    parts, field = quoted(seen), all_of(seen, "textbox")[0]
    if turn == 0:
        return fill(field, parts[0])
    if field.value == parts[0] or not field.value.endswith(parts[-1]):
        return format_action("press", field.bid, "ArrowDown")
    return format_action("press", field.bid, "Tab") if field.focused else submit(seen)


def collapsible(seen: Any, turn: int) -> str:
    return click(all_of(seen, "tab")[0]) if turn == 0 else click(named(seen, "Submit", "button"))


def dialog(seen: Any, turn: int) -> str:
    wanted = quoted(seen)[0] if quoted(seen) else "x"
    return click(named(seen, "Close" if wanted == "x" else wanted, "button"))


def identify(seen: Any, turn: int) -> str:
    """A letter or a digit is text; of drawn shapes the tree says nothing."""
    drawn = texts(seen)[:1]
    name = ("Number" if drawn[0].isdigit() else "Letter") if drawn else "Rectangle"
    return click(named(seen, name, "button"))


def text_of(seen: Any) -> str:
    return quoted(seen)[0]


def cased(seen: Any) -> list[str]:
    return [text_of(seen).lower() if "lower case" in seen.goal else text_of(seen).upper()]


SCRIPTS: dict[str, Oracle] = {
    **dict.fromkeys(["click-test", "click-button", "unicode-test"], text_match_agent),
    **dict.fromkeys(
        ["click-test-2", "click-test-transfer", "click-button-sequence"], button_in_words
    ),
    **dict.fromkeys(["click-dialog", "click-dialog-2"], dialog),
    "click-tab": tab,
    "click-widget": widget,
    "click-menu": menu,
    "click-option": choose("radio"),
    **dict.fromkeys(
        ["click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer"],
        choose("checkbox"),
    ),
    **dict.fromkeys(["click-collapsible", "click-collapsible-nodelay"], collapsible),
    **dict.fromkeys(["choose-list", "click-scroll-list"], select_option),
    **dict.fromkeys(["focus-text", "focus-text-2"], nth("textbox")),
    **dict.fromkeys(
        ["enter-text", "enter-text-dynamic"], fill_fields(lambda seen: [text_of(seen)])
    ),
    "enter-text-2": fill_fields(cased),
    "enter-password": fill_fields(lambda seen: [text_of(seen)] * 2),
    "enter-date": enter_date,
    "enter-time": enter_time,
    "use-spinner": spinner,
    "login-user": fill_fields(quoted),
    "find-word": fill_fields(nth_word),
    "text-transform": fill_fields(lambda seen: ["".join(texts(seen))]),
    "simple-arithmetic": fill_fields(arithmetic),
    "simple-algebra": fill_fields(algebra),
    "read-table": fill_fields(
        lambda seen: [table(seen)[re.search(r"value of (.*) into", seen.goal)[1]]]
    ),
    "read-table-2": fill_fields(labels_of_table),
    "odd-or-even": odd_or_even,
    **dict.fromkeys(["multi-layouts", "multi-orderings"], movie_search),
    "buy-ticket": ticket,
    "guess-number": guess,
    **dict.fromkeys(
        ["choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay"], calendar
    ),
    "navigate-tree": in_tree,
    "click-menu-2": menu_button,
    "search-engine": search,
    **dict.fromkeys(["use-autocomplete", "use-autocomplete-nodelay"], autocomplete),
    "form-sequence-3": in_turn(
        lambda seen: format_action(
            "select_option",
            all_of(seen, "combobox")[0].bid,
            re.search(r"Choose (.*?) from", seen.goal)[1],
        ),
        lambda seen: click(named(seen, quoted(seen)[-1], "button")),
    ),
    "form-sequence-2": in_turn(
        lambda seen: click(
            all_of(seen, "radio")[int(re.search(r"(\d)\w\w radio", seen.goal)[1]) - 1]
        ),
        lambda seen: fill(
            all_of(seen, "textbox")[int(re.search(r"(\d)\w\w textbox", seen.goal)[1]) - 1],
            text_of(seen),
        ),
        submit,
    ),
    "identify-shape": identify,
}
