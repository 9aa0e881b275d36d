"""The doors into one task, and the ways to show a page: what each costs, side by side in one run.

Doors: ``rollout_func`` (`helpers.episodes.play`), tools (``environment_factory``,
`helpers.episodes.tools`), and OpenEnv's harness with its own adapter and with ours
(`helpers.episodes.harness`). A script plays the same pages through each, so that all take the same
actions: that gives tokens and seconds. Then the untrained policy answers, and the model computes
its logprobs again: that gives the gap. The tools speak Qwen3's template (SmolLM2's own knows no
tools). Pictures go to a small Qwen3-VL with random weights.
"""

import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from transformers import AutoTokenizer, PreTrainedModel, ProcessorMixin
from trl.chat_template_utils import qwen3_chat_template

from benchmarks.door_scripts import HarnessScript, remembered_sessions, script_tools
from benchmarks.recording import AsJson, Record, record
from helpers.browser import BrowserClient, start_browser_server
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.harness import ledger_rollout_func, stock_rollout_func
from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play, play_episodes
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.tasks import TRAIN_SEEDS, specs
from helpers.episodes.tools import OBSERVATIONS, content, encode
from helpers.evaluation.agents import text_match_agent
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.output import table
from helpers.policy.generators import TransformersGenerator
from helpers.policy.loading import Policy, load_policy
from helpers.policy.vision import small_policy_with_eyes
from helpers.settings.machine import run_facts
from helpers.settings.profiles import Profile, get_profile

TASK, PICTURE_TASK, GROUP = "enter-text", "click-button-sequence", 8
PICTURE_PAGES = 10

Columns = dict[str, list]  # what a rollout_func returns


# ---- the measures ----


def largest_gap(model: PreTrainedModel, columns: Columns) -> float:
    """Sampled against recomputed logprobs, over the tokens that a trainer would train on (without
    a mask: all)."""
    worst = 0.0
    for i, completion in enumerate(columns["completion_ids"]):
        prompt = columns["prompt_ids"][i]
        mask = columns["env_mask"][i] if "env_mask" in columns else [1] * len(completion)
        with torch.inference_mode():
            ids = torch.tensor([prompt + completion], device=model.device)
            logits = model(ids).logits[0, len(prompt) - 1 : -1]
        scores = logits.float().log_softmax(-1)
        again = scores[range(len(completion)), completion].tolist()
        for recomputed, sampled, ours in zip(again, columns["logprobs"][i], mask, strict=True):
            if ours:
                worst = max(worst, abs(recomputed - sampled))
    return worst


def tokens_and_seconds(columns: Columns, seconds: float) -> dict[str, Any]:
    """What a door's columns say; all episodes are scripted, so every token is one that the task
    takes."""
    prompts = [len(ids) for ids in columns["prompt_ids"]]
    completions = [len(ids) for ids in columns["completion_ids"]]
    masks = columns.get("env_mask")
    answers = [sum(mask) for mask in masks] if masks else completions
    whole = [prompt + rest for prompt, rest in zip(prompts, completions, strict=True)]
    return {
        "prompt_tokens": statistics.median(prompts),
        "answer_tokens": statistics.median(answers),
        "episode_tokens": statistics.median(whole),
        "masked": bool(masks),
        "seconds": seconds / len(prompts),
    }


# ---- the doors ----


def measure_rollouts(
    policy: Policy, clients: Sequence[BrowserClient], pages: Sequence[EpisodeSpec]
) -> dict[str, Any]:
    """Our ``rollout_func``: one batch of episodes."""
    config, tokenizer = rollout_config(TASK), policy.tokenizer
    begin = time.monotonic()
    scripted = play(pages, clients, ScriptPlayer(text_match_agent, tokenizer), config)
    columns = rollout_columns(scripted, tokenizer)
    seconds = time.monotonic() - begin
    generator = TransformersGenerator(policy.model, tokenizer)
    sampled = play_episodes(pages, clients, generator, tokenizer, config)
    gap = largest_gap(policy.model, rollout_columns(sampled, tokenizer))
    return tokens_and_seconds(columns, seconds) | {"gap": gap}


def measure_harness(
    make_rollout_func: Callable[..., Callable[..., Columns]],
    policy: Policy,
    client: BrowserClient,
    pages: Sequence[EpisodeSpec],
) -> dict[str, Any]:
    """A harness's ``rollout_func``: episodes one after another."""
    config, tokenizer = rollout_config(TASK), policy.tokenizer
    prompts = [str(spec) for spec in pages]
    watched, sessions = remembered_sessions()
    with watched:
        begin = time.monotonic()
        script = HarnessScript(sessions, tokenizer)
        columns = make_rollout_func(client, tokenizer, config, script)(prompts, None)
        seconds = time.monotonic() - begin
    generator = TransformersGenerator(policy.model, tokenizer)
    sampled = make_rollout_func(client, tokenizer, config, generator)(prompts, None)
    return tokens_and_seconds(columns, seconds) | {"gap": largest_gap(policy.model, sampled)}


def tools_profile() -> Profile:
    """One update of one group on the task."""
    return replace(get_profile(), task=TASK, groups=1, group_size=GROUP, clients=GROUP, updates=1)


def measure_tools(policy: Policy, clients: Sequence[BrowserClient], folder: str) -> dict[str, Any]:
    """TRL's ``environment_factory``: one batch with the script, and one update of the untrained
    policy.

    It is sampled with vLLM where the profile has it: the trainer's own generation hands back no
    logprobs, so there is no gap then.
    """
    tokenizer = AutoTokenizer.from_pretrained(policy.path)
    tokenizer.chat_template = qwen3_chat_template
    trainer = build_tools_trainer(
        tools_profile(), policy.model, tokenizer, clients, folder, progress=False
    )
    rows: list[Any] = []
    for row in trainer.train_dataset or ():
        rows += [row] * GROUP
    with patch.object(BrowserGRPOTrainer, "_generate_single_turn", script_tools):
        begin = time.monotonic()
        batch = trainer._generate_and_score_completions(rows)
        seconds = time.monotonic() - begin
    prompts = batch["prompt_mask"].sum(1)
    completions = batch["completion_mask"].sum(1)
    answers = (batch["completion_mask"] * batch["tool_mask"]).sum(1)
    trainer.train()
    return {
        "prompt_tokens": statistics.median(prompts.tolist()),
        "answer_tokens": statistics.median(answers.tolist()),
        "episode_tokens": statistics.median((completions + prompts).tolist()),
        "masked": True,
        "seconds": seconds / GROUP,
        "gap": trainer.recorder.rows[0].get("logprob_gap/max"),
    }


# ---- the ways to show a page ----


def measure_observation(
    name: str,
    client: BrowserClient,
    processor: ProcessorMixin,
    image_token: int,
    config: RolloutConfig,
) -> dict[str, float]:
    """Tokens of the first prompt, the picture's share, and milliseconds to get and to encode it."""
    found = defaultdict(list)
    for seed in TRAIN_SEEDS[:PICTURE_PAGES]:
        begin = time.monotonic()
        seen = client.reset(PICTURE_TASK, seed, screenshot=name != "tree")
        between = time.monotonic()
        ids = encode(processor, content(seen, config, name, first=True))["input_ids"]
        found["encode_ms"].append(1_000 * (time.monotonic() - between))
        found["reset_ms"].append(1_000 * (between - begin))
        found["tokens"].append(ids.shape[1])
        found["of_the_picture"].append(int((ids == image_token).sum()))
    names = ("tokens", "of_the_picture", "reset_ms", "encode_ms")
    return {name: statistics.median(found[name]) for name in names}


def measure_observations(client: BrowserClient) -> dict[str, dict[str, float]]:
    """The four ways to show a page, to a small policy with eyes."""
    seer, processor = small_policy_with_eyes()
    config = rollout_config(PICTURE_TASK)
    image_token = seer.config.image_token_id
    return {
        name: measure_observation(name, client, processor, image_token, config)
        for name in OBSERVATIONS
    }


# ---- all of it ----


def measure() -> dict[str, Any]:
    """Both tables, as the object that ``--json`` prints."""
    policy = load_policy()
    pages = specs(TASK, TRAIN_SEEDS, GROUP)
    with start_browser_server(workers=2) as server, tempfile.TemporaryDirectory() as folder:
        clients = server.clients(GROUP)
        script = ScriptPlayer(text_match_agent, policy.tokenizer)
        play(pages, clients, script, rollout_config(TASK))  # all browsers have opened the task
        doors = {
            "rollout_func": measure_rollouts(policy, clients, pages),
            "harness, ours": measure_harness(ledger_rollout_func, policy, clients[0], pages),
            "harness, stock": measure_harness(stock_rollout_func, policy, clients[0], pages),
            "environment_factory": measure_tools(policy, clients, f"{folder}/tools"),
        }
        observations = measure_observations(clients[0])
    return {
        "task": TASK,
        "episodes": GROUP,
        "doors": doors,
        "picture_task": PICTURE_TASK,
        "observations": observations,
        **run_facts(),
    }


def show(result: dict[str, Any]) -> None:
    """Print both tables."""
    print(
        f"{result['episodes']} scripted episodes of {result['task']}, two actions each; gap: the "
        "untrained policy's answers\n"
    )
    rows = [
        [
            name,
            f"{door['prompt_tokens']:.0f}",
            f"{door['answer_tokens']:.0f}",
            f"{door['episode_tokens']:.0f}",
            "yes" if door["masked"] else "no",
            f"{door['seconds']:.2f}",
            "" if door["gap"] is None else f"{door['gap']:.1e}",
        ]
        for name, door in result["doors"].items()
    ]
    columns = ["door", "prompt", "answers", "episode", "mask", "s/episode", "gap (nats)"]
    print(table(columns, rows))
    rows = [
        [
            name,
            f"{shown['tokens']:.0f}",
            f"{shown['of_the_picture']:.0f}",
            f"{shown['reset_ms']:.0f}",
            f"{shown['encode_ms']:.1f}",
        ]
        for name, shown in result["observations"].items()
    ]
    print("\n" + table(["observation", "tokens", "picture", "reset ms", "encode ms"], rows))


def main(as_json: AsJson = False, record_it: Record = False) -> None:
    """The doors into one task, and the ways to show a page: what each costs, in one run.

    \b
    python -m benchmarks.doors             both tables (5 minutes on 2 cores)
    python -m benchmarks.doors --record    written to recordings/doors/result.json too
    """
    result = measure()
    if as_json:
        print(json.dumps(result))
    else:
        show(result)
    if record_it:
        record("doors", result)


if __name__ == "__main__":
    sys.exit(run(main))
