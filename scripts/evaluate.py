"""Evaluate a policy, or an agent without one, on held-out pages: success with intervals, task by task.

    python -m scripts.evaluate --task suite,unseen --n 200 --policy runs/train/policy --output recordings/my-run
    python -m scripts.evaluate --task suite --agent text_match

Agents: random, first_button, text_match, oracle (the scripted solutions of `benchmarks.oracles`). ``--temperature 1`` samples.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.audit import careful
from benchmarks.oracles import ORACLES
from helpers.agents import first_button_agent, play_agent, random_agent, text_match_agent
from helpers.browser import BrowserServerError, start_browser_server
from helpers.episodes import write_episodes
from helpers.evaluation import Evaluation, evaluate
from helpers.generation import GenerationError, TransformersGenerator, start_vllm
from helpers.policies import PolicyError, load_policy
from helpers.profiles import ProfileError, get_profile
from helpers.tasks import TEST_SEEDS, rollout_config, specs
from helpers.training import run_facts
from scripts.train import read_tasks, test_config

AGENTS = {"random": random_agent(), "first_button": first_button_agent, "text_match": text_match_agent,
          "oracle": careful(lambda seen, turn: ORACLES.get(seen.task, text_match_agent)(seen, turn))}


def play_baseline(agent: str, tasks: str, n: int, clients) -> Evaluation:
    """An agent on the test pages, with the number of turns that a policy has."""
    return Evaluation(agent, [episode for task in tasks.split(",") for episode in play_agent(
        AGENTS[agent], specs(task, TEST_SEEDS, n), clients, rollout_config(task).max_turns)])


def standalone(name: str, profile):
    """Tokenizer and generator of a policy outside a trainer: vLLM where the profile says so, transformers elsewhere."""
    policy = load_policy(name, profile.dtype, profile.device, weights=profile.generator != "vllm")
    return policy.tokenizer, (TransformersGenerator(policy.model, policy.tokenizer) if policy.model is not None else
                              start_vllm(policy.path, profile.dtype))


def play_policy(name: str, tasks: str, n: int, clients, profile, temperature: float, taught: str) -> Evaluation:
    """A policy on the test pages; ``taught``: the tasks whose common prompt it reads; "own": each task's own prompt."""
    tokenizer, generator = standalone(name, profile)
    rounds = [(task, task) for task in tasks.split(",")] if taught == "own" else [(tasks, taught)]
    return Evaluation(name, [episode for part, prompt in rounds for episode in evaluate(
        name, part, n, clients, generator, tokenizer, test_config(part, prompt, profile, temperature),
        progress=lambda done, of, part=part: print(f"\r{part if taught == 'own' else name}: {done} of {of} episodes", end="",
                                                   flush=True)).episodes])


def show(result: Evaluation) -> None:
    print(f"\n{'task':24}{'solved':>8}  {'95 % interval':15}{'n':>5}{'turns':>7}  answers")
    for task, part in result.by_task.items():
        low, high = part.interval
        kinds = ", ".join(f"{kind} {count}" for kind, count in part.kinds.items())
        print(f"{task:24}{100 * part.success:6.0f} %  [{100 * low:3.0f}, {100 * high:3.0f}]     "
              f"{part.n:5}{part.mean_turns:7.1f}  {kinds}")
    mean, low, high = result.macro
    print(f"{'mean over the tasks':24}{100 * mean:6.1f} %  [{100 * low:.1f}, {100 * high:.1f}]   {result.n:5}")
    if result.failed_infrastructure:
        print(f"{result.failed_infrastructure} episodes were lost to the infrastructure and count for nothing")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="suite", help="tasks with commas; suite and unseen: the course's own lists")
    parser.add_argument("--taught", default="", help="the tasks that the policy was trained on, where they are others; "
                        "own: each task with its own prompt")
    parser.add_argument("--n", type=int, default=200, help="episodes per task")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--policy", help="a name of helpers.policies, a folder or a Hub id")
    who.add_argument("--agent", choices=AGENTS)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--output", help="folder for evaluation.json and three episodes of each task")
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    try:
        profile, tasks = get_profile(), read_tasks(options.task)
        begin = time.monotonic()
        with start_browser_server(workers=profile.workers) as server:
            clients = server.clients(min(32, profile.clients))
            result = (play_baseline(options.agent, tasks, options.n, clients) if options.agent else
                      play_policy(options.policy or profile.policy, tasks, options.n, clients, profile, options.temperature,
                                  "own" if options.taught == "own" else read_tasks(options.taught or tasks)))
    except (ProfileError, PolicyError, BrowserServerError, GenerationError) as error:
        print(error, file=sys.stderr)
        return 2
    show(result)
    if options.output:
        folder = Path(options.output)
        some = [episode for part in result.by_task.values() for episode in part.episodes[:3]]
        write_episodes(folder / "episodes.jsonl", some)
        prefix = f"COURSE_EXAMPLES={profile.examples} " if profile.examples != "task" else ""
        (folder / "evaluation.json").write_text(json.dumps({
            "command": f"{prefix}python -m scripts.evaluate {' '.join(arguments)}", "temperature": options.temperature,
            "result": result.summary(), "seconds": round(time.monotonic() - begin, 1), **run_facts()}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
