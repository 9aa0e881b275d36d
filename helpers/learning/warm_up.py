"""Supervised warm-up: a policy learns the format, and what scripts can show, before GRPO starts.

    python -m scripts.warm_up --task suite --demos 30 --output runs/warm
    COURSE_EXAMPLES=none make train POLICY=runs/warm/policy TASK=suite

Scripts (`helpers.evaluation.scripted`) play training pages in a real browser; what they solved becomes token ledgers, exactly as a rollout
writes them, and cross-entropy is taken on the script's tokens only (TRL's `SFTTrainer`). The prompt has no worked examples: the
policy is about to learn from more than it could hold.
"""

import random
from pathlib import Path

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import rollout_config, train_seeds
from helpers.evaluation.scripted import SCRIPTS
from helpers.settings.profiles import ProfileError


class Script:
    """The scripts of `SCRIPTS`, one per task, in a generator's place."""

    def answer(self, observation, turn: int) -> str:
        return SCRIPTS[observation.task](observation, turn)


def demonstrate(tasks: str, n: int, clients, tokenizer, seed: int = 0) -> list[Episode]:
    """``n`` training episodes per task, played by its script; those that the page did not pay in full are dropped."""
    if missing := [task for task in tasks.split(",") if task not in SCRIPTS]:
        raise ProfileError(
            f"There is no script for {', '.join(missing)}: write one in helpers/evaluation/scripted.py, or leave it out."
        )
    draw = random.Random(seed)
    todo = [
        EpisodeSpec(task, page)
        for task in tasks.split(",")
        for page in draw.sample(train_seeds(task), n)
    ]
    return [
        e
        for e in play_episodes(
            todo, clients, Script(), tokenizer, rollout_config(tasks, examples=False)
        )
        if e.solved
    ]


def to_example(episode: Episode) -> dict[str, list[int]]:
    """Input ids and labels of one episode: -100 for all but the script's tokens, up to the last of these."""
    ledger = episode.ledger
    end = ledger.prompt_length + ledger.completion_length
    labels = [
        token if who == POLICY else -100
        for token, who in zip(ledger.ids[:end], ledger.owner[:end], strict=True)
    ]
    return {"input_ids": ledger.ids[:end], "labels": labels}


def fit(
    policy, episodes: list[Episode], folder: Path, epochs: float, learning_rate: float, seed: int
) -> dict[str, float]:
    """Train on the episodes and save the policy in ``folder``/policy; returns the trainer's metrics."""
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import SFTConfig, SFTTrainer

    cpu = policy.model.device.type == "cpu"
    # bf16 where the weights are bf16: TRL's default is bf16 everywhere, which most CPUs compute one number at a time
    bf16 = policy.model.dtype == torch.bfloat16
    config = SFTConfig(
        output_dir=str(folder),
        seed=seed,
        num_train_epochs=epochs,
        learning_rate=learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=1,
        max_length=1536,
        train_sampling_strategy="group_by_length",
        activation_checkpointing=False,
        use_cpu=cpu,
        bf16=bf16,
        dataloader_pin_memory=not cpu,
        logging_steps=5,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = SFTTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        args=config,
        train_dataset=Dataset.from_list([to_example(e) for e in episodes]),
    )
    trainer.remove_callback(PrinterCallback)
    metrics = trainer.train().metrics
    trainer.save_model(str(folder / "policy"))
    policy.tokenizer.save_pretrained(folder / "policy")
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return {
        "steps": trainer.state.global_step,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "seconds": round(metrics["train_runtime"], 1),
    }
