"""Whether an episode here is an episode of stock BrowserGym: every task, three seeds, after the
reset and after two actions; and as many episodes by chance as one likes (`--draw`).

Compared is all that an observation holds (`benchmarks.fields`): goal, accessibility tree, HTML,
bids, clickable flags, focus, error text, reward, raw reward, done, the box and the visibility of
every element, set of marks, picture. Stock was recorded twice: where it differs with itself a
difference is counted apart. Of two pictures each pixel that can be told apart counts, but for a
caret, which blinks. Before each recorded episode another one of the same task is played in the
same session, so that whatever it leaves behind would show.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from benchmarks import drawn_alone, drawn_episodes
from benchmarks.comparison import Row, compare_all
from benchmarks.fields import FIELDS
from benchmarks.recorded_episodes import SEEDS, Recorded, read_golden
from benchmarks.recording import Record, record
from benchmarks.reuse import audit
from benchmarks.stock_record import record_stock
from helpers.browser import list_tasks
from helpers.browser.options import IN_PLACE, PageRules
from helpers.command_line import run
from helpers.episodes.tasks import read_tasks
from helpers.settings.paths import ROOT

# What cannot be equal, and why (tests/browser/test_not_covered.py shows it, in stock and here).
# Their own rule is determinism (tests/browser/test_parity.py).
NOT_COVERED: dict[str, str] = {
    "social-media": "an icon is another picture under the mouse, which stock fetches at that "
    "moment; it has no size meanwhile, so the first click on each kind of icon is lost there; here "
    "it lands, for the pictures are fetched when the page loads",
    "stock-market": "the price follows the wall clock (a timer of 100 ms), so stock differs with "
    "itself at each look; here it follows the page's clock, which moves 600 ms per action",
    "terminal": "the cursor blinks by the wall clock (a timer of 800 ms), so stock differs with "
    "itself in tree, boxes and pictures; here it blinks by the page's clock",
}

# What drawn episodes show another way than stock even on a quiet machine, and why: on the pages of
# a task, or after an action. tests/browser/test_not_covered.py shows both.
KNOWN_TO_DIFFER: dict[str, str] = {
    "click-scroll-list": "a list scrolls by itself under a mouse whose button is down, frame by "
    "frame, and during a drag the button stays down longer in stock",
    "drag_and_drop": "where the target of a drag cannot be reached, stock leaves the mouse's "
    "button down, and its pictures show a pressed element; here the button is released",
}

LEAK_ROUNDS = (0, 1, 2)  # of hostile episodes, when tasks are chosen


# ---- which tasks may use a page again ----


def choose() -> None:
    """Find the tasks that may use a page again, and write them to helpers/browser/in_place.json.

    A task may where its episodes on a page that others have used (one short one, two, three long
    ones) are stock's, and are in everything that we show, boxes and values too, those on a page
    loaded anew; and where nothing of a hostile episode shows in the next one (`benchmarks.reuse`).
    Tried with the page's elements kept; for the tasks that this is not true of with copies of them;
    then with those of its source, on which the page's own start is run once more.
    """
    golden = read_golden()
    anew = compare_all(golden, before=0, rules=PageRules(in_place={}))
    chosen: dict[str, str] = {}
    for how in ("keep", "copy", "remake"):
        left = [episode for episode in golden if episode["task"] not in chosen]
        reasons = reasons_against(how, left, anew)
        equal = [task for task, found in reasons.items() if not found]
        rules = PageRules(in_place=dict.fromkeys(equal, how))
        for leak in audit(equal, LEAK_ROUNDS, rules, show=True, timeout=120):
            reasons[leak.task].add(f"{leak.probe} after {leak.hostile}")
        for task, found in sorted(reasons.items()):
            if found:
                print(f"{task}: with {how} {', '.join(sorted(found))} would differ")
            else:
                chosen[task] = how
    IN_PLACE.write_text(json.dumps(chosen, indent=0, sort_keys=True) + "\n")
    print(f"{len(chosen)} of {len(anew)} tasks may use a page again: {IN_PLACE.relative_to(ROOT)}")


def reasons_against(
    how: str, golden: Sequence[Recorded], anew: dict[str, list[Row]]
) -> dict[str, set[str]]:
    """For each task what would differ if all tasks used their pages again this way.

    ``anew``: what each task shows on pages that are loaded for every episode.
    """
    rules = PageRules(in_place=dict.fromkeys(list_tasks(), how))
    reasons: dict[str, set[str]] = {episode["task"]: set() for episode in golden}
    for before in (1, 2, 3):
        for task, rows in compare_all(golden, before=before, rules=rules).items():
            for row in rows:
                reasons[task].update(row.fields)
            if any(row.seen != loaded.seen for row, loaded in zip(rows, anew[task], strict=False)):
                reasons[task].add("a box or a value")
            if len(rows) != len(anew[task]):
                reasons[task].add("length")
    return reasons


# ---- the comparison ----


def show(results: dict[str, list[Row]]) -> int:
    """Print what differs, then the counts; returns how many observations are equal."""
    rows = [(task, row) for task, found in results.items() for row in found]
    unequal = [(task, row) for task, row in rows if row.fields]
    for task, row in unequal:
        after = ["the reset", *row.episode["actions"]][row.step]
        print(f"{task}, seed {row.episode['seed']}, after {after}:")
        for name, how in row.fields.items():
            print(f"  {name}: {how}")
    print("differing fields:", fields_of(results, "fields") or "none")
    print("stock with itself:", fields_of(results, "noise") or "none")
    equal = len(rows) - len(unequal)
    print(f"{len(results)} tasks, {len(SEEDS)} seeds, {len(rows)} observations, {equal} equal")
    return equal


def fields_of(results: dict[str, list[Row]], whose: str) -> dict[str, int]:
    """In how many observations each field differs: "fields" from stock's, "noise" where stock is
    another in its second recording."""
    found = [getattr(row, whose) for rows in results.values() for row in rows]
    return dict(Counter(name for each in found for name in each).most_common())


def compare_recorded(rules: PageRules, record_it: bool) -> int:
    """Play the recorded episodes here and say what differs."""
    golden = read_golden()
    results = compare_all(golden, everything=True, rules=rules)
    observations = sum(len(rows) for rows in results.values())
    equal = show(results)
    if record_it:
        unsteady = Counter(
            name for each in golden for seen in each["stock"] for name in seen.get("again", {})
        )
        counts = {
            "tasks": len(results),
            "seeds": len(SEEDS),
            "observations": observations,
            "equal": equal,
            "fields": FIELDS,
            "fields_that_differ": fields_of(results, "fields"),
            "fields_in_which_stock_differs_with_itself": dict(unsteady.most_common()),
            "not_covered": NOT_COVERED,
        }
        record("parity", counts)
    return int(equal < observations)


def compare_drawn(count: int, seed: int, again: bool, places: bool, record_it: bool) -> int:
    """Draw episodes, play them in stock and here, and say what differs."""
    episodes = drawn_episodes.run(count, seed, again, places)
    drawn_episodes.show(episodes)
    if record_it:
        counts = drawn_episodes.counts(episodes)
        file = f"{drawn_episodes.name_of(seed, places)}.json"
        options = f"--draw {count} --seed {seed}{' --places' if places else ''}"
        record("parity", {"seed": seed} | counts, file, options)
        if seed == drawn_episodes.KEPT_DRAW:
            drawn_episodes.keep_some(episodes, places)
    return int(any(episode.get("ours") for episode in episodes))


def compare_alone(record_it: bool) -> int:
    """Play the drawn episodes that differed once more, with nothing beside them, and say what
    still differs without a known reason."""
    episodes = drawn_alone.differing_episodes(without=NOT_COVERED)
    played = drawn_alone.play_alone(episodes, KNOWN_TO_DIFFER)
    drawn_alone.show(played)
    if record_it:
        record("parity", {"episodes": played}, "alone.json", "--alone")
    return int(any("first" in each and not each["known"] for each in played))


def main(
    record_it: Record = False,
    stock: Annotated[
        bool, typer.Option("--stock", help="play the episodes in stock first, twice (20 min)")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="without the settling rule: there must be differences")
    ] = False,
    choose_tasks: Annotated[
        bool, typer.Option("--choose", help="with every page used again (5 min on 2 cores)")
    ] = False,
    tasks: Annotated[str, typer.Option(help="with --stock: only these, separated by commas")] = "",
    draw: Annotated[
        int, typer.Option(help="draw so many episodes, play them in stock and here")
    ] = 0,
    seed: Annotated[int, typer.Option(help="of the draw")] = 0,
    places: Annotated[
        bool, typer.Option("--places", help="with --draw: actions on places of the picture")
    ] = False,
    alone: Annotated[
        bool, typer.Option("--alone", help="drawn episodes that differed, on a quiet machine")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="with --draw: play those that stock has played again")
    ] = False,
) -> int:
    """Whether an episode here is an episode of stock BrowserGym.

    \b
    python -m benchmarks.parity              play the recorded episodes here, print what differs
                                             (2 min on 2 cores)
    python -m benchmarks.parity --record     the counts are written to recordings/parity/ too
    python -m benchmarks.parity --stock      make recordings/parity/stock.jsonl.gz first
    python -m benchmarks.parity --choose     write helpers/browser/in_place.json
    python -m benchmarks.parity --draw 100   episodes by chance, in stock and here (5 min); it can
                                             be stopped and goes on where it was
    python -m benchmarks.parity --alone      those that differed in the recorded draws, once more,
                                             with nothing beside them (half a minute each)
    """
    if stock:
        record_stock(read_tasks(tasks) if tasks else recorded_tasks())
    if choose_tasks:
        choose()
        return 0
    if alone:
        return compare_alone(record_it)
    if draw:
        return compare_drawn(draw, seed, again, places, record_it)
    return compare_recorded(PageRules(settle_ms=0) if control else PageRules(), record_it)


def recorded_tasks() -> list[str]:
    """The tasks that the record covers."""
    return [task for task in list_tasks() if task not in NOT_COVERED]


if __name__ == "__main__":
    sys.exit(run(main))
