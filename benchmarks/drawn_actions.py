"""Tasks, seeds and actions by chance: what parity is tried with that nobody thought of."""

import random
from collections.abc import Callable
from typing import NamedTuple

from helpers.browser import BrowserClient, BrowserObservation, Element, list_tasks
from helpers.browser.actions import format_action, parse_action
from helpers.browser.options import PICTURE
from helpers.evaluation.scripted import SCRIPTS

SEEDS = range(1_000, 1_000_000)  # not those of the record
MOST_ACTIONS = 6
MOST_OTHERS = 3  # episodes on the session before
TEXTS = ("ab", "12", "03/04/2017", "", "Zoë, 5 o'clock", "a\nb")
KEYS = (
    *("Tab", "Shift+Tab", "Enter", "Escape", "Backspace", "ArrowDown", "ArrowUp", "ArrowLeft"),
    *("ArrowRight", "Home", "End", "PageDown", "Delete", "Control+a", "Space", "a"),
)
SCROLLS = ((0, 100), (0, -100), (0, 300), (50, 0))
WRONG = 0.15  # of a script's actions are drawn instead
ON_PLACES = 0.75  # of the actions of an episode that is drawn with places


class Drawn(NamedTuple):
    """An episode to be played. The same number of the same draw is always the same one."""

    task: str
    seed: int
    scripted: bool  # by the task's script, with a wrong action now and then
    most: int  # actions
    others: list[tuple[str, int]]  # tasks and seeds that are played on the session before
    draw: random.Random  # for its actions
    places: bool = False  # whether most of its actions name a place, not an element


def draw_episode(number: int, seed: int, places: bool = False) -> Drawn:
    """Number ``number`` of the draw ``seed``; one with ``places`` is another draw."""
    draw = random.Random(f"{seed} {number}{' places' if places else ''}")
    tasks = list_tasks()
    task = draw.choice(tasks)
    before = [
        (draw.choice([task, draw.choice(tasks)]), draw.choice(SEEDS))
        for _ in range(draw.randint(1, MOST_OTHERS))
    ]
    scripted = task in SCRIPTS and draw.random() < 0.5
    most = draw.randint(1, MOST_ACTIONS)
    return Drawn(task, draw.choice(SEEDS), scripted and not places, most, before, draw, places)


def play_drawn(client: BrowserClient, drawn: Drawn) -> tuple[list[BrowserObservation], list[str]]:
    """Draw an episode's actions while it is played, with pictures and details: what was seen, and
    the actions."""
    seen = [client.reset(drawn.task, drawn.seed, screenshot=True, details=True)]
    actions: list[str] = []
    while len(actions) < drawn.most and not seen[-1].done:
        actions.append(next_action(drawn, seen[-1], len(actions)))
        seen.append(client.step(actions[-1], screenshot=True, details=True))
    return seen, actions


def play_others(client: BrowserClient, drawn: Drawn) -> None:
    """The episodes before, with actions by chance."""
    for task, seed in drawn.others:
        draw = random.Random(f"{task} {seed}")
        seen = client.reset(task, seed)
        for _ in range(draw.randint(0, MOST_ACTIONS)):
            if seen.done:
                break
            seen = client.step(draw_action(seen, draw))


def next_action(drawn: Drawn, seen: BrowserObservation, turn: int) -> str:
    """What the script does (it waits where it knows no more), and now and then, or where its answer
    is none of the grammar's actions, an action by chance."""
    if drawn.scripted and drawn.draw.random() >= WRONG:
        action = SCRIPTS[drawn.task](seen, turn)
        if parse_action(action).ok:  # stock would name another error
            return action
    if drawn.places and drawn.draw.random() < ON_PLACES:
        return draw_on_place(seen, drawn.draw)
    return draw_action(seen, drawn.draw)


def draw_action(seen: BrowserObservation, draw: random.Random) -> str:
    """Any action that the page may answer, clicks most often."""
    if not seen.elements:
        return "noop(500)"
    kinds = [*KINDS, *([_fill] * 4 if _fields(seen) else [])]
    kinds += [_select] * 3 if _lists(seen) else []
    return draw.choice(kinds)(seen, draw)


def draw_on_place(seen: BrowserObservation, draw: random.Random) -> str:
    """Any action that names a place of the picture, or goes to whatever has the focus."""
    return draw.choice(PLACE_KINDS)(seen, draw)


# ---- one kind each ----


def _fields(seen: BrowserObservation) -> list[Element]:
    return [e for e in seen.elements if e.role in ("textbox", "searchbox", "spinbutton")]


def _lists(seen: BrowserObservation) -> list[Element]:
    return [e for e in seen.elements if e.role in ("combobox", "listbox")]


def _any(seen: BrowserObservation, draw: random.Random) -> str:
    return draw.choice(seen.elements).bid


def _likely(seen: BrowserObservation, draw: random.Random) -> str:
    likely = [e.bid for e in seen.elements if e.clickable or e.role == "button"]
    return draw.choice(likely) if likely else _any(seen, draw)


def _click(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("click", _likely(seen, draw))


def _wrong_click(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("click", draw.choice([_any(seen, draw), "0", "999"]))


def _fill(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("fill", draw.choice(_fields(seen)).bid, draw.choice(TEXTS))


def _select(seen: BrowserObservation, draw: random.Random) -> str:
    options = [e.name for e in seen.elements if e.role == "option" and e.name] or ["none such"]
    return format_action("select_option", draw.choice(_lists(seen)).bid, draw.choice(options))


def _press(seen: BrowserObservation, draw: random.Random) -> str:
    fields = [e.bid for e in _fields(seen)] or [_likely(seen, draw)]
    bid = draw.choice([draw.choice(fields), _any(seen, draw)])
    return format_action("press", bid, draw.choice(KEYS))


def _drag(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("drag_and_drop", _likely(seen, draw), _any(seen, draw))


def _hover(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("hover", _any(seen, draw))


def _dblclick(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("dblclick", _likely(seen, draw))


def _scroll(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("scroll", *draw.choice(SCROLLS))


def _wait(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("noop", draw.choice([100, 500, 1_000]))


def _focus(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action(draw.choice(["focus", "clear"]), _any(seen, draw))


Kind = Callable[[BrowserObservation, random.Random], str]
KINDS: tuple[Kind, ...] = (
    *[_click] * 6,
    *[_wrong_click] * 2,
    *[_press] * 2,
    *[_hover, _dblclick, _drag, _scroll, _wait, _focus],
)


# ---- those on places ----


def _place(seen: BrowserObservation, draw: random.Random) -> tuple[float, float]:
    """Mostly somewhere in an element that listens to clicks, else anywhere in the picture."""
    width, height = PICTURE
    boxes = [e.box for e in seen.elements if e.box and (e.clickable or e.role == "button")]
    if boxes and draw.random() < 0.8:
        left, top, wide, high = draw.choice(boxes)
        x, y = left + draw.random() * wide, top + draw.random() * high
        if 0 <= x <= width and 0 <= y <= height:
            return round(x, 1), round(y, 1)
    return draw.randint(0, width), draw.randint(0, height)


def _click_place(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("mouse_click", *_place(seen, draw))


def _other_on_place(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action(draw.choice(["mouse_move", "mouse_dblclick"]), *_place(seen, draw))


def _drag_places(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("mouse_drag_and_drop", *_place(seen, draw), *_place(seen, draw))


def _press_key(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("keyboard_press", draw.choice(KEYS))


def _type(seen: BrowserObservation, draw: random.Random) -> str:
    return format_action("keyboard_type", draw.choice(TEXTS))


PLACE_KINDS: tuple[Kind, ...] = (
    *[_click_place] * 5,
    *[_other_on_place] * 2,
    *[_drag_places, _press_key, _type],
)
