"""How long the prompts are, task by task, and what a shorter observation costs.

Four prompts, longest first: BrowserGym's whole tree; one line per element with the texts around
them; one line per element only; the same without worked examples. The script is the text-match
agent, which gets the elements that it can read in the prompt: where it does as well as with the
whole observation, the prompt has lost nothing that it needs.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.recording import Record, record
from helpers.browser import start_browser_server
from helpers.browser.models import BrowserObservation, Element
from helpers.command_line import run
from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import Agent, play_agent
from helpers.episodes.tasks import TASKS, VALIDATION_SEEDS, read_tasks, specs
from helpers.evaluation.agents import text_match_agent
from helpers.evaluation.evaluate import Evaluation, evaluate
from helpers.output import table
from helpers.policy.choosing import standalone_generator
from helpers.policy.loading import load_policy
from helpers.policy.prompts import PromptConfig, build_messages, page_lines, prompt_ids
from helpers.settings.profiles import get_profile

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser import BrowserClient
    from helpers.policy.generators import Generator

POLICY_PAGES = 200

_LINE = re.compile(r'"(?P<name>.*)" (?P<role>\w+) (?P<bid>\w+)')


def variants(task: str) -> dict[str, PromptConfig]:
    """The prompts that are compared; "tree" is "lines and texts" with the tree in place of the
    page."""
    usual = rollout_config(task).prompt
    with_texts = PromptConfig(usual.actions, usual.examples)
    return {
        "tree": with_texts,
        "lines and texts": with_texts,
        "lines": replace(with_texts, free_text=False),
        "lines, no examples": replace(with_texts, free_text=False, examples=()),
    }


def count_tokens(
    tokenizer: PreTrainedTokenizerBase, seen: BrowserObservation, name: str, config: PromptConfig
) -> int:
    """Length of the first prompt of an episode."""
    messages = build_messages(seen, config)
    if name == "tree":
        page = "\n".join(page_lines(seen.axtree_txt, seen.goal))
        messages[-1]["content"] = messages[-1]["content"].replace(page, seen.axtree_txt)
    return len(prompt_ids(tokenizer, messages))


def reader(free_text: bool) -> Agent:
    """The text-match agent on the elements that the page's lines name, and on nothing else."""

    def act(seen: BrowserObservation, turn: int) -> str:
        lines = page_lines(seen.axtree_txt, seen.goal, free_text)
        matches = [_LINE.match(line) for line in lines]
        elements = [Element.model_validate(match.groupdict()) for match in matches if match]
        return text_match_agent(BrowserObservation(goal=seen.goal, elements=elements), turn)

    return act


READERS: dict[str, Agent] = {
    "whole observation": text_match_agent,
    "lines and texts": reader(True),
    "lines": reader(False),
}


def measure(
    task: str,
    n: int,
    clients: Sequence[BrowserClient],
    tokenizer: PreTrainedTokenizerBase,
    generator: Generator | None,
) -> dict[str, Any]:
    """Tokens of each prompt (median, 95th percentile), the script's success, and the policy's on
    200 pages where there is a generator."""
    pages = specs(task, VALIDATION_SEEDS, n)
    first = [clients[i % len(clients)].reset(spec.task, spec.seed) for i, spec in enumerate(pages)]
    usual = rollout_config(task)
    row: dict[str, Any] = {
        "usual": "lines and texts" if usual.prompt.free_text else "lines",
        "tokens": {},
        "script": {},
        "policy": {},
    }
    for name, prompt in variants(task).items():
        lengths = sorted(count_tokens(tokenizer, seen, name, prompt) for seen in first)
        row["tokens"][name] = [statistics.median(lengths), lengths[min(n - 1, round(0.95 * n))]]
        if generator and name != "tree":
            config = rollout_config(task, prompt=prompt, temperature=0.0)
            played = evaluate(
                name,
                task,
                POLICY_PAGES,
                clients,
                generator,
                tokenizer,
                config,
                VALIDATION_SEEDS,
            )
            row["policy"][name] = played.summary()
    for name, agent in READERS.items():
        played = Evaluation(name, play_agent(agent, pages, clients, usual.max_turns))
        row["script"][name] = [played.successes, played.n]
    return row


def show(result: dict[str, Any]) -> None:
    """Print the tokens, then who solved what."""
    rows = result["tasks"]
    prompts = list(next(iter(rows.values()))["tokens"])
    cells = [
        [task, *(f"{median:.0f} / {high}" for median, high in row["tokens"].values())]
        for task, row in rows.items()
    ]
    print(table(["tokens: median / 95th percentile", *prompts], cells))
    for who in ("script", "policy"):
        asked = {task: row[who] for task, row in rows.items() if row[who]}
        if not asked:
            continue
        cells = []
        for task, found in asked.items():
            counts = found.values()
            if who == "policy":
                counts = [(summary["successes"], summary["n"]) for summary in counts]
            cells.append([task, *(f"{solved} of {n}" for solved, n in counts)])
        names = list(next(iter(asked.values())))
        print("\n" + table([f"solved by the {who}", *names], cells))


def main(
    policy: Annotated[
        str, typer.Option(help="a folder or a name: evaluate it with each prompt too")
    ] = "",
    task: Annotated[
        str, typer.Option(help="with --policy: the tasks that it learned, with commas")
    ] = "",
    n: Annotated[int, typer.Option(help="pages per task")] = 40,
    record_it: Record = False,
) -> None:
    """How long the prompts are, task by task, and what a shorter observation costs.

    \b
    python -m benchmarks.prompts     tokens per task, and a script that reads only the prompt
    python -m benchmarks.prompts --policy runs/x/policy --task click-button
                                     the same, and on this task the policy that learned it,
                                     with each kind of prompt (greedy, 200 pages)
    python -m benchmarks.prompts --record    written to recordings/prompts/result.json too
    """
    profile = get_profile()
    learned = read_tasks(task) if task else ()
    generator = None
    if policy:
        tokenizer, generator = standalone_generator(policy, profile)
    else:
        tokenizer = load_policy(profile.policy, weights=False).tokenizer
    with start_browser_server() as server:
        clients = server.clients(8)
        rows = {
            name: measure(name, n, clients, tokenizer, generator if name in learned else None)
            for name in TASKS
        }
    result = {"n": n, "tasks": rows}
    if record_it:
        options = f"--policy {policy} --task {task}" if policy else ""
        record("prompts", result, options=options)
    show(result)


if __name__ == "__main__":
    sys.exit(run(main))
