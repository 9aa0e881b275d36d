"""Upstream's BrowserGym client, and how TRL's examples use it.

Where OpenEnv's ``browsergym_env`` is installed, that is the client; else one of our own, with the
same names, which sends and reads the same messages."""

import importlib.util
from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State

# The keys of stock BrowserGym's observation that upstream's server hands on.
OBSERVED = {
    "chat_messages",
    "goal",
    "goal_object",
    "open_pages_urls",
    "open_pages_titles",
    "active_page_index",
    "url",
    "extra_element_properties",
    "focused_element_bid",
    "last_action",
    "last_action_error",
    "elapsed_time",
}

if importlib.util.find_spec("browsergym_env"):
    from browsergym_env import BrowserGymAction, BrowserGymEnv, BrowserGymObservation
else:

    class BrowserGymAction(Action):
        action_str: str

    class BrowserGymObservation(Observation):
        text: str = ""
        url: str = ""
        screenshot: list[list[list[int]]] | None = None
        goal: str = ""
        axtree_txt: str = ""
        pruned_html: str = ""
        error: str = ""
        last_action_error: bool = False

    class BrowserGymState(State):
        benchmark: str = ""
        task_name: str = ""
        task_id: str | None = None
        goal: str = ""
        current_url: str = ""
        max_steps: int | None = None
        cum_reward: float = 0.0

    class BrowserGymEnv(EnvClient[BrowserGymAction, BrowserGymObservation, BrowserGymState]):
        """Takes an address; asks for a task and a seed, and takes what it is given."""

        def _step_payload(self, action: BrowserGymAction) -> dict[str, Any]:
            return action.model_dump(include={"action_str", "metadata"})

        def _parse_result(self, payload: dict[str, Any]) -> StepResult:
            told = payload["observation"]
            known = BrowserGymObservation.model_fields.keys() & told.keys()
            ended = {"done": payload["done"], "reward": payload["reward"]}
            seen = BrowserGymObservation(**{name: told[name] for name in known}, **ended)
            return StepResult(observation=seen, **ended)

        def _parse_state(self, payload: dict[str, Any]) -> BrowserGymState:
            known = BrowserGymState.model_fields.keys() & payload.keys()
            return BrowserGymState(**{name: payload[name] for name in known})


def act(client, text):
    """One step of the client."""
    return client.step(BrowserGymAction(action_str=text))
