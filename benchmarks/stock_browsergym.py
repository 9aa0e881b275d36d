"""Plays episodes in stock BrowserGym and says what it showed and how long each call took.

A process of its own, because Playwright's synchronous API wants a thread without an event loop. It
prints READY, then reads one line, JSON [[task, seed, [action, ...]], ...], and answers with one
line, "RESULT " and JSON [[observation, ...], ...]. `benchmarks.stock_processes` starts it.
"""

import functools
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, SupportsFloat

import browsergym.miniwob  # noqa: F401  (registers the tasks)
import gymnasium
from browsergym.core.observation import extract_screenshot
from browsergym.utils.obs import flatten_axtree_to_str
from playwright.sync_api import BrowserType

from helpers.browser.chromium import find_chromium
from helpers.browser.task_pages import serve_task_pages


def shown(
    observation: dict[str, Any],
    seconds: float,
    reward: SupportsFloat = 0.0,
    done: bool = False,
    info: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One observation, its outcome, and the seconds that it took, ready for JSON."""
    properties = observation["extra_element_properties"]
    text = flatten_axtree_to_str(observation["axtree_object"])
    task_info = info["task_info"] if info else {}
    # What upstream's OpenEnv server puts on the wire: the text, and the picture as nested lists.
    wire = {
        "screenshot": observation["screenshot"].tolist(),
        "goal": observation["goal"],
        "text": text,
    }
    return {
        "goal": observation["goal"],
        "axtree_txt": text,
        "bids": sorted(properties),
        "clickable": sorted(bid for bid, known in properties.items() if known["clickable"]),
        "focused_bid": observation["focused_element_bid"],
        "error": observation["last_action_error"].split("\n")[0],
        "url": observation["url"],
        "left": task_info.get("error", ""),
        "done": done,
        "reward": float(float(reward) > 0),  # its size shrinks with the wall clock
        "raw_reward": task_info.get("RAW_REWARD_GLOBAL", 0.0) if done else 0.0,
        "seconds": seconds,
        "wire_bytes": len(json.dumps(wire)),
    }


def play(env: gymnasium.Env, seed: int, actions: Sequence[str]) -> list[dict[str, Any]]:
    """One episode: its observations, and the seconds that one more screenshot takes."""
    started = time.perf_counter()
    observation, _ = env.reset(seed=seed)
    seen = [shown(observation, time.perf_counter() - started)]
    for action in actions:
        started = time.perf_counter()
        observation, reward, done, _, info = env.step(action)
        seen.append(shown(observation, time.perf_counter() - started, reward, done, info))
    started = time.perf_counter()
    stock: Any = env.unwrapped
    extract_screenshot(stock.page)
    seen[-1]["screenshot_seconds"] = time.perf_counter() - started
    return seen


def prepare() -> None:
    """Serve the task pages and tell BrowserGym where they and Chromium are."""
    pages = serve_task_pages()
    os.environ["MINIWOB_URL"] = f"http://127.0.0.1:{pages.server_port}/miniwob/"
    # The chat window has no setting for the browser's path.
    launch_ours = functools.partialmethod(BrowserType.launch, executable_path=find_chromium())
    BrowserType.launch = launch_ours  # pyright: ignore[reportAttributeAccessIssue]


def make_env(task: str) -> gymnasium.Env:
    """A stock environment; it holds two browsers."""
    return gymnasium.make(f"browsergym/miniwob.{task}", disable_env_checker=True)


def play_plan(plan: list[list[Any]]) -> list[list[dict[str, Any]]]:
    """The episodes of a plan, in its order; an empty one where stock cannot play it."""
    episodes: list[list[dict[str, Any]]] = []
    env: gymnasium.Env | None = None
    task_of_env = ""
    for task, seed, actions in plan:
        if env is None or task != task_of_env:  # one environment at a time
            if env is not None:
                env.close()
            env = make_env(task)
            task_of_env = task
        try:
            episodes.append(play(env, seed, actions))
        except Exception as error:  # one that stock cannot play must not cost the others
            print(task, seed, actions, error, file=sys.stderr)
            episodes.append([])
            task_of_env = ""
    return episodes


def main() -> None:
    """Answer one plan, then leave without waiting for the browsers to close."""
    prepare()
    print("READY", flush=True)
    episodes = play_plan(json.loads(sys.stdin.readline()))
    print("RESULT " + json.dumps(episodes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
