"""From a point of the reward curve to the rollouts behind it."""

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as w

from helpers.browser import BrowserServerError
from helpers.course.figures import ORANGE, frames, page_grid, show, training_curves
from helpers.course.widgets.live import clickable_picture, show_live
from helpers.episodes.advantages import group_advantages
from helpers.episodes.episode import Episode

MAX_SPOTS = 100  # points of a curve that can be clicked; the slider reaches those between


def read_rollouts(folder: Path | str) -> dict[int, list[Episode]]:
    """The training episodes of a run by update, from the ``episodes.jsonl`` that it leaves; {} where there is none."""
    path, found = Path(folder) / "episodes.jsonl", {}
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        found.setdefault(record.pop("update"), []).append(Episode.from_json(record))
    return found


def _replay(episode: Episode, client: Any) -> None:
    """Put the screenshots back, which a recording leaves out: the same seed and the same actions give the same pages."""
    seen = client.reset(episode.task, episode.seed, screenshot=True)
    for turn in episode.turns:
        turn.screenshot = seen.screenshot or turn.screenshot
        if turn.parsed.ok and not seen.done and turn is not episode.turns[-1]:
            seen = client.step(turn.parsed.action, screenshot=True)


def rollout_group(group: Sequence[Episode], client: Any = None) -> Any:
    """A figure of one group: page and answer of each rollout, with its reward and its advantage (scaled by group); rollouts of
    several turns get a row each. ``client``: plays recorded episodes again for their pictures; without one they are grey."""
    rows = []
    for episode, advantage in zip(
        group, group_advantages([e.reward for e in group], len(group)), strict=True
    ):
        if client and not all(turn.screenshot for turn in episode.turns):
            _replay(episode, client)
        first, *others = frames(episode)[: max(1, len(episode.turns))]
        reward = "lost" if episode.reward is None else f"reward {episode.reward:g}"
        rows.append([(*first[:2], f"{reward}, advantage {advantage:+.2f}", first[3]), *others])
    turns = max(map(len, rows))
    pages = [page for row in rows for page in row + [None] * (turns - len(row))]
    title = f"{group[0].task}, seed {group[0].seed}: {group[0].goal[:70]}"
    return page_grid(pages, min(4, len(group)) if turns == 1 else turns, title)


def view_rollouts(folder: Path | str, group_size: int, client: Any = None) -> None:
    """Choose a point of a run's reward curve, then a group of that update, and see its rollouts as `rollout_group` shows them.
    ``folder``: of a training run, with its ``episodes.jsonl``."""
    rollouts = read_rollouts(folder)
    if not rollouts:
        print(
            f"There is no episodes.jsonl in {Path(folder).name}: only a run that was made here has its training episodes."
        )
        return
    rows = []
    for number, episodes in rollouts.items():
        known = [e.reward for e in episodes if e.reward is not None]
        rows.append({"update": number, "reward": sum(known) / len(known) if known else math.nan})
    update = w.IntSlider(
        min(rollouts), min(rollouts), max(rollouts), description="update", continuous_update=False
    )
    choice = w.Dropdown(description="group", layout=w.Layout(width="32em"))
    curve, picture = (
        w.Box(),
        w.Image(format="png", layout=w.Layout(max_width="100%", align_self="flex-start")),
    )
    said = w.HTML()
    groups: list[list[Episode]] = []

    def draw_curve(_: Any = None) -> None:
        axes = training_curves(
            {"this run": rows}, f"Update {update.value} is shown below; click another"
        ).axes[0]
        axes.axvline(update.value, color=ORANGE, linewidth=3, zorder=0)
        png, box, spots = show(axes.figure, "").data, axes.bbox, {}
        step = -(-len(rows) // MAX_SPOTS)
        for row in rows[::step]:  # a strip as high as the axes around each point
            ends = (
                axes.transData.transform((row["update"] + side * step, 0))[0]
                for side in (-0.5, 0.5)
            )
            start, end = (min(max(x, box.x0), box.x1) for x in ends)
            spots[f"update {row['update']}"] = (
                start,
                axes.figure.bbox.height - box.y1,
                end - start,
                box.height,
            )
        curve.children = [clickable_picture(png, spots, go)]

    def go(name: str) -> None:
        update.value = int(name.split()[1])

    def list_groups(_: Any = None) -> None:
        episodes = rollouts.get(update.value, [])
        parts = [episodes[i : i + group_size] for i in range(0, len(episodes), group_size)]
        groups[:] = sorted(
            parts, key=lambda group: len({e.reward for e in group}) == 1
        )  # those that teach something first
        names = [f"seed {g[0].seed}: {sum(e.solved for e in g)} of {len(g)} solved" for g in groups]
        choice.options = [
            (name, (update.value, i)) for i, name in enumerate(names)
        ]  # a value of its own for each update
        choice.value = (update.value, 0) if groups else None

    def draw_group(_: Any = None) -> None:
        if choice.value is None:  # an update without episodes
            return
        try:
            figure, said.value = rollout_group(groups[choice.value[1]], client), ""
        except BrowserServerError as error:  # the server is closed: a sentence, and grey pages
            figure, said.value = rollout_group(groups[choice.value[1]]), escape(str(error))
        picture.value = show(figure, "").data

    update.observe(draw_curve, "value")
    update.observe(list_groups, "value")
    choice.observe(draw_group, "value")
    draw_curve()
    list_groups()
    show_live(
        w.VBox([curve, w.HBox([update, choice]), said, picture]),
        "Run this notebook to choose a point of the curve here, and to see the rollouts of that update.",
    )
