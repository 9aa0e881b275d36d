"""What a script says before it acts: a line of thought, which a policy learns with the action.

A small policy writes the number of an element in one or two tokens, and whatever it has to work out
before (which word comes next, which price is the lowest) has to fit into those. A thought gives it
room: it says what is looked at and ends with the line of the element, whose number is then copied.
Large models answer like this when they are asked to: ReAct (Yao et al., 2022,
https://arxiv.org/abs/2210.03629).

A thought is made of the goal, the lines that the policy reads, and the script's action.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from helpers.browser.actions import ParsedAction, parse_action
from helpers.browser.orders import base_task
from helpers.evaluation.scripted.forms import MONTHS
from helpers.evaluation.scripted.page import find, minutes, ordinal, to_tick
from helpers.evaluation.scripted.words import same_meaning
from helpers.policy.listeners import line_of
from helpers.policy.prompts import PromptConfig, shown_lines

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

# "Submit" button 17 focused
_ELEMENT = re.compile(r'"(?P<name>(?:[^"\\]|\\.)*)" (?P<role>\S+) (?P<bid>\w+)\b(?P<state>.*)')
_LONGEST_LABEL = 40  # characters of a text that is taken for the label of the field behind it
_POST_BUTTONS = ("Reply", "Retweet", "Like", "Share")  # the pictures below a post, left to right


@dataclass(frozen=True)
class Shown:
    """An element as a line of the page shows it."""

    place: int
    """Of its line on the page."""
    name: str
    role: str
    bid: str
    state: str

    @property
    def line(self) -> str:
        """Its line up to its number."""
        return line_of(self.name, self.role, self.bid)


@dataclass(frozen=True)
class Look:
    """What an action was decided on: the goal and the page's lines."""

    goal: str
    lines: Sequence[str]
    action: ParsedAction

    @cached_property
    def elements(self) -> list[Shown]:
        """The elements of the page, top down."""
        found = [(place, _ELEMENT.match(line)) for place, line in enumerate(self.lines)]
        return [Shown(place, *match.groups()) for place, match in found if match]

    @cached_property
    def texts(self) -> list[str]:
        """The lines that are no elements, top down."""
        return [line for line in self.lines if not _ELEMENT.match(line)]

    @property
    def numbers(self) -> list[str]:
        """The texts that are whole numbers, top down."""
        return [text for text in self.texts if re.fullmatch(r"-?\d+", text)]

    @cached_property
    def target(self) -> Shown | None:
        """The element that the action is about."""
        return self.with_bid(self.bid)

    @property
    def bid(self) -> str:
        """The number of the element that the action is about; "" where it is about none."""
        args = self.action.args
        return args[0] if args and isinstance(args[0], str) else ""

    @property
    def filled(self) -> str:
        """What a text field is filled with; ValueError for any other action."""
        if self.action.name != "fill":
            raise ValueError("Nothing is filled in.")
        return str(self.action.args[1])

    @property
    def hands_in(self) -> bool:
        """Whether the action clicks "Submit"."""
        return self.target is not None and self.target.name == "Submit"

    def with_bid(self, bid: str) -> Shown | None:
        """The element with a number; None where no line shows it."""
        return next((shown for shown in self.elements if shown.bid == bid), None)

    def with_role(self, *roles: str) -> list[Shown]:
        """The elements of some roles, top down."""
        return [shown for shown in self.elements if shown.role in roles]


Reason = Callable[[Look], str]
"""Says why; "" or an error of what it looks for where there is nothing to say."""


def thought_of(task: str, look: Look) -> str:
    """The thought before an action, in one line: the reason, if the task has one, and the element.

    It is "" for an action on nothing that the page's lines show, where the task has no reason.
    """
    reason = _reason_of(task, look)
    said = [reason] if reason else []
    if look.target is not None:
        element = look.target.line
        if not reason and not look.target.name:
            element = f"{_label_of(look)} {element}".strip()
        if look.action.name == "drag_and_drop":
            onto = look.with_bid(str(look.action.args[1]))
            element += f" to {onto.line}" if onto else ""
        said.append(element)
    return " | ".join(said)


def with_thought(observation: BrowserObservation, answer: str, prompt: PromptConfig) -> str:
    """An answer below its thought; what is no action stays as it is.

    ``prompt``: what the policy reads, of which the thought is made.
    """
    action = parse_action(answer)
    if not action.ok:
        return answer
    look = Look(observation.goal, shown_lines(observation, prompt), action)
    thought = thought_of(base_task(observation.task), look)
    return f"{thought}\n{answer}" if thought else answer


def _reason_of(task: str, look: Look) -> str:
    """Why the action is taken; "" where the task's elements say enough."""
    reason = REASONS.get(task)
    if reason is None:
        return ""
    try:
        return reason(look)
    except (LookupError, ValueError):  # the page is not one that the reason was made for
        return ""


def _label_of(look: Look) -> str:
    """The text in the line before the element, where it can be the label of it."""
    place = look.target.place if look.target else 0
    before = look.lines[place - 1] if place else ""
    match = _ELEMENT.match(before)
    if match:
        return match["name"] if match["role"] == "rowheader" else ""
    return before if len(before) < _LONGEST_LABEL else ""


# ---- choosing ----


def _next_box(look: Look) -> str:
    """The word of the goal after which the next one comes."""
    words = to_tick(look.goal)
    if words == ["nothing"]:
        return "nothing"
    ticked = {box.name for box in look.with_role("checkbox") if "true" in box.state}
    done = [word for word in words if word in ticked]
    before = f"after {done[-1]}" if done else "first"
    return f"{before} no more" if look.hands_in else before


def _similar_boxes(look: Look) -> str:
    """Each box since the last that is ticked, with the word of the goal that means the same."""
    words = find(r"similar to (.*) and click Submit", look.goal)[1].split(", ")
    boxes = look.with_role("checkbox")
    ticked = [place for place, box in enumerate(boxes) if "true" in box.state]
    said = []
    for box in boxes[ticked[-1] + 1 if ticked else 0 :]:
        like = next((word for word in words if same_meaning(box.name, word)), "no")
        said.append(f"{box.name} {like}")
        if box == look.target:
            break
    return ", ".join(said) or "no more"


def _cheapest_or_shortest(look: Look) -> str:
    """All prices or durations, and the one that the goal wants."""
    if "cost" in look.goal or "cheapest" in look.goal:
        offers = re.findall(r"\$(\d+)", "\n".join(look.lines))
        size = [int(offer) for offer in offers]
    else:
        offers = [text for text in look.texts if minutes([text])]
        size = minutes(offers)
    most = "longest" in look.goal or "most expensive" in look.goal
    wanted = (max if most else min)(size)
    return f"{', '.join(offers)}: {offers[size.index(wanted)]}"


def _flight(look: Look) -> str:
    """The day in the calendar, and which of the flights it is."""
    if any(shown.name.startswith("Book flight") for shown in look.elements):
        return _cheapest_or_shortest(look)
    return _day_of_calendar(look) if _shown_month(look) else ""


def _kth_of_role(look: Look) -> str:
    """Which one it is of the elements with its role."""
    if look.target is None:
        return ""
    alike = look.with_role(look.target.role)
    return f"{look.target.role} {alike.index(look.target) + 1}" if len(alike) > 1 else ""


# ---- letters, words and numbers ----


def _counted_words(look: Look) -> str:
    """The words of a text, numbered up to the one that is asked for."""
    words = re.findall(r"[A-Za-z]+", " ".join(look.texts))
    numbered = [f"{k} {word}" for k, word in enumerate(words[: ordinal(look.goal)], 1)]
    return " ".join(numbered) if look.filled else ""


def _all_texts(look: Look) -> str:
    """The pieces of a text that has to be typed as one."""
    return " ".join(look.texts) if look.filled else ""


def _spelled(look: Look) -> str:
    """The letters of what is typed, one by one."""
    return " ".join(look.filled)


def _sum(look: Look) -> str:
    """The sum and its result."""
    return f"{look.texts[0]} {look.filled}"


def _solved_for_x(look: Look) -> str:
    """An equation such as "6 - x = 63", solved: "x = 6 - 63 = -57"."""
    left, sign, right, result = find(r"^(\w+) ([-+]) (\w+) = (-?\d+)$", look.texts[0]).groups()
    if left == "x":
        solved = f"{result} {'-' if sign == '+' else '+'} {right}"
    else:
        solved = f"{result} - {left}" if sign == "+" else f"{left} - {result}"
    return f"x = {solved} = {look.filled}"


def _odd_or_even(look: Look) -> str:
    """Which number it is about, and what it is."""
    numbers = look.numbers
    if look.hands_in:
        return f"{len(numbers)} of {len(numbers)} done"
    buttons = [shown for shown in look.elements if shown.name in ("Odd", "Even")]
    k = next(k for k, shown in enumerate(buttons) if shown == look.target)
    return f"{k // 2 + 1} of {len(numbers)}: {numbers[k // 2]} is {buttons[k].name.lower()}"


def _good_number(look: Look) -> str:
    """Whether the number that was made is one that the goal wants."""
    number = look.lines[0]
    if number == "-":
        return ""
    wish = find(r"Generate an? (?:number )?(.*?)(?: number)?,", look.goal)[1]
    return f"{number} {wish} {'yes' if look.hands_in else 'no'}"


def _hint(look: Look) -> str:
    """What the page says about the number that was guessed."""
    return " ".join(look.texts)[:_LONGEST_LABEL] if look.filled else ""


def _price(look: Look) -> str:
    """Whether the price is below the limit."""
    limit = find(r"\$[\d.]*\d", look.goal)[0]
    price = [text for text in look.texts if text.startswith("$")][-1]
    return f"{price} less than {limit} {'yes' if look.action.name == 'click' else 'no'}"


def _as_typed(pattern: str) -> Reason:
    """What the goal calls it, and how it is typed."""

    def reason(look: Look) -> str:
        return f"{find(pattern, look.goal)[1]} is {look.filled}"

    return reason


# ---- pages of many parts ----


def _post(look: Look) -> str:
    """Which of a user's posts it is, and which picture below it."""
    user = find(r"@\w+", look.goal)[0]
    button = find(r'"(.*?)"', look.goal)[1]
    asked = re.search(r"on (\d+) posts?", look.goal)
    count = f" of {asked[1]}" if asked else ""
    place = _POST_BUTTONS.index(button) if button in _POST_BUTTONS else -1
    before = "first"
    for k, (text, pictures) in enumerate(_posts_by(user, look), 1):
        if look.bid in pictures:
            return f"{user} {k}{count}, {before}: {text} {button} {pictures.index(look.bid) + 1}"
        before = f"after {pictures[place]}"
    if not look.hands_in:
        return ""
    return f"{user} {asked[1]}{count} done" if asked else f"{user} no more, {before}"


def _posts_by(user: str, look: Look) -> list[tuple[str, list[str]]]:
    """The posts of a user: the text, and the numbers of the pictures below it."""
    posts: list[tuple[str, list[str], str]] = []
    text = author = ""
    for line in look.lines:
        match = _ELEMENT.match(line)
        if not match and line.startswith("@"):
            author = line
        elif not match:
            text = line
        elif match["role"] == "image" and author:
            if not posts or posts[-1][2] != author or posts[-1][0] != text:
                posts.append((text, [], author))
            posts[-1][1].append(match["bid"])
    return [(text, pictures) for text, pictures, author in posts if author == user]


def _mail(look: Look) -> str:
    """Whose mail a picture belongs to, and which one it is."""
    owner, k = "", 0
    for shown in look.elements:
        if shown.role == "generic" and shown.name:
            owner, k = shown.name, 0
        k += shown.role == "image"
        if shown == look.target:
            return f"{owner} {k}" if shown.role == "image" and owner else ""
    return ""


def _contact(look: Look) -> str:
    """Whether the contact is the one that is looked for."""
    wanted = find(r"Find (\w+)", look.goal)[1]
    shown = look.with_role("heading")[0].name
    if shown != wanted:
        return f"{shown} not {wanted}"
    return f"{shown} is {wanted}, {find(r'their (.*?)[.]', look.goal)[1]}"


def _result(look: Look) -> str:
    """On which page of results the wanted one is; three are on each."""
    if not any("https" in text for text in look.texts):
        return ""
    page, place = divmod(ordinal(look.goal) - 1, 3)
    return f"{page * 3 + place + 1} is {place + 1} on page {page + 1}"


def _suggestion(look: Look) -> str:
    """Whether the suggestion in the field ends as it should."""
    if look.action.name == "fill":
        return ""
    ending = find(r'ends with "(.*?)"', look.goal)[1]
    value = find(r"value='(.*?)'", "\n".join(look.lines))[1]
    return f"{value} ends {ending} {'yes' if value.endswith(ending) else 'no'}"


# ---- calendars, sliders and places ----


def _shown_month(look: Look) -> str:
    """The month that a calendar shows; "" where none is open."""
    return next((text for text in look.texts if text in MONTHS), "")


def _day_of_calendar(look: Look) -> str:
    """The date, then how far the calendar is from its month, then its day."""
    month, day, year = find(r"(\d+)/(\d+)/(\d+)", look.goal).groups()
    shown, wanted = _shown_month(look), MONTHS[int(month) - 1]
    if not shown:
        return f"{month}/{day}/{year}"
    if shown != wanted:
        return f"{wanted} {int(month)}, now {shown} {MONTHS.index(shown) + 1}"
    return f"{wanted}, day {int(day)}"


def _slider(look: Look) -> str:
    """Where the sliders are, and where they should be; then which box it is."""
    wanted = re.findall(r"-?\d+", look.goal)
    shown = look.numbers
    boxes = look.with_role("checkbox")
    if boxes:  # the goal names a box after the number
        wanted = wanted[:1]
    if look.target in boxes:
        return f"{' '.join(shown)} is {wanted[0]}, checkbox {boxes.index(look.target) + 1}"
    return f"now {' '.join(shown)}, wanted {' '.join(wanted)}"


def _from_place_to_place(look: Look) -> str:
    """The places of a list between which an item is dragged."""
    items = [shown.bid for shown in look.with_role("listitem")]
    return f"{items.index(look.bid) + 1} to {items.index(str(look.action.args[1])) + 1}"


def _sorted(look: Look) -> str:
    """The numbers in the order that they should have."""
    numbers = sorted(int(shown.name) for shown in look.with_role("listitem"))
    return "sorted " + " ".join(map(str, numbers))


def _board(look: Look) -> str:
    """The free fields by number, and the one that is taken now."""
    fields = look.elements[:9]
    free = ["#" if field.role == "image" else str(k) for k, field in enumerate(fields, 1)]
    k = next(k for k, field in enumerate(fields, 1) if field == look.target)
    return f"{' '.join(free)}: {k}"


_DATES = ("choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
_MAILS = ("", "-delete", "-important", "-noscroll", "-nl-turk", "-star-reply", "-reply")

REASONS: dict[str, Reason] = {
    "click-checkboxes": _next_box,
    "click-checkboxes-transfer": _next_box,
    "click-checkboxes-large": _next_box,
    "click-checkboxes-soft": _similar_boxes,
    "buy-ticket": _cheapest_or_shortest,
    "book-flight": _flight,
    "book-flight-nodelay": _flight,
    "form-sequence-2": _kth_of_role,
    "form-sequence-3": _kth_of_role,
    "find-word": _counted_words,
    "text-transform": _all_texts,
    "enter-text-2": _spelled,
    "simple-arithmetic": _sum,
    "simple-algebra": _solved_for_x,
    "odd-or-even": _odd_or_even,
    "generate-number": _good_number,
    "guess-number": _hint,
    "stock-market": _price,
    "enter-date": _as_typed(r"(\d+/\d+/\d+)"),
    "enter-time": _as_typed(r"(\d+:\d+ [AP]M)"),
    "use-colorwheel": _as_typed(r"Select (\w+)"),
    "use-colorwheel-2": _as_typed(r"color (#\w+)"),
    "social-media": _post,
    "social-media-all": _post,
    "social-media-some": _post,
    **{f"email-inbox{kind}": _mail for kind in _MAILS},
    "phone-book": _contact,
    "search-engine": _result,
    "use-autocomplete": _suggestion,
    "use-autocomplete-nodelay": _suggestion,
    **dict.fromkeys(_DATES, _day_of_calendar),
    "use-slider": _slider,
    "use-slider-2": _slider,
    "use-spinner": _slider,
    "form-sequence": _slider,
    "drag-items": _from_place_to_place,
    "drag-items-grid": _from_place_to_place,
    "drag-sort-numbers": _sorted,
    "tic-tac-toe": _board,
}
"""The tasks in which an element's line does not say why it is the one."""
