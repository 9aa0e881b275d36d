"""Scripts for forms of several steps: searches, dates, times, suggestions, guesses."""

from __future__ import annotations

import calendar as calendars
import re
from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.evaluation.agents import WAIT
from helpers.evaluation.scripted.page import (
    click,
    fill,
    find,
    first_quoted,
    minutes,
    nodes,
    number_to_select,
    ordinal,
    plain_texts,
    press,
    quoted,
    select,
    submit,
    with_name,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation, Element

RESULTS_A_PAGE = 3  # of the search engine
FILM_FIELDS = 3  # of the search for films: genre, director, year
MONTH_SHOWN_FIRST = 12  # the calendar opens on December
MONTHS = list(calendars.month_name)[1:]
PRICE_MARGIN = 1.5  # dollars, by which a price changes at most in a tenth of a second
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
    values = {"Year": year, "Date": year, "Genre": genre, "Director": director}
    if turn < FILM_FIELDS:
        labels = re.findall(r"'(?:\w+ )?(Year|Date|Genre|Director)(?: Name)?:?'", seen.axtree_txt)
        in_order = list(dict.fromkeys(labels))
        return fill(with_role(seen, "textbox")[turn], values[in_order[turn]])
    elements = with_role(seen, "button") or seen.elements
    return click(elements[-1] if elements else None)


def search_engine(seen: BrowserObservation, turn: int) -> str:
    """Searches, goes to the page of the result that the goal counts, and clicks it. The results
    stand in front of the list of pages."""
    wanted = ordinal(seen.goal) - 1
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
    return fill(with_role(seen, "spinbutton")[0], str(number_to_select(seen)))


def autocomplete(seen: BrowserObservation, turn: int) -> str:
    """Types the beginning, presses down until the suggestion ends as it should, leaves the field,
    hands in. One goal of four names no end: then the first suggestion will do."""
    beginning, end = (*quoted(seen), "")[:2]
    field = with_role(seen, "textbox")[0]
    if turn == 0:
        return fill(field, beginning)
    if turn == 1 or not field.value.endswith(end):
        return press(field, "ArrowDown")
    if field.focused:
        return press(field, "Tab")
    return submit(seen)


def buy_below(seen: BrowserObservation, turn: int) -> str:
    """Buys when the price is well below the goal's: it changes until the click is there."""
    limit = _dollars(seen.goal)
    price = _dollars(plain_texts(seen)[-1])
    if price > limit - PRICE_MARGIN:
        return WAIT
    return click(with_name(seen, "Buy", "button"))


def _dollars(text: str) -> float:
    return float(find(r"\$(\d+\.\d+)", text)[1])


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


def login_with_popup(seen: BrowserObservation, turn: int) -> str:
    """Fills in name and password, and cancels the question that may come up meanwhile. A password
    is shown as dots, one for each letter."""
    cancel = with_name(seen, "Cancel", "button")
    if cancel:
        return click(cancel)
    fields = with_role(seen, "textbox")
    name, password = quoted(seen)
    if fields[0].value != name:
        return fill(fields[0], name)
    if len(fields[1].value) != len(password):
        return fill(fields[1], password)
    return submit(seen)


FLIGHT = re.compile(r"Book the (cheapest|shortest) .* from: (.*) to: (.*) on (\d+)/(\d+)/\d+")


def book_flight(seen: BrowserObservation, turn: int) -> str:
    """Fills in the two cities and the day, searches, and books the cheapest or shortest flight."""
    match = FLIGHT.search(seen.goal)
    if match is None:
        raise ValueError(f"This goal books no flight: {seen.goal!r}.")
    kind, origin, destination, month, day = match.groups()
    offers = [e for e in with_role(seen, "button") if e.name.startswith("Book flight")]
    if offers:
        return click(_best_offer(seen, offers, kind))
    fields = with_role(seen, "textbox")
    for field, city in zip(fields, (origin, destination), strict=False):
        if city not in field.value or "(" not in field.value:
            return _city(seen, field, city)
    if not fields[2].value:
        return _day(seen, fields[2], int(month), int(day))
    return click(with_name(seen, "Search", "button"))


def _best_offer(seen: BrowserObservation, offers: list[Element], kind: str) -> Element:
    """The cheapest or shortest of the flights that are offered."""
    if kind == "cheapest":
        return min(offers, key=lambda e: int(e.name.rpartition("$")[2]))
    durations = minutes(plain_texts(seen))
    return offers[durations.index(min(durations))]


def _city(seen: BrowserObservation, field: Element, city: str) -> str:
    """Types a city or an airport's code, then takes the suggestion that holds it."""
    if field.value == city:
        bid = ""
        for node in nodes(seen):
            bid = node.bid or bid  # of the list's item around a text
            if node.role == "StaticText" and city in node.name and "(" in node.name:
                return format_action("click", bid)
    return fill(field, city)


def _day(seen: BrowserObservation, field: Element, month: int, day: int) -> str:
    """Opens the calendar, goes back to the month, takes the day."""
    shown = [MONTHS.index(text) for text in plain_texts(seen) if text in MONTHS]
    if not shown:
        return click(field)
    if shown[0] + 1 > month:
        return click(with_name(seen, "Prev", "link"))
    return click(with_name(seen, str(day), "link"))


def _date_of_goal(seen: BrowserObservation) -> tuple[str, str, str]:
    """Month, day and year of the goal, as it writes them: two, two and four digits."""
    month, day, year = find(r"\d\d/\d\d/\d{4}", seen.goal)[0].split("/")
    return month, day, year
