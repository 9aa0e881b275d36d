"""Scripts on pages that are written down here: what each reads, and what it does not need."""

import itertools
import random

import pytest

from helpers.browser.actions import parse_action
from helpers.browser.models import BrowserObservation, Element
from helpers.evaluation.scripted import OUT_OF_REACH, SCRIPTS, forms, games, links
from helpers.evaluation.scripted.inbox import Order, read_order
from helpers.evaluation.scripted.page import nodes, plain_texts
from helpers.evaluation.scripted.words import same_meaning


def page(task, goal, tree, elements=(), seed=1):
    return BrowserObservation(
        task=task, goal=goal, axtree_txt=tree, elements=list(elements), seed=seed
    )


def link(bid):
    return Element(bid=bid, role="generic", clickable=True)


# ---- reading a page ----


def test_nodes_are_read_with_either_quote_and_without_pieces():
    tree = (
        "RootWebArea 'Task', focused, url='http://host/'\n"
        "\t[13] textbox 'From:' value='a, b', focused\n"
        '\t\tStaticText "it\'s"\n'
        '\t\t\tInlineTextBox "it\'s"\n'
        "\tgraphics-symbol ''\n"
        "\t[14] image ''"
    )
    seen = nodes(page("", "", tree))
    assert [(node.bid, node.role, node.name) for node in seen] == [
        ("", "RootWebArea", "Task"),
        ("13", "textbox", "From:"),
        ("", "StaticText", "it's"),
        ("", "graphics-symbol", ""),
        ("14", "image", ""),
    ]
    assert plain_texts(page("", "", tree)) == ["it's"]


# ---- links ----


def texts(*pieces):
    return "\n".join(["RootWebArea 'x'", *(f"\tStaticText '{piece}'" for piece in pieces)])


@pytest.mark.parametrize(
    ("pieces", "bids", "wanted", "clicked"),
    [
        (("a b", "Cras", "c d"), ("13",), "Cras", "13"),
        (("Cras", "c d", "Et", "e f"), ("13", "14"), "Et", "14"),
        # Two links beside each other, with nothing between them.
        (("a b", "Cras", "Et", "e f", "Id"), ("13", "14", "15"), "Et", "14"),
        # A single word of plain text between two links is none.
        (("Cras", "plain", "Et"), ("13", "14"), "Et", "14"),
    ],
)
def test_a_link_is_found_by_its_place_among_the_pieces_of_text(pieces, bids, wanted, clicked):
    seen = page("click-link", f'Click on the link "{wanted}".', texts(*pieces), map(link, bids))
    assert SCRIPTS["click-link"](seen, 0) == f"click('{clicked}')"


def test_links_of_random_texts_are_found_where_only_one_reading_is_left():
    """Texts as the pages make them; where several readings are left any of them is a guess."""
    draw = random.Random(0)
    sure = 0
    for _ in range(200):
        words = [(f"w{i}", draw.random() < 0.2) for i in range(20)]
        pieces, place = [], []  # of pages, and whether each piece is a link
        for is_link, run in itertools.groupby(words, key=lambda word: word[1]):
            names = [name for name, _ in run]
            pieces += names if is_link else [" ".join(names)]
            place += [is_link] * len(names) if is_link else [False]
        wanted = [i for i, is_link in enumerate(place) if is_link]
        readings = list(links._readings(pieces, len(wanted)))
        assert tuple(wanted) in readings
        sure += len(readings) == 1
    assert sure > 100


# ---- messages ----


@pytest.mark.parametrize(
    ("goal", "order"),
    [
        ("Find the email by Cal and click the trash icon to delete it.", ("delete", "Cal", "", "")),
        ("The email from Noella needs to marked as important.", ("mark", "Noella", "", "")),
        ('Reply to Brigida\'s email: "Et nullam."', ("reply", "Brigida", "", "Et nullam.")),
        ('Text Moll, "Vel pharetra."', ("reply", "Moll", "", "Vel pharetra.")),
        ("Forward to Ingeberg the email from Raye.", ("forward", "Raye", "Ingeberg", "")),
        ("Lilith is waiting for the email by Tania.", ("forward", "Tania", "Lilith", "")),
        ("Forward Evvy the message Rayshell sent you.", ("forward", "Rayshell", "Evvy", "")),
        ("Send Maitilde's email Cecil.", ("forward", "Maitilde", "Cecil", "")),
        ("Doralia's email, will you forward that to Melli?", ("forward", "Doralia", "Melli", "")),
        ("Find the Buffy email and forward it to Charmain.", ("forward", "Buffy", "Charmain", "")),
        (
            "I'd like to send the email from Helena to Catrina's email.",
            ("forward", "Helena", "Catrina", ""),
        ),
    ],
)
def test_an_order_is_read_from_its_sentence(goal, order):
    assert read_order(goal) == Order(*order)


# ---- games ----


def board(taken, seed=1):
    cells = [
        Element(bid=str(13 + i), role="image" if i in taken else "generic", clickable=True)
        for i in range(9)
    ]
    return page("tic-tac-toe", "Playing as 'X', win.", "", cells, seed)


def wins_against(opponent, seed):
    """Whether the script wins a game in which it begins."""
    player, mine, theirs = games.TicTacToe(), set(), set()
    for turn in range(5):
        cell = int(player(board(mine | theirs, seed), turn).split("'")[1]) - 13
        assert cell not in mine | theirs
        mine.add(cell)
        if any(line <= mine for line in games.LINES):
            return True
        free = sorted(set(range(9)) - mine - theirs)
        if not free:
            return False
        theirs.add(opponent(free))
        if any(line <= theirs for line in games.LINES):
            return False
    return False


@pytest.mark.parametrize("reply", [1, 2, 3, 5, 6, 7])
def test_tic_tac_toe_completes_its_own_line_though_all_marks_look_alike(reply):
    player = games.TicTacToe()
    mine, taken = [], set()
    for turn in range(2):
        mine.append(int(player(board(taken), turn).split("'")[1]) - 13)
        free = [i for i in (reply, 8, 5, 3, 1) if i not in taken | set(mine)]
        lines = [line for line in games.LINES if set(mine) <= line and turn == 1]
        blocking = {i for line in lines for i in line}
        taken |= {mine[-1], next(i for i in free if i not in blocking)}
    third = int(player(board(taken), 2).split("'")[1]) - 13
    could_win = any(set(mine) <= line and not (line - set(mine)) & taken for line in games.LINES)
    assert any(line <= {*mine, third} for line in games.LINES) == could_win


def test_tic_tac_toe_wins_most_games_against_chance():
    draw = random.Random(0)
    assert sum(wins_against(draw.choice, seed) for seed in range(100)) >= 90


@pytest.mark.parametrize(
    ("goal", "offered", "chosen"),
    [
        ("How many letters are there?", "0 2 4 6 8", "4"),
        ("How many 5s are there?", "0 2 4 6 8", "2"),
        ("How many items are there?", "0 3 5 7 9", "9"),
        ("How many shapes are there?", "1 3 5 7 9", "3"),
        ("How many digits are there?", "0 1 2 4 9", "2"),
        ("How many small digits are there?", "1 4 6 8 9", "1"),
    ],
)
def test_what_can_be_counted_is_counted(goal, offered, chosen):
    drawings = ["StaticText 'q'", "StaticText 'G'", "StaticText 'e'", "StaticText 'e'"]
    drawings += ["StaticText '5'"] * 2 + ["graphics-symbol ''"] * 3
    buttons = [Element(bid=f"1{number}", role="button", name=number) for number in offered.split()]
    seen = page("count-shape", goal, "\n".join(f"\t\t{line}" for line in drawings), buttons)
    assert SCRIPTS["count-shape"](seen, 0) == f"click('1{chosen}')"


# ---- what holds for all ----


def test_a_search_for_films_goes_on_past_its_last_turn():
    goal = "Search for horror movies directed by Lee from year 1999."
    assert parse_action(forms.movie_search(page("multi-layouts", goal, ""), 7)).kind != "ok"
    last = [Element(bid="13", role="heading"), Element(bid="14", role="generic")]
    assert forms.movie_search(page("multi-layouts", goal, "", last), 7) == "click('14')"


@pytest.mark.parametrize(
    ("word", "other", "same"),
    [("huge", "big", True), ("Water", "water", True), ("love", "hate", False), ("x", "y", False)],
)
def test_words_mean_the_same_or_not(word, other, same):
    assert same_meaning(word, other) is same


@pytest.mark.parametrize("task", SCRIPTS)
def test_a_script_that_raises_waits(task):
    """Also past its last turn, and on a page that has nothing on it."""
    for turn in (0, 1, 7, 30):
        assert isinstance(SCRIPTS[task](page(task, "", ""), turn), str)


def test_every_task_without_a_script_that_is_named_has_a_reason():
    assert all(reason for reason in OUT_OF_REACH.values())
    assert {"click-color", "click-pie", "click-shape"} <= set(OUT_OF_REACH) - set(SCRIPTS)
