"""A training run outside a notebook: evaluate, train, evaluate. ``make train`` calls it.

    python -m scripts.train --task click-button --updates 20 --output runs/train
    python -m scripts.train --task suite --policy runs/warm/policy      every task of the suite in one policy, tested on each
    accelerate launch --num_processes 2 -m scripts.train --task click-button      groups are dealt out, each process has browsers

What is not an option here is an environment variable, see `helpers.profiles`.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers.browser import BrowserClient, BrowserServerError, connect, list_tasks, start_browser_server
from helpers.evaluation import Evaluation, evaluate
from helpers.generation import GenerationError
from helpers.policies import PolicyError, load_policy
from helpers.profiles import Profile, ProfileError, check_fits, get_profile
from helpers.rollouts import RolloutConfig, trainer_generator
from helpers.tasks import TASKS, UNSEEN, rollout_config
from helpers.training import build_trainer, episode_config, last_checkpoint, save_result, sync_policy


def read_tasks(text: str) -> str:
    """Task names with commas, where "suite" and "unseen" stand for the lists of `helpers.tasks`; raises `ProfileError`."""
    lists = {"suite": list(TASKS), "unseen": list(UNSEEN)}
    names = list(dict.fromkeys(name for word in text.split(",") for name in lists.get(word, [word])))
    if unknown := [name for name in names if name not in list_tasks()]:
        raise ProfileError(f"There is no MiniWoB task {unknown[0]!r}: python -c 'from helpers.browser import list_tasks; "
                           "print(list_tasks())' lists them, suite and unseen are the course's own lists.")
    return ",".join(names)


def test_config(tasks: str, taught: str, profile: Profile, temperature: float = 0.0) -> RolloutConfig:
    """How a policy is tested on ``tasks``: with the prompt of those it was ``taught``, and each task's own number of turns (or
    the profile's)."""
    trained = episode_config(replace(profile, task=taught))
    turns = {} if profile.max_turns else rollout_config(f"{tasks},{taught}").turns
    return replace(trained, temperature=temperature, top_k=0, turns=turns)


@contextmanager
def open_browsers(profile: Profile) -> Iterator[list[BrowserClient]]:
    """The sessions of this process: on the servers of ``COURSE_SERVERS`` (URLs with commas, their token in
    ``COURSE_SERVER_TOKEN``), taken in turn, else on a server of its own. The processes of one run share sessions and workers."""
    processes = int(os.environ.get("WORLD_SIZE", 1))
    sessions = -(-profile.clients // processes)
    if not (urls := [url.strip() for url in os.environ.get("COURSE_SERVERS", "").split(",") if url.strip()]):
        with start_browser_server(workers=max(1, profile.workers // processes)) as server:
            yield server.clients(sessions)
        return
    with ExitStack() as opened:
        yield [opened.enter_context(connect(urls[i % len(urls)], token=os.environ.get("COURSE_SERVER_TOKEN")))
               for i in range(sessions)]


def train(profile: Profile, folder: Path | str, lora: bool = False, resume: bool = False, before: bool = True,
          test: str = "") -> dict[str, Any]:
    """Evaluate, train, evaluate: what notebook 5 does cell by cell. Returns the content of ``result.json``.

    ``test``: tasks to evaluate on (default: those trained on); ``before``: evaluate the policy before it is trained too.
    """
    check_fits(profile, lora)
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if profile.device == "cuda" else profile.device
    policy = load_policy(profile.policy, profile.dtype, device)
    task = test or profile.task
    held_out = test_config(task, profile.task, profile)
    with open_browsers(profile) as clients:
        started = time.monotonic()
        trainer = build_trainer(profile, policy, clients, folder, lora)
        ready = time.monotonic()

        def measure(name: str) -> Evaluation:
            result = Evaluation(name, [])
            if trainer.accelerator.is_main_process:
                generator = trainer_generator(trainer, policy.tokenizer)
                result = evaluate(name, task, profile.eval_episodes, clients, generator, policy.tokenizer, held_out)
                print(f"\n{result}", flush=True)
            trainer.accelerator.wait_for_everyone()
            return result

        first = measure("before") if before else Evaluation("before", [])
        begin = time.monotonic()
        trainer.train(resume_from_checkpoint=last_checkpoint(folder) if resume else None)
        seconds = time.monotonic() - begin
        sync_policy(trainer)
        after = measure("after")
    times = {"start": ready - started, "training": seconds, "total": time.monotonic() - started}
    return save_result(folder, trainer, profile, first, after, times, lora)


def chosen_profile(options: argparse.Namespace) -> Profile:
    """The profile of this machine with the command's --policy, --task, --updates and --seed; raises `ProfileError`."""
    chosen = {k: getattr(options, k) for k in ("policy", "task", "updates", "seed") if getattr(options, k) is not None}
    profile = replace(get_profile(), **chosen)
    return replace(profile, task=read_tasks(profile.task))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.train", description="Train a policy on browser tasks with GRPO.")
    parser.add_argument("--policy", help="a name of helpers.policies, a folder or a Hub id")
    parser.add_argument("--task", help="a MiniWoB task, or several separated by commas; suite: the course's own list")
    parser.add_argument("--test", default="", help="tasks to evaluate on, as --task; default: the same")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--lora", action="store_true", help="train adapters, not all weights")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in --output, if any")
    parser.add_argument("--no-before", action="store_true", help="do not evaluate the policy before training")
    parser.add_argument("--output", default="runs/train", help="folder for metrics, checkpoints and the policy")
    options = parser.parse_args(arguments)
    try:
        profile = chosen_profile(options)
        result = train(profile, options.output, options.lora, options.resume, not options.no_before,
                       read_tasks(options.test) if options.test else "")
    except (ProfileError, PolicyError, BrowserServerError, GenerationError) as error:
        print(error, file=sys.stderr)
        return 2
    if result:  # of several processes, the first one's
        print(json.dumps(result["difference"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
