"""The episodes of a small training run, as its recorder writes them."""

import json

from helpers.browser.actions import parse_action
from helpers.episodes.episode import Episode, Turn


def episode(task, seed, answer, reward, box=None):
    """An episode of one turn."""
    turn = Turn(['"Click Me!" button 13'], answer, parse_action(answer), reward, box=box)
    ended = "solved" if reward else "failed"
    return Episode(task, seed, "Click the button.", [turn], reward=reward, ended=ended)


def write_run(folder):
    """Write two updates of one group of two each: one is solved by half, the other by all."""
    folder.mkdir(parents=True)
    lines = []
    for update, rewards in ((1, (0.0, 1.0)), (2, (1.0, 1.0))):
        for reward in rewards:
            answer = "click('13')" if reward else "tap(13)"
            played = episode("click-test", 40 + update, answer, reward, (46, 136, 35, 35))
            lines.append(json.dumps({"update": update, **played.to_json()}) + "\n")
    (folder / "episodes.jsonl").write_text("".join(lines))
