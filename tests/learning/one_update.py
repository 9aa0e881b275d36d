"""One update of the real trainer on recorded episodes, as a profile sets it, and what it moved."""

from dataclasses import dataclass, replace
from functools import cache

import torch
from datasets import Dataset
from tiny_models import tiny_llama

from helpers.episodes.episode import read_episodes
from helpers.episodes.rewards import strict_success
from helpers.episodes.rollout_func import rollout_columns
from helpers.learning.configuration import grpo_config, lora_config
from helpers.learning.recorder import Recorder
from helpers.learning.run import start_trainer
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.policy.loading import load_policy
from helpers.settings.paths import RECORDINGS

GROUPS, GROUP_SIZE = 2, 4


@cache
def recorded_episodes():
    """Eight episodes of click-button as the untrained policy played them: half of them solved."""
    path = RECORDINGS / "click-button-full-seed0" / "before.jsonl"
    episodes = read_episodes(path)
    solved = [episode for episode in episodes if episode.reward == 1.0]
    failed = [episode for episode in episodes if episode.reward == 0.0]
    half = GROUPS * GROUP_SIZE // 2
    return [episode for pair in zip(solved[:half], failed[:half], strict=True) for episode in pair]


def on_a_cpu(profile, **changes):
    """A profile's precisions and learning rates, in an update that a CPU makes in a second."""
    return replace(
        profile,
        device="cpu",
        generator="transformers",
        groups=GROUPS,
        group_size=GROUP_SIZE,
        accumulate=1,
        updates=1,
        warmup=0,  # so that the first update is at the profile's learning rate
        save_every=1_000,
        **changes,
    )


@dataclass(frozen=True)
class Move:
    """The change of all trained weights in one update, as one vector, and in what they are kept."""

    step: torch.Tensor
    precisions: set
    row: dict


def trainer_of(profile, model, tokenizer, folder, lora=False):
    """The course's own trainer, whose episodes are those that were recorded."""
    recorder = Recorder(folder, profile, progress=False)
    episodes = recorded_episodes()[: profile.batch]

    def play(prompts, trainer):
        recorder.on_batch(episodes)
        return rollout_columns(episodes, tokenizer)

    rows = [{"prompt": str(i)} for i in range(profile.updates * profile.groups)]
    return start_trainer(
        BrowserGRPOTrainer,
        profile,
        recorder,
        model=model,
        processing_class=tokenizer,
        args=grpo_config(profile, folder, lora),
        train_dataset=Dataset.from_list(rows),
        reward_funcs=[strict_success],
        rollout_func=play,
        peft_config=lora_config(profile, "llama") if lora else None,
    )


def trained_weights(trainer):
    """All weights that the optimiser changes, as one vector."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    return torch.cat(
        [
            weights.detach().float().flatten()
            for weights in model.parameters()
            if weights.requires_grad
        ]
    )


def update(profile, model, tokenizer, folder, lora=False):
    """Train for one update."""
    torch.manual_seed(0)  # the adapters of LoRA begin at random
    trainer = trainer_of(profile, model, tokenizer, folder, lora)
    before = trained_weights(trainer)
    precisions = {weights.dtype for weights in trainer.model.parameters() if weights.requires_grad}
    trainer.train()
    return Move(trained_weights(trainer) - before, precisions, trainer.recorder.rows[-1])


def tiny(tokenizer, dtype):
    """A small model as it is loaded in a precision; its weights are numbers that bf16 has."""
    model = tiny_llama(tokenizer).bfloat16()
    return model.to(getattr(torch, dtype))


def embedded(dtype, layers=30):
    """SmolLM2-135M, or its first layers, in a precision; its weights are numbers that bf16 has."""
    model = load_policy("smollm2-135m").model
    model.model.layers = model.model.layers[:layers]
    model.config.num_hidden_layers = layers
    return model.bfloat16().to(getattr(torch, dtype))
