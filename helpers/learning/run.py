"""A training run from beginning to end: browsers, trainer, evaluations, and what is saved.

`train` is what notebook 5 does cell by cell; the stages of an update are in `trainer`.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from datasets import Dataset
from transformers import PrinterCallback

from helpers.browser import start_browser_server
from helpers.browser.launcher import default_sessions
from helpers.episodes.episode import write_episodes
from helpers.episodes.how_played import (
    episode_config,
    evaluation_config,
    keep_how,
    kept_how,
    taught_config,
)
from helpers.episodes.rewards import strict_success
from helpers.episodes.rollout_func import make_rollout_func
from helpers.episodes.tasks import task_names
from helpers.evaluation.evaluate import Evaluation, difference, evaluate
from helpers.learning.advantages import INSTEAD
from helpers.learning.checkpoints import Memory, saving
from helpers.learning.configuration import (
    grpo_config,
    lora_config,
    process_count,
    training_specs,
)
from helpers.learning.out_of_memory import say_when_vllm_has_no_room
from helpers.learning.page_choice import PageChoice, choosing_rollout_func, paid_by
from helpers.learning.precision import prepare_weights
from helpers.learning.recorder import Recorder
from helpers.learning.resuming import prepare_folder
from helpers.learning.self_imitation import SelfImitation
from helpers.learning.trainer import Addition, BrowserGRPOTrainer, vllm_in_precision
from helpers.policy.choosing import trainer_generator
from helpers.policy.loading import Policy, quiet_transformers
from helpers.policy.lora import is_adapted, load_to_train, name_adapter
from helpers.policy.pictures import FAMILIES
from helpers.policy.vllm_engine import own_rendezvous, prepare_vllm
from helpers.policy.vllm_pictures import (
    SETTINGS,
    hand_over_language_model,
    language_model_alone,
)
from helpers.policy.vllm_server import weights_to_server
from helpers.policy.vllm_weights import hand_over_in
from helpers.settings.errors import ProfileError
from helpers.settings.files import new_folder, write_json
from helpers.settings.machine import peak_memory_gb, run_facts
from helpers.settings.predictions import check_fits
from helpers.settings.profiles import Profile
from helpers.settings.run_folder import hold_folder, release_folder

if TYPE_CHECKING:
    from peft import LoraConfig

    from helpers.browser import BrowserClient
    from helpers.browser.models import Client
    from helpers.episodes.config import EpisodeSpec, RolloutConfig
    from helpers.episodes.rewards import RewardFunction

Trainer = TypeVar("Trainer", bound=BrowserGRPOTrainer)


@contextmanager
def open_browsers(profile: Profile) -> Iterator[list[BrowserClient]]:
    """The browser sessions of this process.

    They are on the servers of ``COURSE_SERVERS``, taken in turn, else on a server of this process.
    The processes of one run share the profile's sessions and workers.
    """
    sessions = math.ceil(profile.clients / process_count())
    workers = max(1, profile.workers // process_count())
    with start_browser_server(workers, max(sessions, default_sessions())) as server:
        yield server.clients(sessions)


def build_trainer(
    profile: Profile,
    policy: Policy,
    clients: Sequence[Client],
    folder: Path | str,
    lora: bool = False,
    reward_funcs: Sequence[RewardFunction] = (strict_success,),
    config: RolloutConfig | None = None,
    progress: bool = True,
    specs: Sequence[EpisodeSpec] = (),
) -> BrowserGRPOTrainer:
    """Put policy, browsers and rewards together.

    ``clients``: open browser sessions, best as many as an update has episodes. ``folder``: for
    metrics, episodes and checkpoints. ``lora``: train adapters, not all weights; those that the
    policy has already, if it has some. ``config``: how episodes are played, by default as the
    profile says. ``progress``: show the line of progress. ``specs``: the page of each group of the
    run, by default those that the profile draws.

    ``trainer.train()`` then runs; with ``resume_from_checkpoint=last_checkpoint(folder)`` it goes
    on where a run ended.
    """
    recorder = Recorder(Path(folder), profile, progress)
    config = config or episode_config(profile)
    specs = specs or training_specs(profile, profile.updates * profile.groups)
    choice = page_choice(profile, reward_funcs, policy, recorder)
    rollout_func = make_rollout_func(clients, policy.tokenizer, config, recorder.on_batch)
    if choice is not None:
        rollout_func = choosing_rollout_func(
            clients, policy.tokenizer, config, choice, recorder.on_batch
        )
    trainer = start_trainer(
        BrowserGRPOTrainer,
        profile,
        recorder,
        model=policy.model,
        processing_class=policy.tokenizer,
        args=grpo_config(profile, folder, lora),
        train_dataset=Dataset.from_list([{"prompt": str(spec)} for spec in specs]),
        reward_funcs=list(reward_funcs),
        rollout_func=rollout_func,
        peft_config=new_adapters(profile, policy) if lora else None,
    )
    add_to_grpo(trainer, profile, choice)
    return trainer


def new_adapters(profile: Profile, policy: Policy) -> LoraConfig | None:
    """LoRA as the profile has it; None for a policy that brings its adapters."""
    return None if is_adapted(policy.model) else lora_config(profile, policy.family)


def page_choice(
    profile: Profile,
    reward_funcs: Sequence[RewardFunction],
    policy: Policy,
    recorder: Recorder,
) -> PageChoice | None:
    """What chooses the pages of an update; None where they come in turn and none is left out.

    Raises `ProfileError` where tasks would be scouted and none could be left out.
    """
    if profile.scout and profile.curriculum == "none":
        raise ProfileError(
            "COURSE_SCOUT chooses tasks for a curriculum: set COURSE_CURRICULUM=success, too."
        )
    if not profile.resample and profile.curriculum == "none":
        return None
    score = paid_by(reward_funcs, policy.tokenizer)
    return PageChoice(profile, score, recorder.on_extra)


def add_to_grpo(
    trainer: BrowserGRPOTrainer, profile: Profile, choice: PageChoice | None = None
) -> None:
    """Give a trainer what the profile asks for beyond GRPO; in plain GRPO that is nothing."""
    additions: list[Addition] = []
    memories: list[Memory] = [] if choice is None else [choice]
    if profile.advantages != "group":
        additions.append(INSTEAD[profile.advantages])
    if profile.self_imitation:
        imitation = SelfImitation(profile)
        additions.append(imitation)
        memories.append(imitation)
    trainer.additions = additions
    trainer.memories = memories


def start_trainer(
    kind: type[Trainer], profile: Profile, recorder: Recorder, **arguments: Any
) -> Trainer:
    """Make a trainer of ``kind`` with its recorder; its vLLM engine, if any, starts here.

    The model among the ``arguments`` gets fp32 weights. Raises `GPUMemoryError` where the GPU has
    no room for vLLM.
    """
    hold_folder(recorder.folder)
    quiet_transformers()
    prepare_vllm()
    model = arguments["model"]
    prepare_weights(model, profile.dtype)
    engine = _engine(profile, model, arguments["processing_class"])
    with say_when_vllm_has_no_room(profile), engine, own_rendezvous():
        trainer = kind(callbacks=[recorder], **arguments)
    if trainer.use_vllm:
        if model.config.model_type in FAMILIES:
            hand_over_language_model(trainer.vllm_generation)
        hand_over_in(profile.vllm_dtype, trainer.vllm_generation)
    trainer.remove_callback(PrinterCallback)
    trainer.recorder = recorder
    return trainer


@contextlib.contextmanager
def _engine(profile: Profile, model: Any, processing_class: Any) -> Iterator[None]:
    """Let a trainer that is made in this block start, or reach, the profile's vLLM engine, if any.

    Raises `ProfileError` where a server would have to read pictures.
    """
    seeing = model.config.model_type in FAMILIES
    if profile.generator != "vllm":
        yield
    elif profile.vllm_server and seeing:
        raise ProfileError(
            "A policy with eyes cannot be trained with COURSE_VLLM_SERVER: unset it, and vLLM runs "
            "beside the trainer."
        )
    elif profile.vllm_server:
        with weights_to_server(profile):
            yield
    elif seeing:
        alone = language_model_alone(model, processing_class.tokenizer)
        with alone, vllm_in_precision(profile.vllm_dtype, **SETTINGS):
            yield
    else:
        with vllm_in_precision(profile.vllm_dtype):
            yield


def sync_policy(trainer: BrowserGRPOTrainer) -> None:
    """Give the trainer's vLLM engine the current weights: after training, before an evaluation.

    Nothing is to be done without vLLM.
    """
    if trainer.use_vllm:
        trainer.vllm_generation.sync_weights()


def train(
    profile: Profile,
    folder: Path | str,
    lora: bool = False,
    resume: bool = False,
    before: bool = True,
    test: str | Sequence[str] = (),
) -> dict[str, Any]:
    """Evaluate, train, evaluate; returns the content of ``result.json``.

    ``resume``: go on from the last checkpoint in ``folder``, if there is one. ``before``: evaluate
    the policy before it is trained, too. ``test``: tasks to evaluate on, by default those that are
    trained on. Raises `ProfileError` where the machine is too small, `PolicyError` and
    `BrowserServerError` where policy or browsers cannot be had.
    """
    check_fits(profile, lora)
    tasks = task_names(test) if test else profile.tasks
    checkpoint = prepare_folder(folder, profile, lora, resume)
    policy = load_to_train(profile.policy, _device(profile), adapted=lora)
    with open_browsers(profile) as clients:
        start = time.monotonic()
        trainer = build_trainer(profile, policy, clients, folder, lora)
        seconds = {"start": time.monotonic() - start}

        first = Evaluation("before", [])
        if before:
            first = measure("before", trainer, policy, tasks, clients, profile)

        begin = time.monotonic()
        trainer.train(resume_from_checkpoint=checkpoint)
        seconds["training"] = time.monotonic() - begin

        sync_policy(trainer)
        after = measure("after", trainer, policy, tasks, clients, profile)
        seconds["total"] = time.monotonic() - start
    return save_result(folder, trainer, profile, first, after, seconds, lora)


def _device(profile: Profile) -> str:
    """Where this process computes: each process of a run has a GPU of its own."""
    if profile.device == "cuda":
        return f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    return profile.device


def measure(
    name: str,
    trainer: BrowserGRPOTrainer,
    policy: Policy,
    tasks: Sequence[str],
    clients: Sequence[Client],
    profile: Profile,
) -> Evaluation:
    """Evaluate the policy as the trainer has it now, and print the result.

    Of several processes the first one does it; the others wait, and have no episodes.
    """
    result = Evaluation(name, [])
    if trainer.accelerator.is_main_process:
        result = evaluate(
            name,
            tasks,
            profile.eval_episodes,
            clients,
            trainer_generator(trainer, policy.tokenizer),
            policy.tokenizer,
            taught_config(profile.policy) or evaluation_config(tasks, profile.tasks, profile),
        )
        print(result, flush=True)
    trainer.accelerator.wait_for_everyone()
    return result


def save_result(
    folder: Path | str,
    trainer: BrowserGRPOTrainer,
    profile: Profile,
    before: Evaluation,
    after: Evaluation,
    seconds: dict[str, float],
    lora: bool = False,
) -> dict[str, Any]:
    """Save the policy (with LoRA: its adapter), the evaluated episodes and ``result.json``.

    ``before`` may have no episodes: then there is nothing to compare with. Returns the content of
    ``result.json``, {} in all but the first of several processes.
    """
    folder = Path(folder)
    with new_folder(folder / "policy") as policy, saving(folder):
        trainer.save_model(str(policy))
        if trainer.is_world_process_zero():
            name_adapter(policy, profile.policy)
            taught = kept_how(profile.policy)
            if taught is not None:
                keep_how(policy, taught)
    if not trainer.is_world_process_zero():
        return {}
    write_episodes(folder / "before.jsonl", before.episodes)
    write_episodes(folder / "after.jsonl", after.episodes)
    model = trainer.accelerator.unwrap_model(trainer.model)
    trained = [weights.numel() for weights in model.parameters() if weights.requires_grad]
    result = {
        "before": before.summary() if before.episodes else None,
        "after": after.summary(),
        "difference": difference(before, after) if before.episodes else None,
        "lora": lora,
        "trainable_parameters": sum(trained),
        "peak_memory_gb": peak_memory_gb(),
        "profile": asdict(profile),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        **run_facts(),
    }
    for memory in trainer.memories:
        if isinstance(memory, PageChoice):
            result["with_signal"] = memory.with_signal()
    write_json(folder / "result.json", result)
    release_folder(folder)
    return result
