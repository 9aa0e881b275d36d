"""Scripts for forms of several steps: searches, dates, times, suggestions, guesses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.evaluation.scripted.page import (
    click,
    fill,
    find,
    first_quoted,
    ordinal,
    press,
    quoted,
    select,
    submit,
    with_name,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

RESULTS_A_PAGE = 3  # of the search engine
MONTH_SHOWN_FIRST = 12  # the calendar opens on December
DATE_OR_TIME_BID = "14"  # on both pages the field is the first element of all


def drop_down_then_button(seen: BrowserObservation, turn: int) -> str:
    """Chooses an option, then presses the button that the goal names last."""
    if turn == 0:
        option = find(r"Choose (.*?) from", seen.goal)[1]
        return select(with_role(seen, "combobox")[0], option)
    return click(with_name(seen, quoted(seen)[-1], "button"))


def radio_then_text(seen: BrowserObservation, turn: int) -> str:
    """Chooses the radio button that the goal counts, types into the field that it counts, hands
    in."""
    if turn == 0:
        number = int(find(r"(\d)\w\w radio", seen.goal)[1])
        return click(with_role(seen, "radio")[number - 1])
    if turn == 1:
        number = int(find(r"(\d)\w\w textbox", seen.goal)[1])
        return fill(with_role(seen, "textbox")[number - 1], first_quoted(seen))
    return submit(seen)


def movie_search(seen: BrowserObservation, turn: int) -> str:
    """Fills in genre, director and year in the order of their labels, then searches."""
    genre, director, year = find(
        r"^Search for (\w+) movies directed by (\w+) from year (\d+)", seen.goal
    ).groups()
    values = {"Year": year, "Genre": genre, "Director": director}
    if turn < len(values):
        labels = re.findall(r"'(Year|Genre|Director)(?: Name)?'", seen.axtree_txt)
        in_order = list(dict.fromkeys(labels))
        return fill(with_role(seen, "textbox")[turn], values[in_order[turn]])
    buttons = with_role(seen, "button")
    return click(buttons[-1] if buttons else seen.elements[-1])


def search_engine(seen: BrowserObservation, turn: int) -> str:
    """Searches, goes to the page of the result that the goal counts, and clicks it. The results
    stand in front of the list of pages."""
    wanted = ordinal(seen) - 1
    if turn == 0:
        return fill(with_role(seen, "textbox")[0], first_quoted(seen))
    if turn == 1:
        return click(with_name(seen, "Search", "button"))
    links = with_role(seen, "link")
    page, place = divmod(wanted, RESULTS_A_PAGE)
    if turn == 2 and page > 0:
        links_to_page = [e for e in links if e.name == str(page + 1)]
        return click(links_to_page[-1])
    return click(links[place])


def guess_number(seen: BrowserObservation, turn: int) -> str:
    """Goes through the numbers; each takes two turns, typing and handing in."""
    if turn % 2 == 1:
        return submit(seen)
    return fill(with_role(seen, "spinbutton")[0], str(turn // 2))


def spinner(seen: BrowserObservation, turn: int) -> str:
    """Types the goal's number, then hands in."""
    if turn > 0:
        return submit(seen)
    return fill(with_role(seen, "spinbutton")[0], find(r"Select (-?\d+)", seen.goal)[1])


def autocomplete(seen: BrowserObservation, turn: int) -> str:
    """Types the beginning, presses down until the suggestion ends as it should, leaves the field,
    hands in."""
    parts = quoted(seen)
    field = with_role(seen, "textbox")[0]
    if turn == 0:
        return fill(field, parts[0])
    if field.value == parts[0] or not field.value.endswith(parts[-1]):
        return press(field, "ArrowDown")
    if field.focused:
        return press(field, "Tab")
    return submit(seen)


def calendar(seen: BrowserObservation, turn: int) -> str:
    """Opens the calendar, goes back from December month by month, takes the day, hands in."""
    month, day, _ = _date_of_goal(seen)
    field = with_role(seen, "textbox")[0]
    if field.value:
        return submit(seen)
    if turn == 0:
        return click(field)
    if turn <= MONTH_SHOWN_FIRST - int(month):
        return click(with_name(seen, "Prev", "link"))
    return click(with_name(seen, str(int(day)), "link"))


def enter_date(seen: BrowserObservation, turn: int) -> str:
    """Types the goal's date as the browser's own date field wants it, then hands in."""
    if turn > 0:
        return submit(seen)
    month, day, year = _date_of_goal(seen)
    return format_action("fill", DATE_OR_TIME_BID, f"{year}-{month}-{day}")


def enter_time(seen: BrowserObservation, turn: int) -> str:
    """Types the goal's time as the browser's own time field wants it, then hands in."""
    if turn > 0:
        return submit(seen)
    hour, minute, half = find(r"(\d+):(\d+) ([AP]M)", seen.goal).groups()
    hour_of_24 = int(hour) % 12 + (12 if half == "PM" else 0)
    return format_action("fill", DATE_OR_TIME_BID, f"{hour_of_24:02d}:{minute}")


def _date_of_goal(seen: BrowserObservation) -> tuple[str, str, str]:
    """Month, day and year of the goal, as it writes them: two, two and four digits."""
    month, day, year = find(r"\d\d/\d\d/\d{4}", seen.goal)[0].split("/")
    return month, day, year
