"""Servers that speak upstream's dialect, old and new, reached by their URL: our client plays on
them."""

import numpy
import pytest
from local_apps import serving_app
from peer_client import BrowserGymAction, BrowserGymObservation

from helpers.browser import BrowserServerError, connect
from helpers.browser.openenv_parts import Environment, State, create_app
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.evaluation.agents import text_match_agent

TREE = """RootWebArea 'Click Button Task'
\t[13] button 'no', clickable
\t[14] button 'ok', clickable, focused"""
RED = (255, 0, 0)


class Upstream(Environment):
    """One page with two buttons, told as upstream tells it: pictures as nested lists, no task, no
    step, no seed, the reward of a page that is not solved 0. ``modern``: with the action's error
    and the page's own record in the metadata."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, modern: bool):
        super().__init__()
        self.modern = modern
        self.steps = 0

    def look(self, reward=0.0, done=False, error=""):
        metadata = {}
        if self.modern:
            metadata = {
                "browsergym_obs": {"last_action_error": error, "focused_element_bid": "14"},
                "browsergym_info": {"task_info": {"RAW_REWARD_GLOBAL": reward}},
            }
        picture = numpy.zeros((210, 160, 3), numpy.uint8)
        picture[:] = RED
        return BrowserGymObservation(
            text=TREE,
            axtree_txt=TREE,
            goal='Click on the "ok" button.',
            url="http://pages/click-button",
            screenshot=picture.tolist(),
            last_action_error=bool(error),
            metadata=metadata,
            reward=float(reward > 0),
            done=done,
        )

    def reset(self, seed=None, episode_id=None, **_):
        self.steps = 0
        return self.look()

    def step(self, action, timeout_s=None, **_):
        self.steps += 1
        if action.action_str == "click('14')":
            return self.look(1.0, True)
        if action.action_str == "click('13')":
            return self.look(0.4, True)  # upstream pays in full for any raw reward above 0
        return self.look(error="ValueError: Could not find element with bid '99'")

    @property
    def state(self):
        return State(step_count=self.steps)


def serving(modern):
    """The address of such a server."""
    return serving_app(
        create_app(
            lambda: Upstream(modern), BrowserGymAction, BrowserGymObservation, max_concurrent_envs=4
        )
    )


@pytest.mark.parametrize("modern", [True, False], ids=["with metadata", "without"])
def test_an_episode_on_an_upstream_server(modern):
    with serving(modern) as url, connect(url) as env:
        seen = env.reset("click-button", seed=3)
        assert (seen.task, seen.seed, seen.step, seen.done) == ("click-button", 3, 0, False)
        assert seen.image().size == (160, 210)
        assert seen.image().getpixel((0, 0)) == RED
        buttons = [(e.bid, e.name) for e in seen.elements if e.role == "button"]
        assert buttons == [("13", "no"), ("14", "ok")]
        failed = env.step("click('99')")
        assert (failed.step, failed.last_action_error) == (1, True)
        why = "ValueError: Could not find element with bid '99'" if modern else ""
        assert failed.error == why
        solved = env.step("click('14')")
        assert (solved.reward, solved.done, solved.ended) == (1.0, True, "solved")


def test_part_of_a_reward_is_no_success_where_the_server_tells_it():
    for modern, reward, raw, ended in ((True, 0.0, 0.4, "failed"), (False, 1.0, None, "solved")):
        with serving(modern) as url, connect(url) as env:
            env.reset("click-button", seed=0)
            seen = env.step("click('13')")
            assert (seen.reward, seen.raw_reward, seen.ended) == (reward, raw, ended)


def test_many_sessions_on_an_upstream_server():
    with serving(True) as url:
        clients = [connect(url) for _ in range(3)]
        specs = [EpisodeSpec("click-button", seed) for seed in range(9)]
        episodes = play_agent(text_match_agent, specs, clients)
        assert [e.reward for e in episodes] == [1.0] * 9
        fourth = connect(url)
        fourth.reset("click-button", 0)
        with pytest.raises(BrowserServerError, match="close a client|capacity"):
            connect(url).reset("click-button", 0)
        for client in (*clients, fourth):
            client.close()
