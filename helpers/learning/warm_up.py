"""Supervised warm-up: a policy learns the format, and what scripts can show, before GRPO starts.

Scripts (`helpers.evaluation.scripted`) play training pages in a real browser. What they solved
becomes token ledgers, exactly as a rollout writes them, and cross-entropy is taken on the script's
tokens alone (TRL's `SFTTrainer`). The prompt has no worked examples: the policy is about to learn
from more than it could hold.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from transformers import PrinterCallback
from trl import SFTConfig, SFTTrainer

from helpers.browser import start_browser_server
from helpers.browser.orders import base_task
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, write_episodes
from helpers.episodes.how_played import rollout_config
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.tasks import task_names, train_seeds
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.checkpoints import saving
from helpers.learning.precision import prepare_weights
from helpers.policy.loading import Policy
from helpers.policy.lora import is_adapted, lora_of_rank, small_adapter
from helpers.settings.errors import ProfileError
from helpers.settings.files import new_folder
from helpers.settings.language import say
from helpers.settings.machine import run_facts
from helpers.settings.profiles import Profile

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import BrowserObservation, Client
    from helpers.episodes.config import RolloutConfig

MOST_AT_ONCE = 8  # episodes that go through the model together
NOT_TAUGHT = -100  # the label of a token that the loss leaves out
MOST_SESSIONS = 16  # scripts answer at once: there is no batch to keep full with more of them


def warm_up(
    profile: Profile,
    policy: Policy,
    tasks: Sequence[str],
    folder: Path,
    demos: int,
    epochs: float,
    learning_rate: float,
    seed: int,
) -> dict[str, Any]:
    """Play ``demos`` pages per task with scripts, and train the policy on what they did.

    Writes ``demonstrations.jsonl`` and the policy into ``folder``, prints how it went, and returns
    the numbers. Raises `ProfileError` for a task without a script.
    """
    begin = time.monotonic()
    with start_browser_server(workers=profile.workers) as server:
        clients = server.clients(min(MOST_SESSIONS, profile.clients))
        episodes = demonstrate(tasks, demos, clients, policy.tokenizer, seed)
    seconds = time.monotonic() - begin
    tokens = sum(e.ledger.completion_length + e.ledger.prompt_length for e in episodes)
    print(
        say(
            "{solved} of {played} episodes solved by the scripts in {seconds:.0f} s, "
            "{tokens} tokens",
            solved=len(episodes),
            played=demos * len(tasks),
            seconds=seconds,
            tokens=tokens,
        ),
        flush=True,
    )
    write_episodes(folder / "demonstrations.jsonl", episodes)
    metrics = fit(policy, episodes, folder, epochs, learning_rate, seed, profile.dtype)
    print(
        say(
            "loss {first_loss:.2f} -> {last_loss:.2f} in {steps} steps, {seconds:.0f} s; "
            "the policy is in {folder}",
            folder=folder / "policy",
            **metrics,
        )
    )
    return {
        "tasks": list(tasks),
        "demonstrations": len(episodes),
        "tokens": tokens,
        "seconds_playing": round(seconds, 1),
        **metrics,
        **run_facts(),
    }


def demonstrate(
    tasks: str | Sequence[str],
    n: int,
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
    seed: int = 0,
    config: RolloutConfig | None = None,
) -> list[Episode]:
    """``n`` training episodes per task, played by its script.

    Those that the page did not pay in full are dropped. ``config``: how they are played, by default
    as the tasks are. Raises `ProfileError` for a task without a script.
    """
    names = task_names(tasks)
    missing = [name for name in names if name not in SCRIPTS]
    if missing:
        raise ProfileError(
            f"There is no script for {', '.join(missing)}: write one in "
            "helpers/evaluation/scripted, or leave it out."
        )
    fewest = min(names, key=lambda name: len(train_seeds(name)))
    if n > len(train_seeds(fewest)):
        raise ProfileError(
            f"{fewest} has {len(train_seeds(fewest))} training pages, and {n} were asked for: use "
            "fewer --demos."
        )
    draw = random.Random(seed)
    specs = [
        EpisodeSpec(name, page) for name in names for page in draw.sample(train_seeds(name), n)
    ]
    player = ScriptPlayer(script_of, tokenizer)
    played = play(specs, clients, player, config or rollout_config(names, examples=False))
    return [episode for episode in played if episode.solved]


def script_of(observation: BrowserObservation, turn: int) -> str:
    """The answer of the script of the observation's task.

    A script that raises has lost its episode, not the run: it says nothing, which is no action.
    """
    try:
        return SCRIPTS[base_task(observation.task)](observation, turn)
    except Exception:  # whatever a few lines run into on a page that they were not made for
        return ""


def to_example(episode: Episode) -> dict[str, list[int]]:
    """``input_ids`` and ``labels`` of one episode, up to the last token of the script.

    The label of every token that is not the script's is `NOT_TAUGHT`.
    """
    ledger = episode.ledger
    end = ledger.prompt_length + ledger.completion_length
    ids = ledger.ids[:end]
    labels = [
        token if owner == POLICY else NOT_TAUGHT
        for token, owner in zip(ids, ledger.owner[:end], strict=True)
    ]
    return {"input_ids": ids, "labels": labels}


def fit(
    policy: Policy,
    episodes: Sequence[Episode],
    folder: Path,
    epochs: float,
    learning_rate: float,
    seed: int,
    dtype: str = "float32",
    updates: int = -1,
    batch: int = 8,
    rank: int = 0,
) -> dict[str, float]:
    """Train on the episodes and save the policy in ``folder``/policy.

    ``dtype``: what training computes in; the policy's weights become fp32 whatever it is.
    ``updates``: so many, instead of the epochs; ``batch``: episodes of each. ``rank``: of LoRA's
    new adapters; 0 trains what the policy has, all weights or the adapters that it brings. Adapters
    are saved alone, in bf16. Returns steps, first_loss, last_loss and seconds.
    """
    prepare_weights(policy.model, dtype)
    trainer = SFTTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        args=_sft_config(policy, folder, epochs, learning_rate, seed, dtype, updates, batch),
        train_dataset=Dataset.from_list([to_example(episode) for episode in episodes]),
        peft_config=lora_of_rank(rank, policy.family) if rank else None,
    )
    trainer.remove_callback(PrinterCallback)
    metrics = trainer.train().metrics
    with new_folder(folder / "policy") as saved, saving(folder):
        trainer.save_model(str(saved))
        policy.tokenizer.save_pretrained(saved)
        if rank or is_adapted(policy.model):
            small_adapter(saved, policy.name)
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    if not losses:  # it was over before the first one was logged
        losses = [metrics["train_loss"]]
    return {
        "steps": trainer.state.global_step,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "seconds": round(metrics["train_runtime"], 1),
    }


def _sft_config(
    policy: Policy,
    folder: Path,
    epochs: float,
    learning_rate: float,
    seed: int,
    dtype: str,
    updates: int,
    batch: int,
) -> SFTConfig:
    """The settings of TRL's `SFTTrainer`."""
    part = max(n for n in range(1, MOST_AT_ONCE + 1) if batch % n == 0)
    on_cpu = policy.model.device.type == "cpu"
    return SFTConfig(
        output_dir=str(folder),
        seed=seed,
        num_train_epochs=epochs,
        max_steps=updates,
        learning_rate=learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        per_device_train_batch_size=part,
        gradient_accumulation_steps=batch // part,
        max_length=1536,
        train_sampling_strategy="group_by_length",
        activation_checkpointing=False,
        use_cpu=on_cpu,
        # TRL's default is bf16 whatever the profile says, which most CPUs compute one by one.
        bf16=dtype == "bfloat16",
        dataloader_pin_memory=not on_cpu,
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
