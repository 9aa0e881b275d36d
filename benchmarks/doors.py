"""The doors into one task, and the ways to show a page: what each costs, side by side in one run.

    python -m benchmarks.doors             both tables (5 minutes on 2 cores)
    python -m benchmarks.doors --json      the same as one JSON object
    python -m benchmarks.doors --record    written to recordings/doors/result.json too

Doors: ``rollout_func`` (`helpers.episodes.play`), tools (``environment_factory``, `scripts.train_tools`), and OpenEnv's harness with
its own adapter and with ours (`scripts.harness`). A script plays the same pages through each, so that all take the same actions:
that gives tokens and seconds. Then the untrained policy answers, and the model computes its logprobs again: that gives the gap.
The tools speak Qwen3's template (SmolLM2's own knows no tools). Pictures go to a small Qwen3-VL with random weights.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from trl.chat_template_utils import qwen3_chat_template

from benchmarks.recording import record
from helpers.browser import start_browser_server
from helpers.browser.actions import ACTIONS, parse_action
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.harness import BrowserSessions, ledger_rollout_func, stock_rollout_func
from helpers.episodes.play import play_episodes
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.tasks import TRAIN_SEEDS, rollout_config, specs
from helpers.episodes.tools import OBSERVATIONS, content, encode
from helpers.evaluation.agents import text_match_agent
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.policy.generators import Completion, TransformersGenerator
from helpers.policy.loading import load_policy
from helpers.policy.vision import small_policy_with_eyes
from helpers.settings.machine import run_facts
from helpers.settings.profiles import Profile, get_profile

TASK, PICTURE_TASK, GROUP = "enter-text", "click-button-sequence", 8


class HarnessScript:
    """An agent in the generator's place, for a harness: it looks at the session that was made last."""

    def __init__(self, sessions: list, tokenizer: Any, agent: Callable = text_match_agent):
        self.sessions, self.tokenizer, self.agent = sessions, tokenizer, agent

    def generate(self, prompts, max_tokens, temperature=1.0, top_k=0) -> list[Completion]:
        run = self.sessions[-1].run
        ids = self.tokenizer(self.agent(run.observation, len(run.episode.turns)))["input_ids"] + [
            self.tokenizer.eos_token_id
        ]
        return [Completion(ids, [0.0] * len(ids))]


def remembered_sessions() -> tuple[Any, list]:
    """A patch under which every new harness session is also put into the list."""
    made, create = [], BrowserSessions.create

    def remember(sessions, task, *arguments):
        made.append(create(sessions, task, *arguments))
        return made[-1]

    return patch.object(BrowserSessions, "create", remember), made


def tool_call(action: str) -> str:
    """An action as Qwen3's template writes it."""
    parsed = parse_action(action)
    names = [p.name for p in ACTIONS[parsed.name].params]
    call = {"name": parsed.name, "arguments": dict(zip(names, parsed.args, strict=True))}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def script_tools(tools: Any, prompt_ids: list, *_: Any, **__: Any) -> tuple[list[list[int]], None]:
    """The text-match agent in the place of the trainer's ``_generate_single_turn``: the next tool call of every episode."""
    environments = tools.environments if tools._answering is None else tools._answering
    texts = [
        "Done." if e._over() else tool_call(text_match_agent(e._seen, len(e.episode.turns)))
        for e in environments
    ]
    return [tools._tokenizer(text + "<|im_end|>")["input_ids"] for text in texts], None


def largest_gap(model: Any, columns: dict[str, list]) -> float:
    """Sampled against recomputed logprobs, over the tokens that a trainer would train on (without a mask: all)."""
    worst = 0.0
    for i, (prompt, completion) in enumerate(
        zip(columns["prompt_ids"], columns["completion_ids"], strict=True)
    ):
        mask = columns["env_mask"][i] if "env_mask" in columns else [1] * len(completion)
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + completion], device=model.device)).logits[
                0, len(prompt) - 1 : -1
            ]
        again = logits.float().log_softmax(-1)[range(len(completion)), completion].tolist()
        worst = max(
            [
                worst,
                *(
                    abs(a - s)
                    for a, s, ours in zip(again, columns["logprobs"][i], mask, strict=True)
                    if ours
                ),
            ]
        )
    return worst


def profile_of(task: str, **changes: Any) -> Profile:
    return replace(
        get_profile(), task=task, groups=1, group_size=GROUP, clients=GROUP, updates=1, **changes
    )


def measure_rollouts(policy: Any, clients: list, todo: list[EpisodeSpec]) -> dict[str, Any]:
    """Our ``rollout_func``: one batch of episodes."""
    config, tokenizer = rollout_config(TASK), policy.tokenizer
    begin = time.monotonic()
    columns = rollout_columns(play_episodes(todo, clients, Script(), tokenizer, config), tokenizer)
    seconds = time.monotonic() - begin
    sampled = rollout_columns(
        play_episodes(
            todo, clients, TransformersGenerator(policy.model, tokenizer), tokenizer, config
        ),
        tokenizer,
    )
    return of_columns(columns, seconds) | {"gap": largest_gap(policy.model, sampled)}


class Script:
    """The text-match agent, as `play_episodes` takes a script."""

    def answer(self, seen: Any, turn: int) -> str:
        return text_match_agent(seen, turn)


def of_columns(columns: dict[str, list], seconds: float) -> dict[str, Any]:
    """What a door's columns say; all episodes are scripted, so every token is one that the task takes."""
    n = len(columns["prompt_ids"])
    masks = columns.get("env_mask")
    return {
        "prompt_tokens": statistics.median(map(len, columns["prompt_ids"])),
        "answer_tokens": statistics.median(
            map(sum, masks) if masks else map(len, columns["completion_ids"])
        ),
        "episode_tokens": statistics.median(
            len(p) + len(c)
            for p, c in zip(columns["prompt_ids"], columns["completion_ids"], strict=True)
        ),
        "masked": bool(masks),
        "seconds": seconds / n,
    }


def measure_harness(
    make: Callable, policy: Any, client: Any, todo: list[EpisodeSpec]
) -> dict[str, Any]:
    """A harness's ``rollout_func``: episodes one after another."""
    config, tokenizer, prompts = (
        rollout_config(TASK),
        policy.tokenizer,
        [str(spec) for spec in todo],
    )
    watched, sessions = remembered_sessions()
    with watched:
        begin = time.monotonic()
        columns = make(client, tokenizer, config, HarnessScript(sessions, tokenizer))(prompts, None)
        seconds = time.monotonic() - begin
    sampled = make(client, tokenizer, config, TransformersGenerator(policy.model, tokenizer))(
        prompts, None
    )
    return of_columns(columns, seconds) | {"gap": largest_gap(policy.model, sampled)}


def measure_tools(policy: Any, clients: list, folder: str) -> dict[str, Any]:
    """TRL's ``environment_factory``: one batch with the script, and one update of the untrained policy, sampled with vLLM where
    the profile has it (the trainer's own generation hands back no logprobs)."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(policy.path)
    tokenizer.chat_template = qwen3_chat_template
    trainer = build_tools_trainer(
        profile_of(TASK), policy.model, tokenizer, clients, folder, show=lambda text: None
    )
    rows = [row for row in trainer.train_dataset for _ in range(GROUP)]
    with patch.object(BrowserGRPOTrainer, "_generate_single_turn", script_tools):
        begin = time.monotonic()
        batch = trainer._generate_and_score_completions(rows)
        seconds = time.monotonic() - begin
    prompts = batch["prompt_mask"].sum(1).tolist()
    answers = (batch["completion_mask"] * batch["tool_mask"]).sum(1).tolist()
    whole = (batch["completion_mask"].sum(1) + batch["prompt_mask"].sum(1)).tolist()
    trainer.train()
    return {
        "prompt_tokens": statistics.median(prompts),
        "answer_tokens": statistics.median(answers),
        "episode_tokens": statistics.median(whole),
        "masked": True,
        "seconds": seconds / GROUP,
        "gap": trainer.recorder.rows[0].get("logprob_gap/max"),
    }


def measure_observations(clients: list, n: int = 10) -> dict[str, dict[str, float]]:
    """The four ways to show a page: tokens of the first prompt, the picture's share, and milliseconds to get and encode it."""
    seer, processor = small_policy_with_eyes()
    config, image_token, found = rollout_config(PICTURE_TASK), seer.config.image_token_id, {}
    for name in OBSERVATIONS:
        looks, encodes, tokens, pictures = [], [], [], []
        for seed in TRAIN_SEEDS[:n]:
            begin = time.monotonic()
            seen = clients[0].reset(PICTURE_TASK, seed, screenshot=name != "tree")
            between = time.monotonic()
            ids = encode(processor, content(seen, config, name, first=True))["input_ids"]
            looks.append(1000 * (between - begin))
            encodes.append(1000 * (time.monotonic() - between))
            tokens.append(ids.shape[1])
            pictures.append(int((ids == image_token).sum()))
        found[name] = {
            "tokens": statistics.median(tokens),
            "of_the_picture": statistics.median(pictures),
            "reset_ms": statistics.median(looks),
            "encode_ms": statistics.median(encodes),
        }
    return found


def measure() -> dict[str, Any]:
    policy = load_policy()
    todo = specs(TASK, TRAIN_SEEDS, GROUP)
    with start_browser_server(workers=2) as server, tempfile.TemporaryDirectory() as folder:
        clients = server.clients(GROUP)
        play_episodes(
            todo, clients, Script(), policy.tokenizer, rollout_config(TASK)
        )  # all browsers have opened the task
        doors = {
            "rollout_func": measure_rollouts(policy, clients, todo),
            "harness, ours": measure_harness(ledger_rollout_func, policy, clients[0], todo),
            "harness, stock": measure_harness(stock_rollout_func, policy, clients[0], todo),
            "environment_factory": measure_tools(policy, clients, f"{folder}/tools"),
        }
        observations = measure_observations(clients)
    return {
        "task": TASK,
        "episodes": GROUP,
        "doors": doors,
        "picture_task": PICTURE_TASK,
        "observations": observations,
        **run_facts(),
    }


def show(result: dict[str, Any]) -> None:
    print(
        f"{result['episodes']} scripted episodes of {result['task']}, two actions each; gap: the untrained policy's answers\n"
    )
    print(
        f"{'door':22}{'prompt':>8}{'answers':>9}{'episode':>9}  {'mask':5}{'s/episode':>10}{'gap (nats)':>12}"
    )
    for name, d in result["doors"].items():
        gap = "" if d["gap"] is None else f"{d['gap']:.1e}"
        print(
            f"{name:22}{d['prompt_tokens']:8.0f}{d['answer_tokens']:9.0f}{d['episode_tokens']:9.0f}  "
            f"{'yes' if d['masked'] else 'no':5}{d['seconds']:10.2f}{gap:>12}"
        )
    print(f"\n{'observation':14}{'tokens':>8}{'picture':>9}{'reset ms':>10}{'encode ms':>11}")
    for name, o in result["observations"].items():
        print(
            f"{name:14}{o['tokens']:8.0f}{o['of_the_picture']:9.0f}{o['reset_ms']:10.0f}{o['encode_ms']:11.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    result = measure()
    print(json.dumps(result)) if options.json else show(result)
    if options.record:
        record("doors", result)


if __name__ == "__main__":
    main()
