"""The other door into the same task: the browser as tools of `GRPOTrainer` (``environment_factory``), in text or with pictures.

    python -m scripts.train_tools --policy qwen3-vl-2b --task click-test --observation both --output runs/eyes

TRL makes one environment per rollout, offers its public methods to the policy as tools, calls them, and hands what they return
(text, pictures) to the policy and to the training pass. So the policy's template has to know tools (Qwen3, LFM2.5), and pictures
need a processor (Qwen3-VL, LFM2.5-VL). ``--observation``: tree, screenshot, both or marks (the screenshot with the numbers drawn
in). Everything else is a variable of `helpers.settings.profiles`, as in scripts/train.py.
"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from helpers.browser.actions import ACTIONS, parse_action
from helpers.episodes.tasks import episode_config
from helpers.episodes.tools import SYSTEM, BrowserTools, browser_tools
from helpers.learning.configuration import grpo_config, lora_config, training_specs
from helpers.learning.recorder import Recorder
from helpers.learning.trainer import BrowserGRPOTrainer, vllm_in_precision
from helpers.policy.loading import PolicyError, quiet_transformers
from helpers.policy.vllm_engine import prepare_vllm
from helpers.settings.profiles import Profile


class ToolsGRPOTrainer(BrowserGRPOTrainer):
    """`GRPOTrainer` with an ``environment_factory`` of `browser_tools`. Two things are added: the browsers work side by side, and
    an episode that is over gets no more answers."""

    def _generate_and_score_completions(self, inputs):
        pool = self._environment_pool[None]
        while len(pool) < len(inputs):
            pool.append(self.environment_factories[None]())
        for environment, row in zip(pool, inputs, strict=False):
            environment._begin("reset", row["spec"])
        self._answering = None
        result = super()._generate_and_score_completions(inputs)
        episodes = [environment.episode for environment in self.environments]
        for episode in episodes:  # an answer without a call ends TRL's loop
            episode.ended = episode.ended or "no_call"
        self.recorder.on_batch(episodes)
        return result

    def _generate_single_turn(self, prompt_ids, *arguments, **named):
        """One answer each; then the calls in them begin in all browsers at once. No answer where the episode is over: an empty
        one ends TRL's loop for this rollout."""
        ids, logprobs = super()._generate_single_turn(prompt_ids, *arguments, **named)
        environments = self.environments if self._answering is None else self._answering
        if len(environments) != len(
            ids
        ):  # TRL has left one out, whose text grew too long; nothing is begun ahead then
            return ids, logprobs
        self._answering = []
        for i, environment in enumerate(environments):
            if environment._over():
                ids[i] = []
                if logprobs is not None:
                    logprobs[i] = []
            elif calls := self._calls(ids[i], prompt_ids[i]):
                self._answering.append(environment)
                function = calls[0].get("function", {})
                if function.get("name") in ACTIONS and len(calls) == 1:
                    self._begin_step(environment, function["name"], function["arguments"])
        return ids, logprobs

    def _calls(self, ids: list[int], prompt_ids: list[int]) -> list[dict]:
        from trl.chat_template_utils import parse_response

        return (
            parse_response(self._tokenizer, ids, prefix=prompt_ids, tools=self.tools).get(
                "tool_calls"
            )
            or []
        )

    @staticmethod
    def _begin_step(environment: BrowserTools, name: str, arguments: dict[str, Any]) -> None:
        try:
            action = environment._action(name, arguments)
        except (TypeError, AttributeError):  # TRL will tell the policy
            return
        if parse_action(action, frozenset(e.bid for e in environment._seen.elements)).ok:
            environment._begin("step", action)


def build_tools_trainer(
    profile: Profile,
    model: Any,
    processing_class: Any,
    clients: Sequence[Any],
    folder: Path | str,
    observation: str = "tree",
    lora: bool = False,
    show: Callable[[str], None] | None = None,
) -> ToolsGRPOTrainer:
    """As `helpers.learning.run.build_trainer`, through the other door."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl.chat_template_utils import supports_tool_calling

    if not supports_tool_calling(processing_class):
        raise PolicyError(
            f"The chat template of {profile.policy!r} takes no tools: choose a policy whose template does (Qwen3, "
            "Qwen3-VL, LFM2.5), or train it with make train."
        )
    if observation != "tree" and not hasattr(processing_class, "image_processor"):
        raise PolicyError(
            f"{profile.policy!r} has no processor for pictures: use --observation tree, or a policy with eyes."
        )
    config = episode_config(profile)
    arguments = grpo_config(profile, folder, lora)
    arguments.max_tool_calling_iterations = max(
        config.turns_of(task) for task in profile.task.split(",")
    )
    limit = "max_tokens" if arguments.use_vllm else "max_new_tokens"
    arguments.generation_kwargs = {
        limit: 8 * config.max_tokens
    }  # a call as JSON takes more than click('13')
    rows = [
        {
            "prompt": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ""}],
            "spec": str(spec),
        }
        for spec in training_specs(profile, profile.updates * profile.groups)
    ]
    recorder = Recorder(Path(folder), profile.updates, show)
    quiet_transformers()
    prepare_vllm()
    with vllm_in_precision(profile.dtype) if arguments.use_vllm else contextlib.nullcontext():
        trainer = ToolsGRPOTrainer(
            model=model,
            processing_class=processing_class,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            reward_funcs=[],
            environment_factory=browser_tools(clients, config, observation),
            callbacks=[recorder],
            peft_config=lora_config(profile, model.config.model_type) if lora else None,
        )
    trainer.remove_callback(PrinterCallback)
    trainer.recorder = recorder
    return trainer
