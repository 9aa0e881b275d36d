"""Supervised warm-up: a policy learns the format, and what scripts can show, before GRPO starts.

Scripts (`helpers.evaluation.scripted`) play training pages in a real browser. What they solved
becomes token ledgers, exactly as a rollout writes them, and cross-entropy is taken on the script's
tokens alone (TRL's `SFTTrainer`). The prompt has no worked examples: the policy is about to learn
from more than it could hold.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig
from typing_extensions import override

from helpers.browser.orders import base_task
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, read_episodes, write_episodes
from helpers.episodes.how_played import Taught, rollout_config
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import Agent, play
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.tasks import task_names, train_seeds
from helpers.evaluation.scripted import SCRIPTS
from helpers.evaluation.scripted.thoughts import with_thought
from helpers.learning.answers_only import NOT_TAUGHT, AnswersOnly
from helpers.learning.checkpoints import drop_checkpoints_after, last_checkpoint, saving
from helpers.learning.precision import prepare_weights
from helpers.output import Progress
from helpers.policy.loading import Policy
from helpers.policy.lora import is_adapted, lora_of_rank, small_adapter
from helpers.settings.errors import ProfileError
from helpers.settings.files import new_folder
from helpers.settings.language import say
from helpers.settings.machine import run_facts
from helpers.settings.profiles import Profile

if TYPE_CHECKING:
    from transformers import (
        PreTrainedTokenizerBase,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )

    from helpers.browser.models import BrowserObservation, Client
    from helpers.episodes.config import RolloutConfig

STEPS_KEPT = 50  # between two checkpoints of a warm-up
DEMONSTRATED = "demonstrations.jsonl"
MOST_SESSIONS = 16  # scripts answer at once: there is no batch to keep full with more of them


@dataclass(frozen=True)
class Lesson:
    """How much a policy is shown, and how it learns from it."""

    demos: int = 30
    """Pages of each task that its script plays."""
    epochs: float = 2
    learning_rate: float = 5e-5
    seed: int = 0
    """Of the pages and of the training."""
    rank: int = 0
    """Of LoRA's new adapters; 0 trains what the policy has."""
    batch: int = 8
    """Episodes of each step."""
    rehearse: int = 0
    """Pages of each task that the policy was taught before; ``demos`` counts for the others."""
    success: Mapping[str, float] = field(default_factory=dict)
    """Measured success on tasks, from 0 to 1: the less is solved, the more pages are shown."""


def pages_of_each(
    tasks: Sequence[str], lesson: Lesson, before: Sequence[str] = ()
) -> dict[str, int]:
    """How many pages of each task are shown. ``before``: what the policy was taught already, which
    is rehearsed if the lesson says so, lest it is forgotten. Where the success is known, it decides
    between the two numbers."""
    rehearsed = set(before) if lesson.rehearse else set()
    known = {task: 1.0 if task in rehearsed else 0.0 for task in tasks} | dict(lesson.success)
    more = lesson.demos - lesson.rehearse
    return {task: lesson.rehearse + round(more * (1 - known[task])) for task in tasks}


def warm_up(
    profile: Profile,
    policy: Policy,
    taught: Taught,
    folder: Path,
    lesson: Lesson,
    clients: Sequence[Client],
    before: Sequence[str] = (),
) -> dict[str, Any]:
    """Let scripts play pages of the tasks that are ``taught``, and train the policy on what they
    solved. ``before``: those of them that it was taught before (`pages_of_each`).

    Writes ``demonstrations.jsonl`` and the policy into ``folder``, prints how it went, and returns
    the numbers. What is in the folder already is not done again: a call that was stopped goes on.
    Raises `ProfileError` for a task without a script.
    """
    begin = time.monotonic()
    path = folder / DEMONSTRATED
    pages = pages_of_each(taught.tasks, lesson, before)
    if not path.exists():
        write_episodes(path, _demonstrations(taught, pages, lesson, clients, policy.tokenizer))
    episodes = read_episodes(path)
    seconds = time.monotonic() - begin
    tokens = sum(e.ledger.completion_length + e.ledger.prompt_length for e in episodes)
    print(
        say(
            "{solved} of {played} episodes solved by the scripts in {seconds:.0f} s, "
            "{tokens} tokens",
            solved=len(episodes),
            played=sum(pages.values()),
            seconds=seconds,
            tokens=tokens,
        ),
        flush=True,
    )
    metrics = fit(
        policy,
        episodes,
        folder,
        lesson.epochs,
        lesson.learning_rate,
        lesson.seed,
        profile.dtype,
        batch=lesson.batch,
        rank=lesson.rank,
        keep_every=STEPS_KEPT,
    )
    print(
        say(
            "loss {first_loss:.2f} -> {last_loss:.2f} in {steps} steps, {seconds:.0f} s; "
            "the policy is in {folder}",
            folder=folder / "policy",
            **metrics,
        )
    )
    return {
        "tasks": list(taught.tasks),
        "rehearsed": [task for task in taught.tasks if task in before] if lesson.rehearse else [],
        "demonstrations": len(episodes),
        "tokens": tokens,
        "seconds_playing": round(seconds, 1),
        **metrics,
        **run_facts(),
    }


def _demonstrations(
    taught: Taught,
    pages: Mapping[str, int],
    lesson: Lesson,
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
) -> list[Episode]:
    """What scripts solved, with a line that says how far they are."""
    with Progress(sum(pages.values()), say("demonstrations")) as bar:
        return demonstrate(
            taught.tasks,
            pages,
            clients,
            tokenizer,
            lesson.seed,
            taught.config,
            lambda done, _of: bar.reach(done),
        )


def demonstrate(
    tasks: str | Sequence[str],
    n: int | Mapping[str, int],
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
    seed: int = 0,
    config: RolloutConfig | None = None,
    report: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """``n`` training episodes per task, or so many as ``n`` says of each, played by its script.

    Those that the page did not pay in full are dropped. ``config``: how they are played, by default
    as the tasks are. ``report``: called with (done, of) as episodes end. Raises `ProfileError` for
    a task without a script.
    """
    names = task_names(tasks)
    missing = [name for name in names if name not in SCRIPTS]
    if missing:
        raise ProfileError(
            f"There is no script for {', '.join(missing)}: write one in "
            "helpers/evaluation/scripted, or leave it out."
        )
    asked = {name: n if isinstance(n, int) else n[name] for name in names}
    for name, pages in asked.items():
        if pages > len(train_seeds(name)):
            raise ProfileError(
                f"{name} has {len(train_seeds(name))} training pages, and {pages} were asked for: "
                "use fewer --demos."
            )
    draw = random.Random(seed)
    specs = [
        EpisodeSpec(name, page)
        for name, pages in asked.items()
        for page in draw.sample(train_seeds(name), pages)
    ]
    config = config or rollout_config(names, examples=False)
    player = ScriptPlayer(script_for(config), tokenizer)
    played = play(specs, clients, player, config, report)
    return [episode for episode in played if episode.solved]


def script_for(config: RolloutConfig) -> Agent:
    """`script_of`, with a thought before each action where the config asks for thoughts."""

    def script(seen: BrowserObservation, turn: int) -> str:
        answer, prompt = script_of(seen, turn), config.prompt_of(seen.task)
        return with_thought(seen, answer, prompt) if prompt.thoughts else answer

    return script


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
    keep_every: int = 0,
) -> dict[str, float]:
    """Train on the episodes and save the policy in ``folder``/policy.

    ``dtype``: what training computes in; the policy's weights become fp32 whatever it is.
    ``updates``: so many, instead of the epochs; ``batch``: episodes of each. ``rank``: of LoRA's
    new adapters; 0 trains what the policy has, all weights or the adapters that it brings. Adapters
    are saved alone, in bf16. ``keep_every``: steps between two checkpoints, from the last of which
    a call that was stopped goes on; 0: none is made. Returns steps, first_loss, last_loss and
    seconds.
    """
    prepare_weights(policy.model, dtype)
    examples = [to_example(episode) for episode in episodes]
    longest = max(len(example["input_ids"]) for example in examples)
    trainer = AnswersOnly(
        model=policy.model,
        processing_class=policy.tokenizer,
        args=_sft_config(
            folder,
            epochs,
            learning_rate,
            seed,
            dtype,
            updates,
            batch,
            longest,
            keep_every,
            on_cpu=policy.model.device.type == "cpu",
        ),
        train_dataset=Dataset.from_list(examples),
        peft_config=lora_of_rank(rank, policy.family) if rank else None,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_Steps())
    checkpoint = last_checkpoint(folder) if keep_every else None
    with saving(folder):
        metrics = trainer.train(resume_from_checkpoint=checkpoint).metrics
    with new_folder(folder / "policy") as saved, saving(folder):
        trainer.save_model(str(saved))
        policy.tokenizer.save_pretrained(saved)
        if rank or is_adapted(policy.model):
            small_adapter(saved, policy.name)
    if keep_every:
        drop_checkpoints_after(folder, -1)
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    if not losses:  # it was over before the first one was logged
        losses = [metrics["train_loss"]]
    return {
        "steps": trainer.state.global_step,
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "seconds": round(metrics["train_runtime"], 1),
    }


class _Steps(TrainerCallback):
    """Says how far the training is."""

    @override
    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        self._bar = Progress(state.max_steps, say("steps"), initial=state.global_step)

    @override
    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        self._bar.reach(state.global_step)

    @override
    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        self._bar.close()


def _sft_config(
    folder: Path,
    epochs: float,
    learning_rate: float,
    seed: int,
    dtype: str,
    updates: int,
    batch: int,
    longest: int,
    keep_every: int = 0,
    *,
    on_cpu: bool,
) -> SFTConfig:
    """The settings of TRL's `SFTTrainer`. ``longest``: tokens of the longest episode."""
    return SFTConfig(
        output_dir=str(folder),
        seed=seed,
        num_train_epochs=epochs,
        max_steps=updates,
        learning_rate=learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        per_device_train_batch_size=batch,  # `AnswersOnly` divides it
        max_length=longest,
        train_sampling_strategy="group_by_length",
        activation_checkpointing=False,
        use_cpu=on_cpu,
        # TRL's default is bf16 whatever the profile says, which most CPUs compute one by one.
        bf16=dtype == "bfloat16",
        dataloader_pin_memory=not on_cpu,
        logging_steps=5,
        save_strategy="steps" if keep_every else "no",
        save_steps=keep_every or 1,
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
    )
