"""Record the episodes that the site's player shows: ``make player``.

    python -m tools.record_player
    python -m tools.record_player --untrained recordings/click-button-full-seed0/before.jsonl \\
        --trained recordings/click-button-full-seed0/after.jsonl --choose click-button#100000

Two recordings are read, of an untrained and of a trained policy: their episodes hold the tokens
and the probability with which each was answered. What they leave out, the pictures, comes from
playing the same answers on the same pages again, in a real browser. An episode that is not as it
was recorded, page by page and reward by reward, is refused.
"""

import io
import itertools
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from PIL import Image

from helpers.browser import start_browser_server
from helpers.browser.models import Client
from helpers.command_line import run
from helpers.course.figures import PAGE
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, Turn, read_episodes
from helpers.episodes.ledger import POLICY, Ledger
from helpers.episodes.replay import replay
from helpers.settings.errors import CourseError
from helpers.settings.files import write_whole, writing
from helpers.settings.names import split_names
from helpers.settings.paths import RECORDINGS, ROOT

SUITE = RECORDINGS / "suite"
CHOSEN = (
    "click-button#0,click-tab#0,click-button-sequence#0,login-user#0,enter-password#2,"
    "click-option#1,click-collapsible#0,unicode-test#0,click-tab-2#0,focus-text-2#0"
)
EPISODES = "episodes.json"
DIGITS = 6  # of a logprob
SIDES = ("untrained", "trained")


class PlayerError(CourseError):
    """An episode is not there, or is not any more what was recorded."""


def find_episodes(path: Path, specs: list[EpisodeSpec]) -> list[Episode]:
    """The episodes of a recording that ``specs`` name, in that order; `PlayerError` without one."""
    if not path.is_file():
        raise PlayerError(f"There is no recording {path}: name a file of episodes.")
    recorded = {f"{episode.task}#{episode.seed}": episode for episode in read_episodes(path)}
    missing = [str(spec) for spec in specs if str(spec) not in recorded]
    if missing:
        known = ", ".join(list(recorded)[:8])
        raise PlayerError(
            f"{path} has no {', '.join(missing)}: choose others with --choose ({known} ...)."
        )
    found = [recorded[str(spec)] for spec in specs]
    for episode in found:
        if len(answers(episode.ledger)) != len(episode.turns):
            raise PlayerError(
                f"{episode.task}#{episode.seed} in {path} has no tokens for each of its answers: "
                "choose an episode that a policy played."
            )
    return found


def answers(ledger: Ledger) -> list[tuple[slice, slice]]:
    """For each answer which tokens of the ledger were read since the last one, and which are it."""
    found: list[tuple[slice, slice]] = []
    start = read_from = 0
    for by_policy, piece in itertools.groupby(ledger.owner, lambda owner: owner == POLICY):
        end = start + len(list(piece))
        if by_policy:
            found.append((slice(read_from, start), slice(start, end)))
            read_from = end
        start = end
    return found


def play_again(episode: Episode, client: Client) -> None:
    """Give a recorded episode its pictures; `PlayerError` where it is not the one recorded."""
    name = f"{episode.task}#{episode.seed}"
    again = replay(episode, client)
    if again.reward != episode.reward:
        raise PlayerError(
            f"{name} was recorded with reward {episode.reward} and earns {again.reward} now: "
            "record its episodes again."
        )
    if [turn.page for turn in again.turns] != [turn.page for turn in episode.turns]:
        raise PlayerError(f"The pages of {name} are not those recorded: record its episodes again.")


class Pictures:
    """A folder of pictures of pages; pages that look alike share one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: dict[bytes, str] = {}

    def add(self, screenshot: bytes | None) -> str:
        """Write the task's part of a screenshot; returns the name of its file."""
        if screenshot is None:
            raise PlayerError("A page has no picture: record its episodes again.")
        shown = Image.open(io.BytesIO(screenshot)).convert("RGB").crop(PAGE)
        key = shown.tobytes()
        if key not in self._names:
            name = f"page-{len(self._names) + 1:02d}.webp"
            with writing(self.folder / name):
                shown.save(self.folder / name, lossless=True, method=6)
            self._names[key] = name
        return self._names[key]


def tokens_of(ids: list[int], logprobs: list[float], tokenizer: Any) -> list[list[Any]]:
    """[text, id, logprob] of each token; a letter of several tokens stands at the last of them."""
    found: list[list[Any]] = []
    written = ""
    for number, (token, logprob) in enumerate(zip(ids, logprobs, strict=True), 1):
        text = str(tokenizer.decode(ids[:number]))
        whole = "" if text.endswith("\ufffd") else text[len(written) :]
        written += whole
        found.append([whole, token, round(logprob, DIGITS)])
    return found


def box_of(turn: Turn) -> list[float] | None:
    """Where an action went on the picture: left, top, width, height in percent of it."""
    if turn.box is None:
        return None
    left, top, right, bottom = PAGE
    x, y, width, height = turn.box
    across, down = (right - left) / 100, (bottom - top) / 100
    place = ((x - left) / across, (y - top) / down, width / across, height / down)
    return [round(value, 1) for value in place]


def side_of(episode: Episode, tokenizer: Any, pictures: Pictures) -> dict[str, Any]:
    """One policy's episode, turn by turn, as the player shows it."""
    ledger = episode.ledger
    turns = []
    for turn, (read, wrote) in zip(episode.turns, answers(ledger), strict=True):
        turns.append(
            {
                "picture": pictures.add(turn.screenshot),
                "box": box_of(turn),
                "read": str(tokenizer.decode(ledger.ids[read])),
                "answer": tokens_of(ledger.ids[wrote], ledger.logprobs[wrote], tokenizer),
                "kind": turn.parsed.kind,
                "action": turn.parsed.action,
                "error": turn.error,
            }
        )
    return {
        "turns": turns,
        "last_picture": pictures.add(episode.last_screenshot),
        "ended": episode.ended,
        "reward": episode.reward,
        "raw_reward": episode.raw_reward,
    }


def write_recording(
    folder: Path, facts: dict[str, str], sides: dict[str, list[Episode]], tokenizer: Any
) -> None:
    """Write the episodes of both sides, page by page the same ones, into a folder made anew."""
    if folder.exists() and any(folder.iterdir()) and not (folder / EPISODES).exists():
        raise PlayerError(f"{folder} holds something else: choose another folder with --output.")
    shutil.rmtree(folder, ignore_errors=True)
    with writing(folder):
        folder.mkdir(parents=True)
    pictures = Pictures(folder)
    shown = []
    for both in zip(*sides.values(), strict=True):
        page: dict[str, Any] = {"task": both[0].task, "seed": both[0].seed, "goal": both[0].goal}
        for side, episode in zip(sides, both, strict=True):
            page[side] = side_of(episode, tokenizer, pictures)
        shown.append(page)
    text = json.dumps({**facts, "episodes": shown}, ensure_ascii=False, indent=1)
    write_whole(folder / EPISODES, text + "\n")


def shown_path(path: Path) -> str:
    """A path in the repository without what differs by machine."""
    path = path.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def main(
    context: typer.Context,
    untrained: Annotated[Path, typer.Option(help="episodes of the policy before")] = (
        SUITE / "untrained-own" / "episodes.jsonl"
    ),
    trained: Annotated[Path, typer.Option(help="episodes of the policy after")] = (
        SUITE / "grpo" / "episodes.jsonl"
    ),
    choose: Annotated[str, typer.Option(help="task#seed, several with commas")] = CHOSEN,
    policy: Annotated[
        str, typer.Option(help="whose tokens the episodes hold: a name, a folder or a Hub id")
    ] = "smollm2-135m",
    output: Annotated[Path, typer.Option(help="folder for the episodes and their pictures")] = (
        RECORDINGS / "player"
    ),
) -> None:
    """Record the episodes that the site's player shows, with pictures, from two recordings."""
    specs = [EpisodeSpec.read(name) for name in split_names(choose)]
    sides = {
        side: find_episodes(path, specs)
        for side, path in zip(SIDES, (untrained, trained), strict=True)
    }
    # Takes seconds; a recording that is not there is refused before.
    from helpers.policy.loading import load_policy

    tokenizer = load_policy(policy, weights=False).tokenizer
    with start_browser_server(workers=1) as server, server.client() as client:
        for episode in itertools.chain(*sides.values()):
            play_again(episode, client)
    facts = {
        "command": shlex.join(["python", "-m", "tools.record_player", *context.obj]),
        "untrained": shown_path(untrained),
        "trained": shown_path(trained),
        "policy": policy,
    }
    write_recording(output, facts, sides, tokenizer)
    size = sum(path.stat().st_size for path in output.iterdir()) / 1e6
    print(f"  {len(specs)} episodes, played by two policies: {size:.2f} MB in {shown_path(output)}")


if __name__ == "__main__":
    sys.exit(run(main))
