"""Everything that is overridden in TRL, and one update from top to bottom.

Written against TRL 1.16, and transformers 5.23 below it. Each override says what it is for; none
changes the loss. What is trained is GRPO with three parts left out:

1. No KL term, so no reference model (``beta`` 0). The reward is the page's own check of what was
   done, not a learned model that a policy could please in strange ways, and a second copy of the
   weights would cost memory.
2. No clipping that ever acts. Every batch of episodes is used for one step, by the policy that
   played it, so the ratio of new to old probability is 1. It stays in the loss, because the
   gradient passes through it.
3. No mean per answer. The loss is divided by the number of the policy's tokens in the whole batch
   (``loss_type`` dapo), so that a token of a long answer weighs as much as one of a short answer.

What stays is the group: the advantage of an episode is its reward against those of the others on
the same page. `helpers.learning.configuration.grpo_config` sets all of this.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from trl.chat_template_utils import parse_response
from typing_extensions import override

from helpers.episodes.config import EpisodeSpec
from helpers.learning.checkpoints import Memory, keep_memories, load_memories, saving
from helpers.learning.out_of_memory import save_when_out_of_memory
from helpers.learning.prefix_tree import ATTENTION_ONLY, tree_scores
from helpers.policy.generators import Generator, TransformersGenerator
from helpers.policy.pictures import FAMILIES, ReadsPictures
from helpers.policy.trl_parts import GRPOTrainer, vllm_generation
from helpers.policy.vllm_engine import engine_settings, precision_settings
from helpers.policy.vllm_pictures import VLLMSeeingGenerator
from helpers.policy.vllm_worker import reload_weights

if TYPE_CHECKING:
    from transformers.trainer_utils import TrainOutput

    from helpers.episodes.tools import BrowserTools
    from helpers.learning.recorder import Recorder

Batch = dict[str, Any]  # tensors with one row per episode, and numbers for all of them
Addition = Callable[["BrowserGRPOTrainer", Batch], Batch]


class BrowserGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` with six additions, none of which changes the loss.

    - What episodes begin with in common, a prompt or the same answers and pages after it, goes
      through the model once (`helpers.learning.prefix_tree`; text models whose layers are all
      attention).
    - A group in which all ended alike has no advantage and so no gradient: it is left out.
    - vLLM's CPU build gets the new weights.
    - The gap between sampled and recomputed logprobs is a metric (``logprob_gap/max``).
    - A GPU whose memory is full ends the run with a sentence and a checkpoint.
    - What the settings ask for beyond GRPO changes the batch before the loss sees it (`additions`).

    The methods stand in the order in which an update runs. TRL's ``training_step`` calls
    `_generate` and `_calculate_rewards`, once per update, then `_compute_loss`, then
    backpropagates; transformers' ``train`` lets the optimiser step. An update in several parts
    (``COURSE_ACCUMULATE``) computes a loss for each of them before that step.
    """

    share_prefixes = True
    """Whether what rows begin with in common is computed once; benchmarks switch it off to
    compare."""

    recorder: Recorder
    """Writes the metrics and the episodes; `helpers.learning.run` puts it here."""

    additions: Sequence[Addition] = ()
    """What changes a batch of played episodes, one after another: other advantages, further rows.
    None in plain GRPO; `helpers.learning.run` puts them here, and the memories."""

    memories: Sequence[Memory] = ()
    """What has to be known beside the weights to go on from a checkpoint."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._recomputed_logprobs: torch.Tensor | None = None
        # Which tokens of the completions are scored (None: all of them). The loss reads those of
        # the policy alone. Pages are many more, and of a page's token the output head computes a
        # quarter of what all layers do.
        self._scored: torch.Tensor | None = None
        colocated = self.use_vllm and self.vllm_mode == "colocate"
        if colocated and self.accelerator.device.type == "cpu":
            self.vllm_generation.sync_weights = self._sync_weights_cpu

    @override
    def train(self, *args: Any, **kwargs: Any) -> TrainOutput:
        """As transformers' ``train``; where the GPU's memory is full it saves what was learned.

        It raises `helpers.learning.out_of_memory.GPUMemoryError` then.
        """
        checkpoint = kwargs.get("resume_from_checkpoint")
        if isinstance(checkpoint, str):
            load_memories(checkpoint, self.memories)
        with save_when_out_of_memory(self, getattr(self, "recorder", None)):
            return super().train(*args, **kwargs)

    # One update -----------------------------------------------------------------------------------

    @override
    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        """The batch of an update, all stages but the last half of the fifth.

        TRL 1.16 calls the two methods that follow and computes GRPO's advantages. Overridden for
        the `additions`.
        """
        batch = super()._generate_and_score_completions(inputs)
        for addition in self.additions:
            batch = addition(self, batch)
        return batch

    @override
    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        """Play the episodes of an update: stages 1 to 4.

        ``prompts``: ``str(EpisodeSpec)``, one per episode, the members of a group next to each
        other. TRL 1.16 does the work: it gives vLLM the weights of the last update, then calls the
        run's rollout function (`helpers.episodes.rollout_func`), which plays all episodes in one
        loop (`helpers.episodes.play`); with tools TRL plays them itself (`ToolsGRPOTrainer`).
        Overridden to be read, nothing is changed.
        """
        # Stage 1: Reset (RunningEpisode.reset). Task and seed fix the page: a group begins on one.
        # Stage 2: Read (PolicyPlayer.read). Goal and page become a prompt; in later turns the new
        # page is appended to it.
        # Stage 3: Answer (PolicyPlayer.answer). The policy samples tokens; they and their logprobs
        # go into the ledger.
        # Stage 4: Act (RunningEpisode.act). The answer is parsed, the browser steps, the page pays.
        # An episode that is not over goes back to stage 2.
        return super()._generate(prompts)

    @override
    def _calculate_rewards(
        self,
        inputs: list[dict[str, Any]],
        prompts: list[Any],
        completions: list[Any],
        completion_ids_list: list[list[int]],
    ) -> torch.Tensor:
        """Rewards (episodes of all processes, reward functions); the first half of stage 5.

        ``inputs``: one row per episode, by now with the columns of the rollout. Overridden to be
        read: TRL 1.16 asks the reward functions, and makes advantages of what is returned here.
        """
        # Stage 5: Learn. Within each group, and without those that the infrastructure lost:
        #     advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
        # helpers.episodes.advantages is the same in plain Python; a test compares the two.
        return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    @override
    def _compute_loss(self, model: torch.nn.Module, inputs: Batch) -> torch.Tensor:
        """The loss of a batch, or of a part of it; the second half of stage 5.

        TRL 1.16 computes it. Added are what is left out before, and what is measured after it.
        """
        if self._zero_rows_can_go(inputs):
            inputs = rows_with_advantage(inputs)
        # Stage 5 goes on. The gradient of this loss is that of
        #     -(advantages * logprobs).sum() / tokens
        # with the logprobs of the policy's tokens, and the number of them in the whole batch.
        scored = (inputs["completion_mask"] * inputs.get("tool_mask", 1)).bool()
        self._scored = scored
        try:
            loss = super()._compute_loss(model, without_unscored(inputs, scored))
        finally:
            self._scored = None
        self._log_logprob_gap(inputs)
        # What follows is TRL's and transformers': backpropagate, step, new weights, stage 1 again.
        return loss

    # What stage 5 needs ---------------------------------------------------------------------------

    def _zero_rows_can_go(self, inputs: Batch) -> bool:
        """Whether a row without advantage adds 0 to the loss, and so may be left out.

        The dapo loss divides by the tokens of the whole batch, which stay counted
        (``num_items_in_batch``). A KL term and an entropy bonus have a gradient in every row, and
        not every policy's pictures are stored row by row.
        """
        only_the_policy_term = not self.beta and not self._entropy_bonus_enabled
        row_by_row = "pixel_values" not in inputs or one_picture_a_row(inputs)
        return self.loss_type == "dapo" and only_the_policy_term and row_by_row

    @override
    def _get_per_token_logps_and_entropies(
        self,
        model: torch.nn.Module,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **images: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Logprobs and entropies, each (batch, ``logits_to_keep``), of the completions.

        TRL 1.16 sends the padded batch through the model. Overridden because most of that batch is
        the same tokens again: where the model allows it, what is shared is computed once.
        """
        family = self.accelerator.unwrap_model(model).config.model_type
        given = {name: value for name, value in images.items() if value is not None}
        can_share = family in ATTENTION_ONLY and not given
        if family in FAMILIES and set(given) == {"pixel_values", "num_images"}:
            can_share = one_picture_a_row({"input_ids": input_ids, **given})
        aux_loss: torch.Tensor | None = None
        entropies: torch.Tensor | None
        if self.share_prefixes and can_share and not compute_aux_loss:
            logprobs, entropies = self._tree_logps(
                model, input_ids, attention_mask, logits_to_keep, given.get("pixel_values")
            )
            if not compute_entropy:
                entropies = None
        else:
            logprobs, entropies, aux_loss = super()._get_per_token_logps_and_entropies(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size=batch_size,
                compute_entropy=compute_entropy,
                compute_aux_loss=compute_aux_loss,
                **images,
            )
        self._recomputed_logprobs = logprobs.detach()
        return logprobs, entropies, aux_loss

    def _tree_logps(
        self,
        model: torch.nn.Module,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        keep: int,
        pixels: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`tree_scores` with this trainer's temperature and precision."""
        if pixels is not None:
            with self.accelerator.autocast():
                model = ReadsPictures(model, pixels)
            input_ids = model.numbered(input_ids)
        return tree_scores(
            model,
            input_ids,
            attention_mask,
            keep,
            self.temperature,
            self.accelerator,
            self._scored,
        )

    def _log_logprob_gap(self, inputs: Batch) -> None:
        """Log how far the logprobs that were sampled are from those that were just recomputed.

        A wide gap means that what is trained is not what was sampled. TRL 1.16 logs the mean alone,
        and only while it corrects for the gap.
        """
        sampled = inputs.get("sampling_per_token_logps")
        if sampled is None or self._recomputed_logprobs is None:
            return
        metrics = self._metrics["train"]
        mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        if "replayed" in inputs:  # by an older policy, whose logprobs are others
            mask = mask * ~inputs["replayed"][:, None]
        gap = (self._recomputed_logprobs - sampled).abs() * mask
        largest = self._of_all_processes(gap.max()).max()
        metrics["logprob_gap/max"].append(largest.item())
        trl_logs_the_mean = self.use_vllm and self.vllm_importance_sampling_correction
        if not trl_logs_the_mean:
            mean = self._of_all_processes(gap.sum() / mask.sum().clamp(min=1)).mean()
            metrics["sampling/sampling_logp_difference/mean"].append(mean.item())

    def log_number(self, name: str, value: float) -> None:
        """Log a number of this update; of several processes the mean."""
        number = torch.tensor(float(value), device=self.accelerator.device)
        self._metrics["train"][name].append(self._of_all_processes(number).mean().item())

    @property
    def filler(self) -> int:
        """The token that rows of different lengths are filled up with."""
        return cast("int", self._tokenizer.pad_token_id)

    def _of_all_processes(self, value: torch.Tensor) -> torch.Tensor:
        """A number of each process, together as one tensor."""
        return cast("torch.Tensor", self.accelerator.gather(value))

    # Weights and checkpoints ----------------------------------------------------------------------

    def _sync_weights_cpu(self) -> None:
        """Hand the weights to vLLM's CPU build, in the place of ``vllm_generation.sync_weights``.

        TRL 1.16 copies them into place, which that build does not allow.
        """
        llm = self.vllm_generation.llm
        runner = llm.llm_engine.model_executor.driver_worker.model_runner
        weights = (
            (name, tensor.clone()) for name, tensor in self.vllm_generation._iter_named_params()
        )
        reload_weights(runner, weights)
        llm.reset_prefix_cache()

    @override
    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save a checkpoint; where the disk refuses it, that is a `RunFileError`.

        The checkpoint before it is there until this one is whole (`Recorder.on_save`).
        """
        folder = Path(self.args.output_dir or "")
        with saving(folder):
            # First, because a checkpoint counts as whole when the trainer's own files are there.
            keep_memories(folder / f"checkpoint-{self.state.global_step}", self.memories)
            super()._save_checkpoint(model, trial)


class ToolsGRPOTrainer(BrowserGRPOTrainer):
    """The trainer of the other door: an ``environment_factory`` of `helpers.episodes.tools`.

    TRL 1.16 calls the environments one after another, and goes on asking for answers when an
    episode is over. Two things are added: the browsers work side by side, and what is over gets no
    more answers.
    """

    _answering: list[BrowserTools] | None = None  # None before the first answers

    @property
    def answering(self) -> list[BrowserTools]:
        """The environments whose next answer is generated, in the order of their prompts."""
        if self._answering is None:
            return cast("list[BrowserTools]", self.environments)
        return self._answering

    @override
    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        """Start all resets at once, let TRL play, and hand the episodes to the recorder.

        ``inputs``: one row per episode with its ``spec`` (``str(EpisodeSpec)``).
        """
        # Stage 1: Reset, in all browsers at once. TRL then asks each for what has begun already.
        environments = self._environments_of(inputs)
        for environment, row in zip(environments, inputs, strict=True):
            environment.session.start_reset(EpisodeSpec.read(row["spec"]))
        # Stages 2 to 4: Read, Answer, Act. TRL puts each page into the chat template, calls
        # `_generate_single_turn`, makes the calls in the answers, and begins again with their
        # results, until no answer has a call.
        self._answering = None
        batch = super()._generate_and_score_completions(inputs)
        episodes = [environment.session.episode for environment in environments]
        for episode in episodes:
            if not episode.ended:  # an answer without a call has ended TRL's loop
                episode.ended = "no_call"
        self.recorder.on_batch(episodes)
        return batch

    def _environments_of(self, inputs: list[dict[str, Any]]) -> list[BrowserTools]:
        """One environment per row: those that TRL 1.16 is about to take from its pool."""
        factories = cast("dict[None, Callable[[], BrowserTools]]", self.environment_factories)
        pool = cast("list[BrowserTools]", self._environment_pool[None])
        while len(pool) < len(inputs):
            pool.append(factories[None]())
        return pool[: len(inputs)]

    @override
    def _generate_single_turn(
        self, prompt_ids: list[list[int]], *arguments: Any, **named: Any
    ) -> tuple[list[list[int]], list[list[float]] | None]:
        """One answer per prompt; the calls in them then start in all browsers at once.

        Where the episode is over the answer is emptied, which ends TRL's loop for this rollout.
        """
        # Stage 3: Answer.
        pixels = self._pictures_to_share(prompt_ids, *arguments)
        if pixels is None:
            ids, logprobs = super()._generate_single_turn(prompt_ids, *arguments, **named)
        else:
            ids, logprobs = self._answer_pictures(prompt_ids, pixels)
        environments = self.answering
        if len(environments) != len(ids):
            # TRL has left out a rollout whose text grew too long, and does not say which: nothing
            # can be started ahead.
            return ids, logprobs
        # Stage 4: Act, started in all browsers at once; TRL then collects the results in turn.
        self._answering = []
        for i, environment in enumerate(environments):
            if environment.session.over:
                ids[i] = []
                if logprobs is not None:
                    logprobs[i] = []
                continue
            calls = self._calls(ids[i], prompt_ids[i])
            if calls:
                self._answering.append(environment)
            if len(calls) == 1:  # of several only the first would be on the page as it is now
                function = calls[0].get("function", {})
                environment.session.start_call(function.get("name"), function.get("arguments"))
        return ids, logprobs

    def _pictures_to_share(
        self, prompt_ids: list[list[int]], images: Any, fields: dict[str, Any], *_: Any
    ) -> torch.Tensor | None:
        """The pictures (prompts, 3, height, width), where each prompt has one and prompts with
        equal ones may be read once for all; None where TRL has to generate."""
        family = self.accelerator.unwrap_model(self.model).config.model_type
        if family not in FAMILIES or images is None:
            return None
        pictures = [len(of_prompt or ()) for of_prompt in images]
        pixels = torch.as_tensor(np.asarray(fields["pixel_values"]))
        batch = {"pixel_values": pixels, "input_ids": prompt_ids, "num_images": pictures}
        return pixels if one_picture_a_row(batch) else None

    def _answer_pictures(
        self, prompt_ids: list[list[int]], pixels: torch.Tensor
    ) -> tuple[list[list[int]], list[list[float]]]:
        """One answer per prompt and the logprobs of its tokens. TRL 1.16 would read a group's page
        once for each of its answers."""
        model = self.accelerator.unwrap_model(self.model)
        with torch.no_grad(), self.accelerator.autocast():
            seeing = ReadsPictures(model, pixels.to(self.accelerator.device))
            numbered = [
                seeing.numbered(torch.tensor(ids), row).tolist()
                for row, ids in enumerate(prompt_ids)
            ]
            limits: dict[str, int] = cast(Any, self.args).generation_kwargs
            limit = limits["max_tokens" if self.use_vllm else "max_new_tokens"]
            generator = self._generator(seeing)
            answers = generator.generate(numbered, limit, self.temperature, self.top_k)
        return [answer.ids for answer in answers], [answer.logprobs for answer in answers]

    def _generator(self, seeing: ReadsPictures) -> Generator:
        """What answers prompts with pictures; vLLM gets the weights of the last update first."""
        if not self.use_vllm:
            return TransformersGenerator(cast(Any, seeing), self._tokenizer)
        if self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step
        return VLLMSeeingGenerator(self.vllm_generation.llm, seeing)

    def _calls(self, ids: list[int], prompt_ids: list[int]) -> list[dict[str, Any]]:
        """The tool calls in an answer, as TRL will read them."""
        tools: list[Any] = list(self.tools)
        message = parse_response(self._tokenizer, ids, prefix=prompt_ids, tools=tools)
        return message.get("tool_calls") or []


def rows_with_advantage(inputs: Batch) -> Batch:
    """The rows of a batch that have an advantage; the first row where none has.

    That row stays because there has to be a graph to differentiate, be it of zeros.
    """
    advantages = inputs["advantages"]
    kept = advantages != 0 if advantages.dim() == 1 else (advantages != 0).any(dim=1)
    if not kept.any():
        kept[0] = True
    chosen = dict(inputs)
    for name, value in inputs.items():
        if torch.is_tensor(value) and value.shape[:1] == kept.shape:
            chosen[name] = value[kept]
    if "num_images" in inputs:
        chosen["num_images"] = [1] * int(kept.sum())
    return chosen


def without_unscored(inputs: Batch, scored: torch.Tensor) -> Batch:
    """The batch with logprobs of the policy before of 0 where nothing is ``scored``.

    What the policy says there now comes out as 0, too, so that the ratio of the two is 1.
    """
    before = inputs.get("old_per_token_logps")
    return inputs if before is None else inputs | {"old_per_token_logps": before * scored}


def one_picture_a_row(inputs: Batch) -> bool:
    """Whether the pictures of a batch, if it has some, are stored as its rows are: one for each.

    Qwen3-VL and LFM2.5-VL store patches, of which a picture has many.
    """
    pixels, pictures = inputs["pixel_values"], inputs["num_images"]
    rows = len(inputs["input_ids"] if "input_ids" in inputs else inputs["advantages"])
    return pixels.dim() == 4 and len(pixels) == rows and set(pictures) == {1}


@contextlib.contextmanager
def vllm_in_precision(dtype: str, **settings: Any) -> Iterator[None]:
    """Start the trainer's engine in a precision of our choice, with the course's ``settings``.

    TRL 1.16 passes no precision on, and vLLM's "auto" makes bf16 of fp32, which would move the
    sampled logprobs by 0.1 and more.
    """
    original = vllm_generation.LLM
    vllm_generation.LLM = functools.partial(
        original, **precision_settings(dtype), **engine_settings(), **settings
    )
    try:
        yield
    finally:
        vllm_generation.LLM = original
