"""Episodes per second of the course's rollout loop against the loop that earlier scripts had, same policy, same pages, one run.

    python -m benchmarks.rollouts             a table (about 6 min on 2 cores)
    python -m benchmarks.rollouts --json      one JSON object
    python -m benchmarks.rollouts --record    the same, written to recordings/rollouts/result.json too

Three loops play the same pages with the same policy in the same vLLM engine (transformers where there is none), at temperature 1:

- one at a time: stock BrowserGym, one browser; each turn is one request with one prompt
- warm: the course's environment, one session, still one request at a time
- batched: the course's environment, many sessions; one generation call per turn for all that are alive

Policy and prompt are as in the suite, so an episode has as many turns as its task allows.
"""

import argparse
import json
import os
import time
from types import SimpleNamespace

from benchmarks.recording import record
from benchmarks.stock_browsergym import flatten_axtree_to_str, make_env, prepare
from helpers.browser import start_browser_server
from helpers.browser.actions import parse_action
from helpers.episodes.episode import Episode
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import VALIDATION_SEEDS, rollout_config, specs
from helpers.policy.choosing import standalone_generator
from helpers.policy.prompts import build_messages, continuation_ids, observation_text, prompt_ids
from helpers.settings.profiles import get_profile

TASKS = ("click-button", "enter-text")


class Timed:
    """A generator that adds up the seconds it takes."""

    def __init__(self, generator):
        self.generator, self.seconds = generator, 0.0

    def generate(self, prompts, *arguments):
        begin = time.perf_counter()
        answers = self.generator.generate(prompts, *arguments)
        self.seconds += time.perf_counter() - begin
        return answers


def one_at_a_time(env, spec, generator, tokenizer, config) -> int:
    """One episode in stock BrowserGym, as a plain loop; returns its number of turns."""

    def read(observation):
        return SimpleNamespace(
            axtree_txt=flatten_axtree_to_str(observation["axtree_object"]),
            goal=observation["goal"],
            url=observation["url"],
            error=observation["last_action_error"],
        )

    observation, _ = env.reset(seed=spec.seed)
    ids = prompt_ids(tokenizer, build_messages(read(observation), config.prompt))
    turns, done = 0, False
    while not done and turns < config.max_turns:
        turns += 1
        answer = generator.generate([ids], config.max_tokens, config.temperature)[0]
        ids = ids + answer.ids
        parsed = parse_action(tokenizer.decode(answer.ids, skip_special_tokens=True))
        if parsed.ok:
            observation, _, done, _, _ = env.step(parsed.action)
        message = observation_text(read(observation), config.prompt, first=False)
        ids = ids + continuation_ids(tokenizer, message, ended=ids[-1] == tokenizer.eos_token_id)
    return turns


def rate(play, generator, n: int) -> dict[str, float]:
    """Episodes per second of ``play() -> turns``, and the share of the time that was generation."""
    timed = Timed(generator)
    begin = time.perf_counter()
    turns = play(timed)
    seconds = time.perf_counter() - begin
    return {
        "episodes_per_s": round(n / seconds, 3),
        "seconds": round(seconds, 1),
        "episodes": n,
        "generation_share": round(timed.seconds / seconds, 2),
        "turns": round(turns / n, 2),
    }


def measure(task: str, generator, tokenizer, few: int, many: int, sessions: int) -> dict:
    """The three loops on one task."""
    config = rollout_config(task)

    def total(episodes: list[Episode]) -> int:
        return sum(len(e.turns) for e in episodes)

    env = make_env(task)
    env.reset(seed=0)  # the first start of a browser is nobody's fault
    rows = {
        "one at a time": rate(
            lambda g: sum(
                one_at_a_time(env, spec, g, tokenizer, config)
                for spec in specs(task, VALIDATION_SEEDS, few)
            ),
            generator,
            few,
        )
    }
    env.close()
    with start_browser_server() as server:
        for name, n, clients in (
            ("warm", 2 * few, server.clients(1)),
            ("batched", many, server.clients(sessions)),
        ):
            play_episodes(
                specs(task, VALIDATION_SEEDS, len(clients), 500),
                clients,
                generator,
                tokenizer,
                config,
            )  # warms up
            pages = specs(task, VALIDATION_SEEDS, n)
            rows[name] = rate(
                lambda g, pages=pages, clients=clients: total(
                    play_episodes(pages, clients, g, tokenizer, config)
                ),
                generator,
                n,
            )
    for row in rows.values():
        row["ratio"] = round(row["episodes_per_s"] / rows["one at a time"]["episodes_per_s"], 1)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument(
        "--few", type=int, default=10, help="episodes of the loop that plays one at a time"
    )
    parser.add_argument("--many", type=int, default=192, help="episodes of the batched loop")
    parser.add_argument(
        "--sessions", type=int, default=48, help="browser sessions of the batched loop"
    )
    options = parser.parse_args()
    prepare()
    profile = get_profile()
    tokenizer, generator = standalone_generator(profile.policy, profile)
    result = {
        "tasks": {
            task: measure(task, generator, tokenizer, options.few, options.many, options.sessions)
            for task in TASKS
        },
        "policy": profile.policy,
        "generator": type(generator).__name__,
        "sessions": options.sessions,
        "cores": os.cpu_count(),
    }
    if options.record:
        record("rollouts", result)
    if options.json:
        print(json.dumps(result))
        return
    print(f"{'task':14}{'loop':16}{'episodes/s':>12}{'ratio':>8}{'turns':>7}{'in generation':>15}")
    for task, rows in result["tasks"].items():
        for name, row in rows.items():
            print(
                f"{task:14}{name:16}{row['episodes_per_s']:12.2f}{row['ratio']:8.1f}{row['turns']:7.1f}"
                f"{100 * row['generation_share']:13.0f} %"
            )


if __name__ == "__main__":
    main()
