"""Whether a page that is used again in place tells anything of the episodes before.

After each kind of hostile episode (`benchmarks.hostile_episodes`) the next episode of the task does
what would show it: the scripted solution, keys, the wheel, undo and paste. All that is shown and
paid must be what a page in a browser context of its own shows and pays, boxes and focus included.
"""

import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Annotated, Any, NamedTuple

import typer
from typing_extensions import override

from benchmarks.hostile_episodes import HOSTILE, PROBES, TURNS, Player, Probe
from benchmarks.recording import Record, record
from helpers.browser import BrowserClient, BrowserObservation, BrowserServer, start_browser_server
from helpers.browser.options import PageRules, chosen_in_place
from helpers.command_line import run
from helpers.episodes.tasks import read_tasks
from helpers.evaluation.scripted import SCRIPTS
from helpers.output import Progress

SESSIONS = 4
PROBE_TURNS = 12
SEED = 11  # of the episode in which it would show
Episode = tuple[list[str], list[dict[str, Any]]]  # the actions, and what was seen before and after


class Leak(NamedTuple):
    """What of a hostile episode showed in the next one."""

    task: str
    hostile: str
    probe: str
    actions: list[str]  # of the hostile episode
    after: str  # the action of the probe after which it showed; "" is the reset
    fields: list[str]  # those of the observation that differ

    @override
    def __str__(self) -> str:
        where = f"after {self.after}" if self.after else "after the reset"
        return (
            f"{self.task}: {self.hostile} shows in {self.probe}, {where}:"
            f" {', '.join(self.fields)}; it was {self.actions}"
        )


# ---- playing ----


def play_probe(env: BrowserClient, task: str, probe: Probe) -> Episode:
    """An episode with a probe's actions."""
    seen = env.reset(task, SEED)
    actions: list[str] = []
    shown = [_shown(seen)]
    for turn in range(PROBE_TURNS):
        action = None if seen.done else probe(seen, turn)
        if action is None:
            break
        actions.append(action)
        seen = env.step(action)
        shown.append(_shown(seen))
    return actions, shown


def play_fresh(server: BrowserServer, task: str, probe: Probe) -> Episode:
    """The same in a browser context of its own."""
    with server.client() as env:
        return play_probe(env, task, probe)


def play_hostile(env: BrowserClient, task: str, player: Player, draw: random.Random) -> list[str]:
    """A hostile episode; returns its actions."""
    seen = env.reset(task, draw.randrange(1_000))
    actions: list[str] = []
    for turn in range(TURNS):
        action = None if seen.done else player(seen, turn, draw)
        if action is None:
            break
        actions.append(action)
        seen = env.step(action)
    return actions


def _shown(seen: BrowserObservation) -> dict[str, Any]:
    return seen.model_dump(exclude={"metadata"})


def compare(again: Episode, fresh: Episode) -> tuple[str, list[str]] | None:
    """The first action after which the two differ ("" is the reset), and in which fields."""
    for i, (mine, theirs) in enumerate(zip(again[1], fresh[1], strict=False)):
        fields = [name for name, value in theirs.items() if mine[name] != value]
        if fields:
            return ([""] + again[0])[i], fields
    if again[0] != fresh[0]:
        return again[0][-1] if again[0] else "", ["number of actions"]
    return None


# ---- one task, all tasks ----


def leaks_of(
    server: BrowserServer, rounds: Sequence[int], kinds: Sequence[str], task: str
) -> list[Leak]:
    """What shows in the next episode of a task, after hostile ones of these kinds, drawn from each
    of ``rounds``."""
    probes = {name: probe for name, probe in PROBES.items() if _applies(name, task)}
    fresh = {name: play_fresh(server, task, probe) for name, probe in probes.items()}
    leaks: list[Leak] = []
    env = server.client()
    for number in rounds:
        for hostile, (name, probe) in product(kinds, probes.items()):
            draw = random.Random(f"{task} {hostile} {name} {number}")
            actions = play_hostile(env, task, HOSTILE[hostile], draw)
            again = play_probe(env, task, probe)
            if compare(again, fresh[name]) is None:
                continue
            # A time picker begins at this minute, on a fresh page as well.
            fresh[name] = play_fresh(server, task, probe)
            found = compare(again, fresh[name])
            if found is not None:
                leaks.append(Leak(task, hostile, name, actions, *found))
                env.close()  # the next leak is to be its own
                env = server.client()
    env.close()
    return leaks


def _applies(probe: str, task: str) -> bool:
    return probe != "script" or task in SCRIPTS


def audit(
    tasks: Sequence[str],
    rounds: Sequence[int] = (0,),
    rules: PageRules | None = None,
    kinds: Sequence[str] = tuple(HOSTILE),
    show: bool = False,
    **server: Any,
) -> list[Leak]:
    """What shows of the episodes before, in each of ``tasks``; with ``show`` they are
    printed as they are found, beside a line of progress.

    ``rules``: how pages are used again, None: the course's. ``kinds``: of hostile episodes, names
    in `HOSTILE`. ``server``: arguments of
    `start_browser_server`.
    """
    leaks: list[Leak] = []
    with (
        start_browser_server(rules=rules, **server) as running,
        ThreadPoolExecutor(SESSIONS) as threads,
        Progress(len(tasks), "tasks") as progress,
    ):
        for done, found in enumerate(
            threads.map(partial(leaks_of, running, rounds, kinds), tasks), 1
        ):
            leaks += found
            if show:
                progress.reach(done, f"{len(leaks)} leaks")
                for leak in found:
                    print(leak, flush=True)
    return leaks


def main(
    record_it: Record = False,
    tasks: Annotated[str, typer.Option(help="only these, separated by commas")] = "",
    rounds: Annotated[int, typer.Option(help="how many hostile episodes of each kind")] = 1,
) -> int:
    """Whether a page that is used again in place tells anything of the episodes before.

    \b
    python -m benchmarks.reuse              every task of helpers/browser/in_place.json
    python -m benchmarks.reuse --record     the counts are written to recordings/reuse/ too
    """
    chosen = read_tasks(tasks) if tasks else list(chosen_in_place())
    leaks = audit(chosen, range(rounds), show=True, timeout=120)
    print(f"{len(chosen)} tasks, {len(HOSTILE)} kinds of hostile episodes, {len(leaks)} leaks")
    if record_it:
        counts = {
            "tasks": len(chosen),
            "rounds": rounds,
            "hostile": list(HOSTILE),
            "probes": list(PROBES),
            "leaks": len(leaks),
        }
        record("reuse", counts)
    return int(bool(leaks))


if __name__ == "__main__":
    sys.exit(run(main))
