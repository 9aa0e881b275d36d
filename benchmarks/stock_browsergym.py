"""Plays episodes in stock BrowserGym and says what it showed and how long each call took.

A process of its own, because Playwright's synchronous API wants a thread without an event loop. It prints READY, then reads one
line, JSON [[task, seed, [action, ...]], ...], and answers with one line, "RESULT " and JSON [[observation, ...], ...]. The
parity test and the benchmark of the environment both use it.
"""

import http.server
import json
import os
import sys
import threading
import time

import browsergym.miniwob  # noqa: F401  (registers the tasks)
import gymnasium
from browsergym.core.observation import extract_screenshot
from browsergym.utils.obs import flatten_axtree_to_str
from playwright.sync_api import BrowserType

from helpers.browser.chromium import find_chromium
from helpers.browser.server import _Pages


def fields(observation, seconds, reward=0.0, done=False, info=None):
    properties, text = (
        observation["extra_element_properties"],
        flatten_axtree_to_str(observation["axtree_object"]),
    )
    return {
        "goal": observation["goal"],
        "axtree_txt": text,
        "bids": sorted(properties),
        "clickable": sorted(b for b, p in properties.items() if p["clickable"]),
        "focused_bid": observation["focused_element_bid"],
        "error": observation["last_action_error"].split("\n")[0],
        "url": observation["url"],
        "left": info["task_info"].get("error", "") if info else "",
        "done": done,
        "reward": float(reward > 0),  # its size shrinks with the wall clock
        "raw_reward": info["task_info"].get("RAW_REWARD_GLOBAL", 0.0) if done else 0.0,
        "seconds": seconds,
        # What upstream's OpenEnv server puts on the wire: the text, and the picture as nested lists.
        "wire_bytes": len(
            json.dumps(
                {
                    "screenshot": observation["screenshot"].tolist(),
                    "goal": observation["goal"],
                    "text": text,
                }
            )
        ),
    }


def play(env, seed, actions):
    """One episode: its observations, and the seconds that one more screenshot takes."""
    started = time.perf_counter()
    observation = env.reset(seed=seed)[0]
    seen = [fields(observation, time.perf_counter() - started)]
    for action in actions:
        started = time.perf_counter()
        observation, reward, done, _, info = env.step(action)
        seen.append(fields(observation, time.perf_counter() - started, reward, done, info))
    started = time.perf_counter()
    extract_screenshot(env.unwrapped.page)
    seen[-1]["screenshot_seconds"] = time.perf_counter() - started
    return seen


def prepare():
    """Serve the task pages and tell BrowserGym where they and Chromium are."""
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    os.environ["MINIWOB_URL"] = f"http://127.0.0.1:{pages.server_port}/miniwob/"
    launch = BrowserType.launch  # the chat window has no setting for the browser's path
    BrowserType.launch = lambda self, **named: launch(
        self, **named | {"executable_path": find_chromium()}
    )


def make_env(task):
    return gymnasium.make(f"browsergym/miniwob.{task}", disable_env_checker=True)


def main():
    prepare()
    print("READY", flush=True)
    episodes, env, last = [], None, None
    for task, seed, actions in json.loads(sys.stdin.readline()):
        if task != last:  # each holds two browsers: one at a time
            if env:
                env.close()
            env, last = make_env(task), task
        try:
            episodes.append(play(env, seed, actions))
        except Exception as error:  # one that stock cannot play must not cost the others
            print(task, seed, actions, error, file=sys.stderr)
            episodes.append([])
            last = None
    print("RESULT " + json.dumps(episodes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
