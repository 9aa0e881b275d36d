"""Supervised warm-up: a policy learns the format, and what scripts can show, before GRPO starts.

    python -m scripts.warm_up --task suite --demos 30 --output runs/warm
    COURSE_EXAMPLES=none make train POLICY=runs/warm/policy TASK=suite

Scripts (`helpers.evaluation.scripted`) play training pages in a real browser; what they solved becomes token ledgers, exactly as a rollout
writes them, and cross-entropy is taken on the script's tokens only (TRL's `SFTTrainer`). The prompt has no worked examples: the
policy is about to learn from more than it could hold.
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
from helpers.learning.warm_up import demonstrate, fit
from helpers.policy.loading import PolicyError, load_policy, quiet_transformers
from helpers.settings.machine import run_facts
from helpers.settings.profiles import ProfileError, get_profile


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--policy", help="a name of helpers.policy.loading, a folder or a Hub id")
    parser.add_argument(
        "--task", default="suite", help="tasks with commas; suite: the course's own list"
    )
    parser.add_argument("--demos", type=int, default=30, help="pages per task")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="runs/warm")
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    folder = Path(options.output)
    quiet_transformers()
    try:
        profile = get_profile()
        tasks = read_tasks(options.task)
        policy = load_policy(options.policy or profile.policy, profile.dtype, profile.device)
        begin = time.monotonic()
        with start_browser_server(workers=profile.workers) as server:
            episodes = demonstrate(
                tasks,
                options.demos,
                server.clients(min(16, profile.clients)),
                policy.tokenizer,
                options.seed,
            )
    except (ProfileError, PolicyError, BrowserServerError) as error:
        print(error, file=sys.stderr)
        return 2
    played = time.monotonic() - begin
    tokens = sum(e.ledger.completion_length + e.ledger.prompt_length for e in episodes)
    print(
        f"{len(episodes)} of {options.demos * len(tasks.split(','))} episodes solved by the scripts in {played:.0f} s, "
        f"{tokens} tokens",
        flush=True,
    )
    write_episodes(folder / "demonstrations.jsonl", episodes)
    metrics = fit(policy, episodes, folder, options.epochs, options.learning_rate, options.seed)
    result = {
        "command": f"python -m scripts.warm_up {' '.join(arguments)}".strip(),
        "tasks": tasks.split(","),
        "demonstrations": len(episodes),
        "tokens": tokens,
        "seconds_playing": round(played, 1),
        **metrics,
        **run_facts(),
    }
    (folder / "warm_up.json").write_text(json.dumps(result, indent=1) + "\n")
    print(
        f"loss {metrics['first_loss']:.2f} -> {metrics['last_loss']:.2f} in {metrics['steps']} steps, "
        f"{metrics['seconds']:.0f} s; the policy is in {folder / 'policy'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
