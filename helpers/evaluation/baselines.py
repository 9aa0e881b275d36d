"""The agents of the evaluation command by name, and how they are played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TEST_SEEDS, specs, task_names
from helpers.evaluation.agents import (
    first_button_agent,
    noop_on_error,
    random_agent,
    text_match_agent,
)
from helpers.evaluation.evaluate import Evaluation
from helpers.evaluation.scripted import SCRIPTS

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client
    from helpers.episodes.play import Agent


def scripted_agent(observation: BrowserObservation, turn: int) -> str:
    """The scripted solution of the page's task; where there is none, the text-match agent."""
    script = SCRIPTS.get(observation.task, text_match_agent)
    return script(observation, turn)


AGENTS: dict[str, Agent] = {
    "random": random_agent(),
    "first_button": first_button_agent,
    "text_match": text_match_agent,
    "oracle": noop_on_error(scripted_agent),
}


def play_baseline(
    agent: str,
    tasks: str | Sequence[str],
    n: int,
    clients: Sequence[Client],
    seeds: range = TEST_SEEDS,
) -> Evaluation:
    """Play ``n`` pages of each task with an agent of `AGENTS`, with the number of turns that a
    policy has. ``seeds``: of the pages, by default those of test pages."""
    episodes = []
    for task in task_names(tasks):
        pages = specs(task, seeds, n)
        episodes += play_agent(AGENTS[agent], pages, clients, rollout_config(task).max_turns)
    return Evaluation(agent, episodes)
