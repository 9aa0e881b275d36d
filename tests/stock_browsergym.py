"""Plays episodes in stock BrowserGym and prints what it shows, for the parity test.

stdin: JSON [[task, seed, [action, ...]], ...]; stdout: JSON [[observation, ...], ...]. A process of its own, because
Playwright's synchronous API wants a thread without an event loop.
"""

import http.server
import json
import os
import sys
import threading

import browsergym.miniwob  # noqa: F401  (registers the tasks)
import gymnasium
from browsergym.utils.obs import flatten_axtree_to_str
from playwright.sync_api import BrowserType

from helpers.browser.server import _Pages
from helpers.chromium import find_chromium


def fields(observation, reward=0.0, done=False, info=None):
    properties = observation["extra_element_properties"]
    return {
        "goal": observation["goal"], "axtree_txt": flatten_axtree_to_str(observation["axtree_object"]),
        "bids": sorted(properties), "clickable": sorted(b for b, p in properties.items() if p["clickable"]),
        "focused_bid": observation["focused_element_bid"], "error": observation["last_action_error"].split("\n")[0],
        "done": done, "stock_reward": reward,
        "raw_reward": info["task_info"].get("RAW_REWARD_GLOBAL", 0.0) if done else 0.0,
    }


def main():
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    os.environ["MINIWOB_URL"] = f"http://127.0.0.1:{pages.server_port}/miniwob/"
    launch = BrowserType.launch  # the chat window has no setting for the browser's path
    BrowserType.launch = lambda self, **named: launch(self, **named | {"executable_path": find_chromium()})
    episodes = []
    for task, seed, actions in json.load(sys.stdin):
        env = gymnasium.make(f"browsergym/miniwob.{task}", disable_env_checker=True)
        episodes.append([fields(env.reset(seed=seed)[0])])
        for action in actions:
            observation, reward, done, _, info = env.step(action)
            episodes[-1].append(fields(observation, reward, done, info))
        env.close()
    print("RESULT " + json.dumps(episodes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
