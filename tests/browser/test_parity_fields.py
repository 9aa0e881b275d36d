"""A comparison that finds nothing is worth something only if it finds what differs."""

import io

import numpy as np
import pytest
from PIL import Image

from benchmarks.comparison import compare
from benchmarks.fields import FIELDS
from benchmarks.pictures import differing_share, pack, unpack
from benchmarks.recorded_episodes import Lines
from helpers.browser import BrowserObservation, Element

PAGE = np.full((321, 498, 3), 200, np.uint8)


def png(picture):
    with io.BytesIO() as file:
        Image.fromarray(picture).save(file, "PNG")
        return file.getvalue()


def stock(**other):
    """What stock shows of a page with one button."""
    shown = {
        "goal": "Press it.",
        "axtree_txt": "RootWebArea, url='http://127.0.0.1:1234/miniwob/click-test.html'",
        "bids": ["0", "13"],
        "clickable": ["13"],
        "focused_bid": "0",
        "error": "",
        "url": "http://127.0.0.1:1234/miniwob/click-test.html",
        "left": "",
        "done": False,
        "reward": 0.0,
        "raw_reward": 0.0,
        "bbox": {"0": None, "13": [3.0, 4.5, 30.046875, 15.0]},
        "visibility": {"0": 1.0, "13": 0.5},
        "set_of_marks": ["13"],
        "pruned_html": "<button bid='13'>",
        "screenshot": PAGE,
    }
    return shown | other


def ours():
    """The same page, as our client is sent it."""
    properties = {
        "0": {"bbox": None, "visibility": 1.0, "clickable": False, "set_of_marks": False},
        "13": {
            "bbox": [3.0, 4.5, 30.046875, 15.0],
            "visibility": 0.5,
            "clickable": True,
            "set_of_marks": True,
        },
    }
    return BrowserObservation(
        goal="Press it.",
        axtree_txt="RootWebArea, url='http://miniwob.localhost/miniwob/click-test.html'",
        url="http://miniwob.localhost/miniwob/click-test.html",
        elements=[Element(bid="13", role="button", box=(3.0, 4.5, 30.0, 15.0), clickable=True)],
        focused_bid="0",
        raw_reward=0.0,
        screenshot=png(PAGE),
        pruned_html="<button bid='13'>",
        details={"extra_element_properties": properties},
    )


OTHER = {
    "goal": "Leave it.",
    "axtree_txt": "RootWebArea 'Another'",
    "bids": ["0", "13", "14"],
    "clickable": [],
    "focused_bid": "13",
    "error": "TimeoutError: Timeout 500ms exceeded.",
    "url": "http://127.0.0.1:1234/miniwob/click-test-2.html",
    "done": True,
    "reward": 1.0,
    "raw_reward": 1.0,
    "bbox": {"0": None, "13": [3.0, 4.5, 30.046875, 15.015625]},
    "visibility": {"0": 1.0, "13": 0.51},
    "set_of_marks": [],
    "pruned_html": "<button bid='14'>",
    "screenshot": np.full((321, 498, 3), 100, np.uint8),
}


def test_the_same_page_on_another_port_is_the_same():
    assert compare([ours()], [stock()]) == [({}, {})]


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_that_differs_is_found(name):
    [(found, own)] = compare([ours()], [stock(**{name: OTHER[name]})])
    assert list(found) == [name]
    assert own == {}


@pytest.mark.parametrize("name", FIELDS)
def test_where_stock_differs_with_itself_the_difference_is_stocks(name):
    theirs = stock(**{name: OTHER[name]})
    [(found, own)] = compare([ours()], [theirs | {"again": {name: stock()[name]}}])
    assert found == {}
    assert list(own) == [name]


def test_what_follows_upon_stock_going_two_ways_is_stocks_but_not_after_a_picture():
    after = stock(goal="Another")
    for name, whose in (("axtree_txt", 1), ("screenshot", 0)):
        start = stock() | {"again": {name: 0.1}}
        rows = compare([ours(), ours()], [start, after])
        assert list(rows[1][whose]) == ["goal"]
        assert rows[1][1 - whose] == {}


def test_an_episode_that_ends_sooner_or_later_is_found():
    assert "length" in compare([ours()], [stock(), stock()])[0][0]
    assert "length" in compare([ours(), ours()], [stock()])[0][0]


def test_an_episode_that_stock_ends_at_a_fragment_is_compared_up_to_there():
    """Its pay is not: stock pays nothing there, whatever the page says."""
    address = "http://127.0.0.1:1234/miniwob/click-test.html#"
    left = stock(left="invalid url, terminating task", url=address, done=True)
    seen = ours().model_copy(update={"url": "http://miniwob.localhost/miniwob/click-test.html#"})
    assert compare([ours(), seen, ours()], [stock(), left]) == [({}, {}), ({}, {})]


def test_an_episode_that_the_infrastructure_lost_is_no_difference_of_the_page():
    lost = BrowserObservation(infrastructure_error="The worker died.")
    assert list(compare([lost], [stock()])[0][0]) == ["infrastructure_error"]


def test_a_caret_is_no_difference_and_a_tick_is_one():
    caret, tick = PAGE.copy(), PAGE.copy()
    caret[100:123, 50:52] = 0
    tick[100:110, 50:60] = 0
    faint = PAGE + 10
    assert differing_share(PAGE, caret) == 0.0
    assert differing_share(PAGE, faint) == 0.0
    assert differing_share(PAGE, tick) == pytest.approx(100 / (321 * 498))
    assert differing_share(PAGE, PAGE[:214, :332]) == 1.0


def test_packed_pictures_are_the_same_to_the_bit():
    draw = np.random.default_rng(0)
    pictures = [draw.integers(0, 256, (214, 332, 3), dtype=np.uint8) for _ in range(3)]
    for before, after in zip(pictures, unpack(pack(pictures), 3), strict=True):
        assert (before == after).all()


def test_a_line_that_was_cut_off_is_played_again(tmp_path):
    lines = Lines(tmp_path / "lines.jsonl")
    lines.add({"number": 1})
    lines.path.write_text(lines.path.read_text() + '{"numb')
    assert lines.read() == [{"number": 1}]
    lines.add({"number": 2})
    assert lines.read() == [{"number": 1}, {"number": 2}]
