"""A training run through the other door: the browser as tools of the policy, in text or pictures.

TRL makes one environment per rollout, offers its public methods to the policy as tools, calls them,
and hands what they return to the policy and to the training pass. So the policy's chat template has
to know tools (Qwen3, LFM2.5), and pictures need a processor (Qwen3-VL, LFM2.5-VL).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from trl.chat_template_utils import supports_tool_calling

from helpers.episodes.how_played import episode_config
from helpers.episodes.seeing import seeing_config
from helpers.episodes.tools import SYSTEM, browser_tools
from helpers.learning.checkpoints import saving
from helpers.learning.configuration import grpo_config, lora_config, training_specs
from helpers.learning.recorder import Recorder
from helpers.learning.run import open_browsers, start_trainer
from helpers.learning.trainer import ToolsGRPOTrainer
from helpers.policy.loading import PolicyError
from helpers.policy.prompts import system_prompt
from helpers.policy.vision import load_with_processor
from helpers.settings.errors import ProfileError
from helpers.settings.files import new_folder, write_json
from helpers.settings.machine import run_facts
from helpers.settings.profiles import Profile
from helpers.settings.run_folder import hold_folder, release_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin
    from trl import GRPOConfig

    from helpers.browser.models import Client
    from helpers.episodes.config import RolloutConfig

CALL_LENGTH = 8  # a call as JSON takes so many times the tokens of click('13')


def build_tools_trainer(
    profile: Profile,
    model: PreTrainedModel,
    processing_class: PreTrainedTokenizerBase | ProcessorMixin,
    clients: Sequence[Client],
    folder: Path | str,
    observation: str = "tree",
    lora: bool = False,
    progress: bool = True,
) -> ToolsGRPOTrainer:
    """As `helpers.learning.run.build_trainer`, through the other door.

    ``observation``: what the policy is shown, one of `helpers.episodes.tools.OBSERVATIONS`. Raises
    `PolicyError` for a policy that cannot call tools or cannot see, and `ProfileError` for a
    setting that this door has not.
    """
    check_plain(profile)
    check_policy(profile, processing_class, observation)
    config = _how_played(profile, observation)
    system = system_prompt(config.prompt) if observation == "picture" else SYSTEM
    specs = training_specs(profile, profile.updates * profile.groups)
    return start_trainer(
        ToolsGRPOTrainer,
        profile,
        Recorder(Path(folder), profile, progress),
        model=model,
        processing_class=processing_class,
        args=_tools_config(profile, folder, lora, config),
        train_dataset=Dataset.from_list([_row(str(spec), system) for spec in specs]),
        reward_funcs=[],  # the environments have a reward of their own
        environment_factory=browser_tools(clients, config, observation),
        peft_config=lora_config(profile, model.config.model_type) if lora else None,
    )


def check_plain(profile: Profile) -> None:
    """Raise `ProfileError` where more than GRPO is asked for: here TRL plays, page by page."""
    plain = {
        "resample": 0,
        "curriculum": "none",
        "scout": 0,
        "advantages": "group",
        "self_imitation": 0,
    }
    for name, value in plain.items():
        if getattr(profile, name) != value:
            raise ProfileError(
                f"COURSE_{name.upper()}={getattr(profile, name)} cannot be used with tools: unset "
                "it, or train with make train."
            )


def check_policy(
    profile: Profile,
    processing_class: PreTrainedTokenizerBase | ProcessorMixin,
    observation: str,
) -> None:
    """Raise `PolicyError` for a policy that cannot call tools or cannot see what it is shown."""
    if not supports_tool_calling(processing_class):
        raise PolicyError(
            f"The chat template of {profile.policy!r} takes no tools: choose a policy whose "
            "template does (Qwen3, Qwen3-VL, LFM2.5), or train it with make train."
        )
    if observation != "tree" and not hasattr(processing_class, "image_processor"):
        raise PolicyError(
            f"{profile.policy!r} has no processor for pictures: use --observation tree, or a "
            "policy with eyes."
        )


def _tools_config(
    profile: Profile, folder: Path | str, lora: bool, config: RolloutConfig
) -> GRPOConfig:
    """GRPO's settings, and the limits that a rollout function would set itself."""
    arguments = grpo_config(profile, folder, lora)
    arguments.max_tool_calling_iterations = max(config.turns_of(task) for task in profile.tasks)
    limit = "max_tokens" if arguments.use_vllm else "max_new_tokens"
    arguments.generation_kwargs = {limit: CALL_LENGTH * config.max_tokens}
    if not config.prompt.page:
        # One call, written as an action, ends the episode. What the tool returns would make the
        # answer longer than this, so TRL leaves it out and asks for no further answer; how much is
        # generated is said above it.
        arguments.generation_kwargs = {limit: config.max_tokens}
        arguments.max_completion_length = 1
    return arguments


def _how_played(profile: Profile, observation: str) -> RolloutConfig:
    """How the episodes are played: as the tasks are, or by clicks on what is seen."""
    if observation == "picture":
        return seeing_config(profile.temperature)
    return episode_config(profile)


def _row(spec: str, system: str) -> dict[str, Any]:
    """A row of the dataset; TRL appends what the environment's reset returns to the prompt."""
    prompt = [{"role": "system", "content": system}, {"role": "user", "content": ""}]
    return {"prompt": prompt, "spec": spec}


def train_with_tools(
    profile: Profile, folder: Path | str, observation: str = "tree", lora: bool = False
) -> dict[str, Any]:
    """Train, save the policy, and return the content of ``result.json``; nothing is evaluated.

    Raises `ProfileError`, `PolicyError` or `BrowserServerError`.
    """
    folder = Path(folder)
    hold_folder(folder)
    model, processing_class = load_with_processor(profile.policy, profile)
    begin = time.monotonic()
    # TRL holds one environment, and so one browser, for every episode of an update.
    with open_browsers(replace(profile, clients=profile.batch)) as clients:
        trainer = build_tools_trainer(
            profile, model, processing_class, clients, folder, observation, lora
        )
        trainer.train()
    with new_folder(folder / "policy") as policy, saving(folder):
        trainer.save_model(str(policy))
    result = {
        "profile": asdict(profile),
        "observation": observation,
        "lora": lora,
        "seconds": round(time.monotonic() - begin, 1),
        "rewards": [row["reward"] for row in trainer.recorder.rows],
        **run_facts(),
    }
    write_json(folder / "result.json", result)
    release_folder(folder)
    return result
