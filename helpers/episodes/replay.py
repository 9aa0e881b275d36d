"""Plays a recorded episode again, for the pictures that a recording leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.episodes.play import play_agent

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client


def replay(episode: Episode, client: Client) -> Episode:
    """Give a recorded episode its screenshots and boxes; returns it as it was played this time.

    The same seed and the same answers give the same pages, so the outcome is the same, too: compare
    the rewards where a picture must not tell another story than the recording. An episode without
    turns has no pictures and comes back as it is.
    """
    if not episode.turns:
        return episode

    def recorded_answer(observation: BrowserObservation, turn: int) -> str:
        return episode.turns[turn].answer

    spec = EpisodeSpec(episode.task, episode.seed)
    again = play_agent(recorded_answer, [spec], [client], len(episode.turns), screenshots=True)[0]
    for turn, played in zip(episode.turns, again.turns, strict=False):  # it may have ended sooner
        turn.screenshot = played.screenshot
        turn.box = played.box
    episode.last_screenshot = again.last_screenshot
    return again
