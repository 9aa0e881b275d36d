"""Scripts on pages that are written down here: what each reads, and what it does not need."""

import itertools
import json
import random

import pytest

from helpers.browser.actions import parse_action
from helpers.browser.models import BrowserObservation, Element
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.evaluation.scripted import OUT_OF_REACH, SCRIPTS, forms, games, links
from helpers.evaluation.scripted.inbox import Order, read_order
from helpers.evaluation.scripted.page import nodes, plain_texts
from helpers.evaluation.scripted.words import same_meaning
from helpers.settings.paths import RECORDINGS


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
        ("Dee wants the email you got from Lora.", ("forward", "Lora", "Dee", "")),
        ("I don't want the email from Vivi anymore.", ("delete", "Vivi", "", "")),
        ('Respond with "Nulla." to Ann\'s email from Tuesday.', ("reply", "Ann", "", "Nulla.")),
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


# ---- sliders ----


def slider_page(task, goal, values, bids=("16", "19", "22")):
    """Sliders with their numbers, and a button; a slider is an element without a name."""
    tree = "\n".join(f"\tStaticText '{value}'" for value in values)
    sliders = [Element(bid=bid, role="generic", clickable=True) for bid in bids[: len(values)]]
    button = Element(bid="25", role="button", name="Submit", clickable=True)
    return page(task, goal, tree, [*sliders, button])


def drive(task, goal, values, tracks):
    """Play a script against sliders that go where jQuery UI's go; returns (values, answers)."""
    answers = []
    for turn in range(40):
        answer = SCRIPTS[task](slider_page(task, goal, values), turn)
        answers.append(answer)
        parsed = parse_action(answer)
        if parsed.args[0] == "25":
            return values, answers
        place = ("16", "19", "22").index(parsed.args[0])
        low, high = tracks[place]
        if parsed.name == "click":
            values[place] = round((low + high) / 2 + 0.01)
            continue
        by_page = (high - low) // 5
        moved = {
            "ArrowRight": values[place] + 1,
            "ArrowLeft": values[place] - 1,
            "PageUp": values[place] + by_page,
            "PageDown": values[place] - by_page,
            "Home": low,
            "End": high,
        }[parsed.args[1]]
        values[place] = min(max(moved, low), high)
    raise AssertionError(f"not handed in: {answers}")


@pytest.mark.parametrize("start", [-100, 0, 10, 100])
@pytest.mark.parametrize("length", [5, 10, 50, 100])
def test_a_slider_is_set_whatever_its_track_is(start, length):
    draw = random.Random(start * length)
    for wanted in (start, start + length, draw.randint(start, start + length)):
        before = draw.randint(start, start + length)
        goal = f"Select {wanted} with the slider and hit Submit."
        values, answers = drive("use-slider", goal, [before], [(start, start + length)])
        assert values == [wanted]
        assert len(answers) <= 1 + 5 + length // 10 + 1  # click, pages, half a page, hand in


def test_three_sliders_are_set_one_after_the_other():
    goal = "Set the sliders to the combination [9,18,11] and submit."
    values, answers = drive("use-slider-2", goal, [0, 18, 14], [(0, 20)] * 3)
    assert values == [9, 18, 11]
    assert [parse_action(answer).args[0] for answer in answers] == [
        *["16", "16"],  # the click sets 10
        *["22", "22"],  # the second is as it should be
        "25",
    ]


def test_a_page_that_is_played_again_is_begun_again():
    goal = "Select 8 with the slider and hit Submit."
    first = drive("use-slider", goal, [3], [(0, 10)])
    assert drive("use-slider", goal, [3], [(0, 10)]) == first


# ---- dragging ----


def items(task, goal, names):
    tree = "\n".join(f"\tStaticText '{name}'" for name in names)
    bids = range(20, 20 + len(names))
    elements = [Element(bid=str(bid), role="listitem") for bid in bids]
    button = Element(bid="90", role="button", name="Submit", clickable=True)
    return page(task, goal, tree, [*elements, button])


@pytest.mark.parametrize(
    ("goal", "to"),
    [
        ("Drag Cal to the top.", "20"),
        ("Drag Cal to the bottom.", "24"),
        ("Drag Cal up by one position.", "21"),
        ("Drag Cal down by one position.", "23"),
        ("Drag Cal to the 4th position.", "23"),
    ],
)
def test_an_item_is_dragged_where_the_goal_says(goal, to):
    seen = items("drag-items", goal, ["Ann", "Bo", "Cal", "Di", "Ed"])
    assert SCRIPTS["drag-items"](seen, 0) == f"drag_and_drop('22', '{to}')"


@pytest.mark.parametrize(
    ("goal", "drag"),
    [
        ("Drag a to the bottom right.", ("20", "28")),
        ("Drag a to the center.", ("20", "24")),
        ("Drag d right by one.", ("23", "24")),
        ("Drag e down by one.", ("24", "27")),
        ("Drag g to the top right.", ("26", "21")),  # it comes behind the one it is let go on
        ("Drag g to the center right.", ("26", "24")),
    ],
)
def test_an_item_of_a_grid_is_let_go_where_the_grid_takes_it(goal, drag):
    seen = items("drag-items-grid", goal, "abcdefghi")
    assert SCRIPTS["drag-items-grid"](seen, 0) == "drag_and_drop('{}', '{}')".format(*drag)


def test_numbers_are_sorted_by_bringing_lesser_ones_up():
    numbers, answers = [37, -28, 5, -99], []
    while True:
        seen = items("drag-sort-numbers", "Sort the numbers.", numbers)
        parsed = parse_action(SCRIPTS["drag-sort-numbers"](seen, len(answers)))
        if parsed.name == "click":
            break
        begin, end = (int(bid) - 20 for bid in parsed.args)
        assert end < begin
        numbers.insert(end, numbers.pop(begin))
        answers.append((begin, end))
    assert numbers == [-99, -28, 5, 37]
    assert len(answers) < len(numbers)


# ---- styles, colours, food ----


def editor_page(goal, text="In nunc,. Eget."):
    nameless = [Element(bid=bid, role="generic", clickable=True) for bid in ("11", "18")]
    field = Element(bid="100", role="generic", clickable=True, value=text)
    buttons = [
        Element(bid="93", role="button", clickable=True),
        Element(bid="108", role="button", name="Submit", clickable=True),
    ]
    return page("text-editor", goal, "", [*nameless, field, *buttons])


@pytest.mark.parametrize(
    ("goal", "keys"),
    [
        ("give everything the style italics", ["Control+a", "Control+i"]),
        ("give the text In the style bold", ["HOME", "SELECT", "Control+b"]),
        (
            "give the text nunc,. the style underlined",
            ["HOME", "ON", "SELECT", "SELECT", "Control+u"],  # letters, then signs
        ),
    ],
)
def test_words_are_selected_with_keys(goal, keys):
    long = {
        "HOME": "Control+Home",
        "ON": "Control+ArrowRight",
        "SELECT": "Control+Shift+ArrowRight",
    }
    seen = editor_page(f"Using the text editor, {goal} and press Submit.")
    answers = [SCRIPTS["text-editor"](seen, turn) for turn in range(len(keys) + 2)]
    wanted = [f"press('18', '{long.get(key, key)}')" for key in keys]
    assert answers == ["click('93')", *wanted, "click('108')"]


@pytest.mark.parametrize(
    ("goal", "number"),
    [
        ("Select orange with the color picker and hit Submit.", "FFA500"),
        ("Select the following color #05a7e8 with the color picker and hit Submit.", "05A7E8"),
    ],
)
def test_a_colour_is_typed_as_six_digits(goal, number):
    field = Element(bid="15", role="textbox", value="AB2567", clickable=True)
    assert SCRIPTS["use-colorwheel"](page("", goal, "", [field]), 0) == f"fill('15', '{number}')"


@pytest.mark.parametrize(
    ("goal", "added"),
    [
        ("Order one of each item: Cheese wheel, Tofu and pot", ["24", "22"]),
        ("Order 2 items that are vegan", ["20", "22"]),
        ("Order 3 items that are dairy", ["20", "24", "20"]),  # there are two of them
    ],
)
def test_food_is_ordered_by_name_or_by_kind(goal, added):
    tree, elements = "", []
    menu = {"Salad": ["vegan", "dairy"], "Tofu and pot": ["vegan"], "Cheese wheel": ["dairy"]}
    for place, (name, kinds) in enumerate(menu.items()):
        tree += f"\tStaticText '{name}'\n"
        tree += "".join(f"\t[5{place}] image '{kind}', url='x'\n" for kind in kinds)
        tree += "\tStaticText '-'\n\tStaticText '1'\n\tStaticText '+'\n"
        minus_and_plus = (str(19 + 2 * place), str(20 + 2 * place))
        elements += [Element(bid=bid, role="generic", clickable=True) for bid in minus_and_plus]
    elements.append(Element(bid="136", role="button", name="Order!", clickable=True))
    seen = page("order-food", goal, tree, elements)
    answers = [SCRIPTS["order-food"](seen, turn) for turn in range(len(added) + 1)]
    assert answers == [*(f"click('{bid}')" for bid in added), "click('136')"]


@pytest.mark.parametrize(("price", "buys"), [("50.20", True), ("53.10", False), ("60.00", False)])
def test_stock_is_bought_well_below_the_limit(price, buys):
    goal = "Buy AJR stock when the price is less than $54.00."
    button = Element(bid="22", role="button", name="Buy", clickable=True)
    seen = page("stock-market", goal, f"\tStaticText '${price}'", [button])
    assert (SCRIPTS["stock-market"](seen, 0) == "click('22')") is buys


@pytest.mark.parametrize(
    ("goal", "value", "focused", "turn", "done"),
    [
        ('starts with "Gu" and ends with "ana"', "Guam", True, 2, "press('13', 'ArrowDown')"),
        ('starts with "Gu" and ends with "ana"', "Guyana", True, 4, "press('13', 'Tab')"),
        ('starts with "Gu"', "Gu", True, 1, "press('13', 'ArrowDown')"),
        ('starts with "Gu"', "Guam", True, 2, "press('13', 'Tab')"),
        ('starts with "Gu"', "Guam", False, 3, "click('15')"),
    ],
)
def test_a_suggestion_is_taken_that_begins_and_ends_as_the_goal_says(
    goal, value, focused, turn, done
):
    field = Element(bid="13", role="textbox", value=value, focused=focused)
    button = Element(bid="15", role="button", name="Submit", clickable=True)
    seen = page("use-autocomplete", f"Enter an item that {goal}.", "", [field, button])
    assert SCRIPTS["use-autocomplete"](seen, turn) == done


ALWAYS_PAID = (
    *("form-sequence", "scroll-text-2", "sign-agreement", "drag-box", "drag-sort-numbers"),
    *("text-editor", "order-food", "use-colorwheel", "use-colorwheel-2", "use-autocomplete"),
)


def test_keys_drags_and_the_wheel_are_paid_by_the_pages(browsers):
    pages = [spec for task in ALWAYS_PAID for spec in specs(task, VALIDATION_SEEDS, 3)]
    played = play_agent(lambda seen, turn: SCRIPTS[seen.task](seen, turn), pages, browsers, 10)
    assert [(e.task, e.seed) for e in played if not e.solved] == []


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


def test_every_script_was_audited_on_100_pages_and_the_record_says_how_often_it_is_paid():
    tasks = json.loads((RECORDINGS / "audit" / "result.json").read_text())["tasks"]
    audited = {task: counts["oracle"] for task, counts in tasks.items() if "oracle" in counts}
    assert audited.keys() == SCRIPTS.keys()
    assert {counts["n"] for counts in audited.values()} == {100}
    paid = {task: counts["paid"] for task, counts in audited.items()}
    always = sum(count == 100 for count in paid.values())
    mostly = sum(count >= 90 for count in paid.values())
    seldom = sorted(task for task, count in paid.items() if count < 60)
    told = " ".join((RECORDINGS / "benchmark" / "README.md").read_text().split())
    assert f"solution of its own for {len(SCRIPTS)} of the tasks" in told
    assert (
        f"{always} of these solutions are paid always, {mostly} on nine pages of ten, and "
        f"{len(seldom)} on less than six ({', '.join(seldom)})"
    ) in told
