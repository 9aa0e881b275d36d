"""Plays the agents without a model on the test pages and records what they solve."""

import json

from helpers.browser import start_browser_server
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TEST_SEEDS, specs
from helpers.evaluation.baselines import AGENTS
from helpers.evaluation.evaluate import Evaluation
from helpers.settings.paths import RECORDINGS
from helpers.settings.profiles import get_profile

NAMES = ("random", "first_button", "text_match")


def record_baselines(task: str) -> None:
    """Play the seeds of the evaluation, one click each, as the policy has.

    Writes recordings/baselines/result.json.
    """
    n = get_profile().eval_episodes
    summaries = {}
    with start_browser_server(workers=2) as server:
        clients = server.clients(4)
        for name in NAMES:
            episodes = play_agent(AGENTS[name], specs(task, TEST_SEEDS, n), clients, max_turns=1)
            evaluation = Evaluation(name, episodes)
            summaries[name] = evaluation.summary()
            print(f"  {evaluation}", flush=True)
    path = RECORDINGS / "baselines" / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = "python tools/make_results.py --baselines"
    recorded = {"command": command, "agents": summaries}
    path.write_text(json.dumps(recorded, indent=1) + "\n")
