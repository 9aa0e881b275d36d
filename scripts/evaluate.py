"""Evaluate a policy, or an agent without one, on held-out pages: success with intervals, task by task.

    python -m scripts.evaluate --task suite,unseen --n 200 --policy runs/train/policy --output recordings/my-run
    python -m scripts.evaluate --task suite --agent text_match

Agents: random, first_button, text_match, oracle (the scripted solutions of `helpers.evaluation.scripted`). ``--temperature 1`` samples.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from helpers.browser import BrowserServerError, start_browser_server
from helpers.episodes.episode import write_episodes
from helpers.episodes.tasks import read_tasks
from helpers.evaluation.baselines import AGENTS, play_baseline
from helpers.evaluation.evaluate import Evaluation, play_policy
from helpers.policy.generators import GenerationError
from helpers.policy.loading import PolicyError
from helpers.settings.machine import run_facts
from helpers.settings.profiles import ProfileError, get_profile


def show(result: Evaluation) -> None:
    print(f"\n{'task':24}{'solved':>8}  {'95 % interval':15}{'n':>5}{'turns':>7}  answers")
    for task, part in result.by_task.items():
        low, high = part.interval
        kinds = ", ".join(f"{kind} {count}" for kind, count in part.kinds.items())
        print(
            f"{task:24}{100 * part.success:6.0f} %  [{100 * low:3.0f}, {100 * high:3.0f}]     "
            f"{part.n:5}{part.mean_turns:7.1f}  {kinds}"
        )
    mean, low, high = result.macro
    print(
        f"{'mean over the tasks':24}{100 * mean:6.1f} %  [{100 * low:.1f}, {100 * high:.1f}]   {result.n:5}"
    )
    if result.failed_infrastructure:
        print(
            f"{result.failed_infrastructure} episodes were lost to the infrastructure and count for nothing"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--task",
        default="suite",
        help="tasks with commas; suite and unseen: the course's own lists",
    )
    parser.add_argument(
        "--taught",
        default="",
        help="the tasks that the policy was trained on, where they are others; "
        "own: each task with its own prompt",
    )
    parser.add_argument("--n", type=int, default=200, help="episodes per task")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--policy", help="a name of helpers.policy.loading, a folder or a Hub id")
    who.add_argument("--agent", choices=AGENTS)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument(
        "--output", help="folder for evaluation.json and three episodes of each task"
    )
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    try:
        profile, tasks = get_profile(), read_tasks(options.task)
        begin = time.monotonic()
        with start_browser_server(workers=profile.workers) as server:
            clients = server.clients(min(32, profile.clients))
            result = (
                play_baseline(options.agent, tasks, options.n, clients)
                if options.agent
                else play_policy(
                    options.policy or profile.policy,
                    tasks,
                    options.n,
                    clients,
                    profile,
                    options.temperature,
                    "own" if options.taught == "own" else read_tasks(options.taught or tasks),
                )
            )
    except (ProfileError, PolicyError, BrowserServerError, GenerationError) as error:
        print(error, file=sys.stderr)
        return 2
    show(result)
    if options.output:
        folder = Path(options.output)
        some = [episode for part in result.by_task.values() for episode in part.episodes[:3]]
        write_episodes(folder / "episodes.jsonl", some)
        prefix = f"COURSE_EXAMPLES={profile.examples} " if profile.examples != "task" else ""
        (folder / "evaluation.json").write_text(
            json.dumps(
                {
                    "command": f"{prefix}python -m scripts.evaluate {' '.join(arguments)}",
                    "temperature": options.temperature,
                    "result": result.summary(),
                    "seconds": round(time.monotonic() - begin, 1),
                    **run_facts(),
                },
                indent=1,
            )
            + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
