"""From a point of the reward curve to the rollouts behind it."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import ipywidgets as w
from matplotlib.figure import Figure

from helpers.browser.models import BrowserServerError, Client
from helpers.course.figures import ORANGE, Panel, as_png, frames, page_grid, training_curves
from helpers.course.widgets.live import clickable_picture, show_live
from helpers.episodes.advantages import group_advantages
from helpers.episodes.episode import Episode, read_recording
from helpers.episodes.replay import replay
from helpers.settings.language import say

MAX_SPOTS = 100  # points of a curve that can be clicked; the slider reaches those between


def read_rollouts(folder: Path | str) -> dict[int, list[Episode]]:
    """The training episodes of a run by update, from the ``episodes.jsonl`` that it leaves.

    An empty dict where there is no such file.
    """
    path = Path(folder) / "episodes.jsonl"
    if not path.exists():
        return {}
    rollouts: dict[int, list[Episode]] = {}
    for update, episode in read_recording(path):
        rollouts.setdefault(update, []).append(episode)
    return rollouts


def rollout_group(group: Sequence[Episode], client: Client | None = None) -> Figure:
    """A figure of one group: page, answer, reward and advantage (scaled by group) of each rollout.

    Rollouts of several turns get a row each. ``client``: plays recorded episodes again for their
    pictures; without one they are grey.
    """
    advantages = group_advantages([episode.reward for episode in group], len(group))
    rows = []
    for episode, advantage in zip(group, advantages, strict=True):
        if client is not None and not all(turn.screenshot for turn in episode.turns):
            replay(episode, client)
        rows.append(_panels(episode, advantage))
    turns = max(len(row) for row in rows)
    panels: list[Panel | None] = []
    for row in rows:
        gaps = turns - len(row)
        panels += [*row, *[None] * gaps]
    columns = min(4, len(group)) if turns == 1 else turns
    first = group[0]
    title = say(
        "{task}, seed {seed}: {goal}", task=first.task, seed=first.seed, goal=first.goal[:70]
    )
    return page_grid(panels, columns, title)


def _panels(episode: Episode, advantage: float) -> list[Panel]:
    """One panel per turn; above the first of them what the rollout earned."""
    first, *others = frames(episode)[: max(1, len(episode.turns))]
    lost = episode.reward is None
    reward = say("lost") if lost else say("reward {reward:g}", reward=episode.reward)
    above = say("{reward}, advantage {advantage:+.2f}", reward=reward, advantage=advantage)
    return [first._replace(above=above), *others]


def view_rollouts(folder: Path | str, group_size: int, client: Client | None = None) -> None:
    """Choose a point of a run's reward curve, then a group of that update; see its rollouts.

    ``folder``: of a training run, with its ``episodes.jsonl``; the groups are drawn as
    `rollout_group` draws them.
    """
    rollouts = read_rollouts(folder)
    if not rollouts:
        print(
            say(
                "There is no episodes.jsonl in {folder}: only a run that was made here has its "
                "training episodes.",
                folder=Path(folder).name,
            )
        )
        return
    show_live(
        _Viewer(rollouts, group_size, client).widget,
        say(
            "Run this notebook to choose a point of the curve here, and to see the rollouts of "
            "that update."
        ),
    )


class _Viewer:
    """The widget of `view_rollouts`, and what happens when an update or a group is chosen."""

    def __init__(
        self, rollouts: Mapping[int, list[Episode]], group_size: int, client: Client | None
    ) -> None:
        self._rollouts = rollouts
        self._group_size = group_size
        self._client = client
        self._rows = [_mean_reward(update, episodes) for update, episodes in rollouts.items()]
        self._groups: list[list[Episode]] = []  # of the chosen update
        first, last = min(rollouts), max(rollouts)
        self._update = w.IntSlider(
            first, first, last, description=say("update"), continuous_update=False
        )
        self._choice = w.Dropdown(description=say("group"), layout=w.Layout(width="32em"))
        self._curve = w.Box()
        self._said = w.HTML()
        self._picture = w.Image(
            format="png", layout=w.Layout(max_width="100%", align_self="flex-start")
        )
        self.widget = w.VBox(
            [self._curve, w.HBox([self._update, self._choice]), self._said, self._picture]
        )
        self._update.observe(self._draw_curve, "value")
        self._update.observe(self._list_groups, "value")
        self._choice.observe(self._draw_group, "value")
        self._draw_curve()
        self._list_groups()

    def _draw_curve(self, _: object = None) -> None:
        update = self._update.value
        title = say("Update {update} is shown below; click another", update=update)
        figure = training_curves({say("this run"): self._rows}, title)
        figure.axes[0].axvline(self._update.value, color=ORANGE, linewidth=3, zorder=0)
        picture = as_png(figure)  # this lays the figure out: places are known after it
        updates = [int(row["update"]) for row in self._rows]
        step = math.ceil(len(updates) / MAX_SPOTS)
        spots = {
            say("update {update}", update=update): _strip(figure, update, step)
            for update in updates[::step]
        }
        self._curve.children = [clickable_picture(picture, spots, self._go)]

    def _go(self, name: str) -> None:
        """Choose the update of a spot, whose name ends in its number: "update 7"."""
        self._update.value = int(name.split()[-1])

    def _list_groups(self, _: object = None) -> None:
        """Offer the groups of the chosen update, those that teach something first."""
        update = self._update.value
        episodes = self._rollouts.get(update, [])
        starts = range(0, len(episodes), self._group_size)
        groups = [episodes[start : start + self._group_size] for start in starts]
        self._groups = sorted(groups, key=_teaches_nothing)
        options = []
        for i, group in enumerate(self._groups):
            solved = sum(episode.solved for episode in group)
            name = say(
                "seed {seed}: {solved} of {n} solved",
                seed=group[0].seed,
                solved=solved,
                n=len(group),
            )
            options.append((name, (update, i)))  # another value than in any other update
        self._choice.options = options
        self._choice.value = (update, 0) if options else None

    def _draw_group(self, _: object = None) -> None:
        if self._choice.value is None:  # an update without episodes
            return
        group = self._groups[self._choice.value[1]]
        try:
            figure = rollout_group(group, self._client)
            self._said.value = ""
        except BrowserServerError as error:  # the server is closed: a sentence, and grey pages
            figure = rollout_group(group)
            self._said.value = escape(str(error))
        self._picture.value = as_png(figure)


def _mean_reward(update: int, episodes: Sequence[Episode]) -> dict[str, float]:
    """A row of `training_curves`."""
    known = [episode.reward for episode in episodes if episode.reward is not None]
    return {"update": update, "reward": sum(known) / len(known) if known else math.nan}


def _teaches_nothing(group: Sequence[Episode]) -> bool:
    """Whether all rollouts of a group earned the same."""
    return len({episode.reward for episode in group}) == 1


def _strip(figure: Figure, update: int, step: int) -> tuple[float, float, float, float]:
    """x, y, width and height of a strip around an update, as high as the axes, in pixels."""
    axes = figure.axes[0]
    box = axes.bbox
    middle = [(update - step / 2, 0), (update + step / 2, 0)]
    ends = axes.transData.transform(middle)[:, 0]
    start = min(max(ends[0], box.x0), box.x1)
    end = min(max(ends[1], box.x0), box.x1)
    return start, figure.bbox.height - box.y1, end - start, box.height
