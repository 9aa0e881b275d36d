"""How long the prompts are, task by task, and what a shorter observation costs.

    python -m benchmarks.prompts                         tokens per task, and a script that reads only what the prompt shows
    python -m benchmarks.prompts --policy runs/x/policy --task click-button   the same, and on this task the policy that learned
                                                         it, with each kind of prompt (greedy, 200 pages)
    python -m benchmarks.prompts --record                written to recordings/prompts/result.json too

Four prompts, longest first: BrowserGym's whole tree; one line per element with the texts around them; one line per element only;
the same without worked examples. The script is the text-match agent, which gets the elements that it can read in the prompt:
where it does as well as with the whole observation, the prompt has lost nothing that it needs.
"""

import argparse
import re
import statistics
from types import SimpleNamespace

from benchmarks.recording import record
from helpers.browser import start_browser_server
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TASKS, VALIDATION_SEEDS, rollout_config, specs
from helpers.evaluation.agents import text_match_agent
from helpers.evaluation.evaluate import Evaluation, evaluate
from helpers.policy.choosing import standalone_generator
from helpers.policy.loading import load_policy
from helpers.policy.prompts import PromptConfig, build_messages, page_lines, prompt_ids
from helpers.settings.profiles import get_profile

_LINE = re.compile(r'"(?P<name>.*)" (?P<role>\w+) (?P<bid>\w+)')


def variants(task: str) -> dict[str, PromptConfig]:
    """The prompts that are compared; "tree" is `lines and texts` with the tree in place of the page."""
    usual = rollout_config(task).prompt
    short = {"actions": usual.actions, "examples": usual.examples}
    return {
        "tree": PromptConfig(**short),
        "lines and texts": PromptConfig(**short),
        "lines": PromptConfig(**short, free_text=False),
        "lines, no examples": PromptConfig(usual.actions, (), free_text=False),
    }


def tokens(tokenizer, seen, name: str, config: PromptConfig) -> int:
    """Length of the first prompt of an episode."""
    messages = build_messages(seen, config)
    if name == "tree":
        page = "\n".join(page_lines(seen.axtree_txt, seen.goal))
        messages[-1]["content"] = messages[-1]["content"].replace(page, seen.axtree_txt)
    return len(prompt_ids(tokenizer, messages))


def reader(free_text: bool):
    """The text-match agent on the elements that the page's lines name, and on nothing else."""

    def act(seen, turn: int) -> str:
        lines = page_lines(seen.axtree_txt, seen.goal, free_text)
        elements = [
            SimpleNamespace(**match.groupdict()) for line in lines if (match := _LINE.match(line))
        ]
        return text_match_agent(SimpleNamespace(goal=seen.goal, elements=elements), turn)

    return act


def measure(task: str, n: int, clients, tokenizer, generator) -> dict:
    """Tokens of each prompt (median, 95th percentile), the script's success, and the policy's on 200 pages where there is a
    generator."""
    seen, configs = [], variants(task)
    for i, spec in enumerate(specs(task, VALIDATION_SEEDS, n)):
        seen.append(clients[i % len(clients)].reset(spec.task, spec.seed))
    usual = "lines and texts" if rollout_config(task).prompt.free_text else "lines"
    row: dict = {"usual": usual, "tokens": {}, "script": {}, "policy": {}}
    for name, config in configs.items():
        lengths = sorted(tokens(tokenizer, page, name, config) for page in seen)
        row["tokens"][name] = [statistics.median(lengths), lengths[min(n - 1, round(0.95 * n))]]
        if generator and name != "tree":
            played = evaluate(
                name,
                task,
                200,
                clients,
                generator,
                tokenizer,
                rollout_config(task, prompt=config, temperature=0.0),
                VALIDATION_SEEDS,
            )
            row["policy"][name] = played.summary()
    turns = rollout_config(task).max_turns
    for name, agent in {
        "whole observation": text_match_agent,
        "lines and texts": reader(True),
        "lines": reader(False),
    }.items():
        played = Evaluation(
            name, play_agent(agent, specs(task, VALIDATION_SEEDS, n), clients, turns)
        )
        row["script"][name] = [played.successes, played.n]
    return row


def show(result: dict) -> None:
    rows = result["tasks"]
    first = next(iter(rows.values()))
    print(
        f"{'tokens: median / 95th percentile':34}"
        + "".join(f"{name:>20}" for name in first["tokens"])
    )
    for task, row in rows.items():
        print(
            f"{task:34}"
            + "".join(f"{f'{median:.0f} / {high}':>20}" for median, high in row["tokens"].values())
        )
    for who in ("script", "policy"):
        if asked := {task: row for task, row in rows.items() if row[who]}:
            print(
                f"\n{f'solved by the {who}':34}"
                + "".join(f"{name:>20}" for name in next(iter(asked.values()))[who])
            )
            for task, row in asked.items():
                cells = [
                    (v["successes"], v["n"]) if who == "policy" else v for v in row[who].values()
                ]
                print(f"{task:34}" + "".join(f"{f'{k} of {n}':>20}" for k, n in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", help="a folder or a name: evaluate it with each prompt too")
    parser.add_argument(
        "--task", default="", help="with --policy: the tasks that it learned, with commas"
    )
    parser.add_argument("--n", type=int, default=40, help="pages per task")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    profile = get_profile()
    tokenizer, generator = (
        standalone_generator(options.policy, profile)
        if options.policy
        else (load_policy(profile.policy, weights=False).tokenizer, None)
    )
    with start_browser_server() as server:
        clients = server.clients(8)
        learned = options.task.split(",")
        rows = {
            task: measure(
                task, options.n, clients, tokenizer, generator if task in learned else None
            )
            for task in TASKS
        }
    result = {"n": options.n, "tasks": rows}
    if options.record:
        record(
            "prompts",
            result,
            options=f"--policy {options.policy} --task {options.task}" if options.policy else "",
        )
    show(result)


if __name__ == "__main__":
    main()
