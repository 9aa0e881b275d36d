"""Plays episodes in stock BrowserGym and says what it showed and how long each call took.

A process of its own, because Playwright's synchronous API wants a thread without an event loop. It
prints READY; then each line that it reads is an episode, JSON [task, seed, [action, ...]], and is
answered with a line, "RESULT " and JSON [observation, ...], an empty list where stock cannot play
it. `benchmarks.stock_processes` starts it, with the word "details" where all that stock shows is
asked for, pictures included.
"""

import base64
import functools
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsFloat

import browsergym.miniwob  # noqa: F401  (registers the tasks)
import gymnasium
from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.core.observation import extract_screenshot
from browsergym.utils.obs import flatten_axtree_to_str, flatten_dom_to_str, prune_html
from PIL import Image
from playwright.sync_api import BrowserType

from helpers.browser.chromium import find_chromium
from helpers.browser.task_pages import serve_task_pages

# Those that stock has by default, and the actions on places.
SUBSETS: Any = ["chat", "infeas", "bid", "nav", "tab", "coord"]

# What makes a list of observations of an environment, a seed and actions.
How = Callable[[gymnasium.Env, int, Sequence[str]], list[dict[str, Any]]]


def shown(observation: dict[str, Any]) -> dict[str, Any]:
    """What an observation shows, ready for JSON."""
    properties = observation["extra_element_properties"]
    return {
        "goal": observation["goal"],
        "axtree_txt": flatten_axtree_to_str(observation["axtree_object"]),
        "bids": sorted(properties),
        "clickable": sorted(bid for bid, known in properties.items() if known["clickable"]),
        "focused_bid": observation["focused_element_bid"],
        "error": observation["last_action_error"].split("\n")[0],
        "url": observation["url"],
    }


def outcome(reward: SupportsFloat, done: bool, info: dict[str, Any]) -> dict[str, Any]:
    """What an action earned."""
    task_info = info.get("task_info", {})
    return {
        "left": task_info.get("error", ""),
        "done": done,
        "reward": float(float(reward) > 0),  # its size shrinks with the wall clock
        "raw_reward": task_info.get("RAW_REWARD_GLOBAL", 0.0) if done else 0.0,
    }


def details(observation: dict[str, Any]) -> dict[str, Any]:
    """What `shown` leaves out: the boxes, how much of each element is visible, which of them bear a
    mark in a marked picture, the page's HTML, and its picture as base64 of a PNG."""
    properties = observation["extra_element_properties"].items()
    with io.BytesIO() as file:
        Image.fromarray(observation["screenshot"]).save(file, "PNG", compress_level=1)
        png = base64.b64encode(file.getvalue()).decode()
    return {
        "bbox": {bid: known["bbox"] for bid, known in properties},
        "visibility": {bid: known["visibility"] for bid, known in properties},
        "set_of_marks": sorted(bid for bid, known in properties if known["set_of_marks"]),
        "pruned_html": prune_html(flatten_dom_to_str(observation["dom_object"])),
        "screenshot": png,
    }


def wire_bytes(observation: dict[str, Any]) -> int:
    """What upstream's OpenEnv server puts on the wire: the text, and the picture as nested
    lists."""
    wire = {
        "screenshot": observation["screenshot"].tolist(),
        "goal": observation["goal"],
        "text": flatten_axtree_to_str(observation["axtree_object"]),
    }
    return len(json.dumps(wire))


def play(env: gymnasium.Env, seed: int, actions: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One episode: each observation as stock returns it, with what it earned and the seconds that
    it took as "outcome" and "seconds" in it. It ends where stock says that it is over."""
    started = time.perf_counter()
    observation, info = env.reset(seed=seed)
    seconds = time.perf_counter() - started
    yield observation | {"seconds": seconds, "outcome": outcome(0.0, False, info)}
    for action in actions:
        started = time.perf_counter()
        observation, reward, done, _, info = env.step(action)
        seconds = time.perf_counter() - started
        yield observation | {"seconds": seconds, "outcome": outcome(reward, done, info)}
        if done:
            break


def measure(env: gymnasium.Env, seed: int, actions: Sequence[str]) -> list[dict[str, Any]]:
    """One episode: its observations, and the seconds that one more screenshot takes."""
    seen = [
        shown(each) | each["outcome"] | {"seconds": each["seconds"], "wire_bytes": wire_bytes(each)}
        for each in play(env, seed, actions)
    ]
    started = time.perf_counter()
    stock: Any = env.unwrapped
    extract_screenshot(stock.page)
    seen[-1]["screenshot_seconds"] = time.perf_counter() - started
    return seen


def describe(env: gymnasium.Env, seed: int, actions: Sequence[str]) -> list[dict[str, Any]]:
    """One episode: all that its observations show."""
    return [shown(each) | each["outcome"] | details(each) for each in play(env, seed, actions)]


def prepare() -> None:
    """Serve the task pages and tell BrowserGym where they and Chromium are."""
    pages = serve_task_pages()
    os.environ["MINIWOB_URL"] = f"http://127.0.0.1:{pages.server_port}/miniwob/"
    # The chat window has no setting for the browser's path.
    launch_ours = functools.partialmethod(BrowserType.launch, executable_path=find_chromium())
    BrowserType.launch = launch_ours  # pyright: ignore[reportAttributeAccessIssue]


def make_env(task: str) -> gymnasium.Env:
    """A stock environment; it holds two browsers."""
    return gymnasium.make(
        f"browsergym/miniwob.{task}",
        disable_env_checker=True,
        action_mapping=HighLevelActionSet(SUBSETS).to_python_code,
    )


def answer(episodes: Iterable[str], how: How) -> Iterator[list[dict[str, Any]]]:
    """What stock shows in each episode, a line of JSON each; nothing where it cannot play one."""
    env: gymnasium.Env | None = None
    task_of_env = ""
    for line in episodes:
        task, seed, actions = json.loads(line)
        if env is None or task != task_of_env:  # one environment at a time
            if env is not None:
                env.close()
            env = make_env(task)
            task_of_env = task
        try:
            yield how(env, seed, actions)
        except Exception as error:  # one that stock cannot play must not cost the others
            print(task, seed, actions, error, file=sys.stderr)
            task_of_env = ""
            yield []


def main() -> None:
    """Answer until there are no more episodes, then leave without waiting for the browsers."""
    prepare()
    how = describe if "details" in sys.argv[1:] else measure
    print("READY", flush=True)
    for seen in answer(sys.stdin, how):
        print("RESULT " + json.dumps(seen), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
