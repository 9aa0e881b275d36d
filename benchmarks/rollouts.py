"""Episodes per second of the course's rollout loop against the loop that earlier scripts had.

Three loops play the same pages with the same policy in the same vLLM engine (transformers where
there is none), at temperature 1:

- one at a time: stock BrowserGym, one browser; each turn is one request with one prompt
- warm: the course's environment, one session, still one request at a time
- batched: the course's environment, many sessions; one generation call per turn for all episodes

Policy and prompt are as in the suite, so an episode has as many turns as its task allows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from browsergym.utils.obs import flatten_axtree_to_str

from benchmarks.recording import AsJson, Record, record
from benchmarks.stock_browsergym import make_env, prepare
from helpers.browser import start_browser_server
from helpers.browser.actions import parse_action
from helpers.browser.models import BrowserObservation
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.output import table
from helpers.policy.choosing import standalone_generator
from helpers.policy.generators import Completion, Generator
from helpers.policy.prompts import (
    answer_text,
    build_messages,
    continuation_ids,
    observation_text,
    prompt_ids,
)
from helpers.settings.profiles import get_profile

if TYPE_CHECKING:
    import gymnasium
    from transformers import PreTrainedTokenizerBase

TASKS = ("click-button", "enter-text")
WARM_UP_OFFSET = 500  # the pages that warm a server up are not the ones that are measured


class TimedGenerator:
    """A generator that adds up the seconds it takes."""

    def __init__(self, generator: Generator):
        self.generator = generator
        self.seconds = 0.0

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        """As the generator's own."""
        begin = time.perf_counter()
        answers = self.generator.generate(prompts, max_tokens, temperature, top_k)
        self.seconds += time.perf_counter() - begin
        return answers


def read_stock(observation: dict[str, Any]) -> BrowserObservation:
    """What the prompt needs of a stock observation."""
    return BrowserObservation(
        axtree_txt=flatten_axtree_to_str(observation["axtree_object"]),
        goal=observation["goal"],
        url=observation["url"],
        error=observation["last_action_error"],
    )


def one_at_a_time(
    env: gymnasium.Env,
    spec: EpisodeSpec,
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
) -> int:
    """One episode in stock BrowserGym, as a plain loop; returns its number of turns."""
    observation, _ = env.reset(seed=spec.seed)
    ids = prompt_ids(tokenizer, build_messages(read_stock(observation), config.prompt))
    turns, done = 0, False
    while not done and turns < config.max_turns:
        turns += 1
        answer = generator.generate([ids], config.max_tokens, config.temperature)[0]
        ids = ids + answer.ids
        parsed = parse_action(answer_text(tokenizer, answer.ids))
        if parsed.ok:
            observation, _, done, _, _ = env.step(parsed.action)
        message = observation_text(read_stock(observation), config.prompt, first=False)
        ended = ids[-1] == tokenizer.eos_token_id
        ids = ids + continuation_ids(tokenizer, message, ended=ended)
    return turns


def rate(play: Callable[[Generator], int], generator: Generator, n: int) -> dict[str, float]:
    """Episodes per second of ``play``, which returns its turns, and generation's share of the
    time."""
    timed = TimedGenerator(generator)
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


def rate_of_stock(
    task: str, generator: Generator, tokenizer: PreTrainedTokenizerBase, n: int
) -> dict[str, float]:
    """One browser and one request at a time, in stock BrowserGym."""
    config = rollout_config(task)
    pages = specs(task, VALIDATION_SEEDS, n)
    env = make_env(task)
    env.reset(seed=0)  # the first start of a browser is nobody's fault

    def play(timed: Generator) -> int:
        return sum(one_at_a_time(env, spec, timed, tokenizer, config) for spec in pages)

    row = rate(play, generator, n)
    env.close()
    return row


def rate_of_ours(
    task: str,
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    n: int,
    clients: Sequence[Any],
) -> dict[str, float]:
    """The course's loop on as many sessions as there are clients."""
    config = rollout_config(task)
    warm_up = specs(task, VALIDATION_SEEDS, len(clients), WARM_UP_OFFSET)
    play_episodes(warm_up, clients, generator, tokenizer, config)
    pages = specs(task, VALIDATION_SEEDS, n)

    def play(timed: Generator) -> int:
        episodes = play_episodes(pages, clients, timed, tokenizer, config)
        return sum(len(episode.turns) for episode in episodes)

    return rate(play, generator, n)


def measure(
    task: str,
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    few: int,
    many: int,
    sessions: int,
) -> dict[str, dict[str, float]]:
    """The three loops on one task."""
    rows = {"one at a time": rate_of_stock(task, generator, tokenizer, few)}
    with start_browser_server() as server:
        for name, n, width in (("warm", 2 * few, 1), ("batched", many, sessions)):
            clients = server.clients(width)
            rows[name] = rate_of_ours(task, generator, tokenizer, n, clients)
    for row in rows.values():
        row["ratio"] = round(row["episodes_per_s"] / rows["one at a time"]["episodes_per_s"], 1)
    return rows


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    cells = [
        [
            task,
            name,
            f"{row['episodes_per_s']:.2f}",
            f"{row['ratio']:.1f}",
            f"{row['turns']:.1f}",
            f"{100 * row['generation_share']:.0f} %",
        ]
        for task, rows in result["tasks"].items()
        for name, row in rows.items()
    ]
    print(table(["task", "loop", "episodes/s", "ratio", "turns", "in generation"], cells))


def main(
    as_json: AsJson = False,
    record_it: Record = False,
    few: Annotated[int, typer.Option(help="episodes of the loop that plays one at a time")] = 10,
    many: Annotated[int, typer.Option(help="episodes of the batched loop")] = 192,
    sessions: Annotated[int, typer.Option(help="browser sessions of the batched loop")] = 48,
) -> None:
    """Episodes per second of the course's rollout loop against the loop that earlier scripts had.

    \b
    python -m benchmarks.rollouts             a table (about 6 min on 2 cores)
    python -m benchmarks.rollouts --record    written to recordings/rollouts/result.json too
    """
    prepare()
    profile = get_profile()
    tokenizer, generator = standalone_generator(profile.policy, profile)
    result = {
        "tasks": {task: measure(task, generator, tokenizer, few, many, sessions) for task in TASKS},
        "policy": profile.policy,
        "generator": type(generator).__name__,
        "sessions": sessions,
        "cores": os.cpu_count(),
    }
    if record_it:
        record("rollouts", result)
    if as_json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    sys.exit(run(main))
