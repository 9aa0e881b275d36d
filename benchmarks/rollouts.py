"""Episodes per second of the course's rollout loop against the loop that earlier scripts had.

Four loops play the same pages with the same policy in the same vLLM engine (transformers where
there is none), at temperature 1:

- one at a time: stock BrowserGym, one browser; each turn is one request with one prompt
- warm: the course's environment, one session, still one request at a time
- batched: the course's environment, many sessions; one generation call per turn for all episodes
- streamed: the same, but each page is answered when it is there, whatever the others do

Policy and prompt are as in the suite, so an episode has as many turns as its task allows. Batched
and streamed take turns, so that what else the machine does meets both. "Cores busy" is the CPU time
of this process and all below it, so what it lacks to the machine's cores is what better overlap
could still win.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from browsergym.utils.obs import flatten_axtree_to_str

from benchmarks.recording import AsJson, Record, record
from benchmarks.stock_browsergym import make_env, prepare
from helpers.browser import start_browser_server
from helpers.browser.actions import parse_action
from helpers.browser.models import BrowserObservation, Client
from helpers.browser.processes import tree_cpu_seconds
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.output import table
from helpers.policy.choosing import standalone_generator
from helpers.policy.completions import Completion
from helpers.policy.generators import Generator
from helpers.policy.prompts import (
    answer_text,
    build_messages,
    continuation_ids,
    observation_text,
    prompt_ids,
)
from helpers.policy.streams import Request, Sampling, Stream, StreamingGenerator
from helpers.settings.profiles import get_profile

if TYPE_CHECKING:
    import gymnasium
    from transformers import PreTrainedTokenizerBase

TASKS = ("click-button", "enter-text")
# Several turns, as many as the task allows: what a click, a word and a form take differs most here.
MIX = ("click-button-sequence", "click-option", "enter-text", "enter-password", "login-user")
WARM_UP_OFFSET = 500  # the pages that warm a server up are not the ones that are measured


class TimedGenerator:
    """A generator that adds up the seconds it takes, and answers all prompts of a call together."""

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


class TimedStreams(TimedGenerator):
    """A generator that adds up the seconds it takes, and answers one by one where it can."""

    def stream(self, sampling: Sampling) -> Stream | None:
        """As the generator's own."""
        generator = self.generator
        stream = generator.stream(sampling) if isinstance(generator, StreamingGenerator) else None
        return stream and TimedStream(stream, self)


class TimedStream:
    """A stream whose seconds are added to those of its generator."""

    def __init__(self, stream: Stream, generator: TimedStreams):
        self.stream = stream
        self.generator = generator
        self.add = stream.add
        self.close = stream.close

    def step(self) -> list[tuple[Request, Completion]]:
        """As the stream's own."""
        begin = time.perf_counter()
        answered = self.stream.step()
        self.generator.seconds += time.perf_counter() - begin
        return answered


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


@dataclass
class Rate:
    """How fast a loop plays; what several plays took adds up."""

    episodes: int = 0
    turns: int = 0
    seconds: float = 0.0
    in_generation: float = 0.0
    cpu_seconds: float = 0.0

    def time(self, play: Callable[[], Sequence[int]], timed: TimedGenerator) -> None:
        """Add what ``play`` takes, which returns the turns of each episode."""
        begin, cpu, generating = time.perf_counter(), tree_cpu_seconds(os.getpid()), timed.seconds
        turns = play()
        self.seconds += time.perf_counter() - begin
        self.cpu_seconds += tree_cpu_seconds(os.getpid()) - cpu
        self.in_generation += timed.seconds - generating
        self.episodes += len(turns)
        self.turns += sum(turns)

    def row(self) -> dict[str, float]:
        """The numbers of the table."""
        return {
            "episodes_per_s": round(self.episodes / self.seconds, 3),
            "seconds": round(self.seconds, 1),
            "episodes": self.episodes,
            "generation_share": round(self.in_generation / self.seconds, 2),
            "cores_busy": round(self.cpu_seconds / self.seconds, 2),
            "turns": round(self.turns / self.episodes, 2),
        }


def rate_of_stock(
    task: str, generator: Generator, tokenizer: PreTrainedTokenizerBase, n: int
) -> dict[str, float]:
    """One browser and one request at a time, in stock BrowserGym."""
    config = rollout_config(task)
    pages = specs(task, VALIDATION_SEEDS, n)
    env = make_env(task)
    env.reset(seed=0)  # the first start of a browser is nobody's fault
    timed, rate = TimedGenerator(generator), Rate()
    rate.time(lambda: [one_at_a_time(env, spec, timed, tokenizer, config) for spec in pages], timed)
    env.close()
    return rate.row()


def pages_of(tasks: Sequence[str], n: int, offset: int = 0) -> list[EpisodeSpec]:
    """``n`` pages, of each task in turn."""
    each = [specs(task, VALIDATION_SEEDS, -(-n // len(tasks)), offset) for task in tasks]
    return [spec for together in zip(*each, strict=True) for spec in together][:n]


def rates_of_ours(
    tasks: Sequence[str],
    generators: dict[str, TimedGenerator],
    tokenizer: PreTrainedTokenizerBase,
    n: int,
    clients: Sequence[Client],
    rounds: int = 1,
) -> dict[str, dict[str, float]]:
    """The course's loop on as many sessions as there are clients, once with each generator.

    Each of ``rounds`` plays all pages with every generator, the first one first in every other
    round.
    """
    config = rollout_config(tasks)
    rates = {name: Rate() for name in generators}
    pages = pages_of(tasks, n)
    for timed in generators.values():
        warm_up = pages_of(tasks, len(clients), WARM_UP_OFFSET)
        play_episodes(warm_up, clients, timed, tokenizer, config)

    def play(timed: TimedGenerator) -> list[int]:
        episodes = play_episodes(pages, clients, timed, tokenizer, config)
        return [len(episode.turns) for episode in episodes]

    for turn in range(rounds):
        for name in list(generators)[:: -1 if turn % 2 else 1]:
            timed = generators[name]
            rates[name].time(partial(play, timed), timed)
    return {name: rate.row() for name, rate in rates.items()}


def measure(
    tasks: Sequence[str],
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    few: int,
    many: int,
    sessions: int,
    rounds: int,
) -> dict[str, dict[str, float]]:
    """The loops on one task; on several those with many episodes at once. ``few`` 0: those, too."""
    rows: dict[str, dict[str, float]] = {}
    many_at_once = {"batched": TimedGenerator(generator), "streamed": TimedStreams(generator)}
    if few and len(tasks) == 1:
        rows["one at a time"] = rate_of_stock(tasks[0], generator, tokenizer, few)
    with start_browser_server() as server:
        clients = server.clients(sessions)
        if few and len(tasks) == 1:
            one = {"warm": TimedGenerator(generator)}
            rows |= rates_of_ours(tasks, one, tokenizer, 2 * few, clients[:1])
        rows |= rates_of_ours(tasks, many_at_once, tokenizer, many, clients, rounds)
    slowest = next(iter(rows.values()))["episodes_per_s"]
    for row in rows.values():
        row["ratio"] = round(row["episodes_per_s"] / slowest, 2)
    return rows


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    cells = [
        [
            task,
            name,
            f"{row['episodes_per_s']:.2f}",
            f"{row['ratio']:.2f}",
            f"{row['turns']:.1f}",
            f"{100 * row['generation_share']:.0f} %",
            f"{row['cores_busy']:.2f}",
        ]
        for task, rows in result["tasks"].items()
        for name, row in rows.items()
    ]
    heads = ["task", "loop", "episodes/s", "ratio", "turns", "in generation", "cores busy"]
    print(table(heads, cells))


def main(
    as_json: AsJson = False,
    record_it: Record = False,
    few: Annotated[
        int, typer.Option(help="episodes of the loop that plays one at a time; 0 leaves it out")
    ] = 10,
    many: Annotated[int, typer.Option(help="episodes of the loops that play many at once")] = 96,
    rounds: Annotated[int, typer.Option(help="how often those play them, in turns")] = 2,
    sessions: Annotated[int, typer.Option(help="browser sessions of those loops")] = 48,
) -> None:
    """Episodes per second of the course's rollout loop against the loop that earlier scripts had.

    \b
    python -m benchmarks.rollouts             a table (about 10 min on 2 cores)
    python -m benchmarks.rollouts --few 0     only the loops that play many at once
    python -m benchmarks.rollouts --record    written to recordings/rollouts/result.json too
    """
    prepare()
    profile = get_profile()
    tokenizer, generator = standalone_generator(profile.policy, profile)
    measured = {task: (task,) for task in TASKS} | {"mix of several turns": MIX}
    result = {
        "tasks": {
            name: measure(tasks, generator, tokenizer, few, many, sessions, rounds)
            for name, tasks in measured.items()
        },
        "mix": MIX,
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
