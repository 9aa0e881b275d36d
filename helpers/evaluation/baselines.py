"""Evaluate a policy, or an agent without one, on held-out pages: success with intervals, task by task.

    python -m scripts.evaluate --task suite,unseen --n 200 --policy runs/train/policy --output recordings/my-run
    python -m scripts.evaluate --task suite --agent text_match

Agents: random, first_button, text_match, oracle (the scripted solutions of `helpers.evaluation.scripted`). ``--temperature 1`` samples.
"""

from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TEST_SEEDS, rollout_config, specs
from helpers.evaluation.agents import careful, first_button_agent, random_agent, text_match_agent
from helpers.evaluation.evaluate import Evaluation
from helpers.evaluation.scripted import SCRIPTS

AGENTS = {
    "random": random_agent(),
    "first_button": first_button_agent,
    "text_match": text_match_agent,
    "oracle": careful(lambda seen, turn: SCRIPTS.get(seen.task, text_match_agent)(seen, turn)),
}


def play_baseline(agent: str, tasks: str, n: int, clients) -> Evaluation:
    """An agent on the test pages, with the number of turns that a policy has."""
    return Evaluation(
        agent,
        [
            episode
            for task in tasks.split(",")
            for episode in play_agent(
                AGENTS[agent], specs(task, TEST_SEEDS, n), clients, rollout_config(task).max_turns
            )
        ],
    )
