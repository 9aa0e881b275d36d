"""GRPO with TRL on browser episodes: the trainer, its metrics, checkpoints and resume. ``scripts/train.py`` is a whole run."""

import contextlib
import functools
import os
from collections.abc import Iterator

import torch
from trl import GRPOTrainer
from trl.trainer.utils import selective_log_softmax_and_entropy

from helpers.learning.packing import ATTENTION_ONLY, MAX_PACKED, _pack_tree
from helpers.policy.vllm_engine import engine_settings


class BrowserGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` with four additions, none of which changes the loss:

    - what prompts share goes through the model once, not once per completion (attention-only text models);
    - a group in which all ended alike has no advantage and so no gradient: the loss leaves it out of its passes;
    - ``sync_weights`` works with vLLM's CPU build;
    - the gap between sampled and recomputed logprobs is a metric (``logprob_gap/max``), with either generator.
    """

    share_prompts = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._scored = None
        if self.use_vllm and self.accelerator.device.type == "cpu":
            self.vllm_generation.sync_weights = self._sync_weights_cpu

    def _sync_weights_cpu(self) -> None:
        """The CPU build repacks its weights when it loads them, so they are loaded again, not copied into place."""
        llm = self.vllm_generation.llm
        runner = llm.llm_engine.model_executor.driver_worker.model_runner
        weights = (
            (name, tensor.clone()) for name, tensor in self.vllm_generation._iter_named_params()
        )
        runner.reload_weights(weights_iterator=weights)
        if self.model.config.tie_word_embeddings:
            # The output head has a packed copy of the embeddings, which reloading leaves as it was before training: the
            # logprob gap then grows with every update.
            model = runner.get_model()
            model.lm_head.weight = model.model.embed_tokens.weight
            model.lm_head.quant_method.process_weights_after_loading(model.lm_head)
        llm.reset_prefix_cache()

    def _get_per_token_logps_and_entropies(
        self,
        model,
        input_ids,
        attention_mask,
        logits_to_keep,
        batch_size=None,
        compute_entropy=False,
        compute_aux_loss=False,
        **images,
    ):
        family = self.accelerator.unwrap_model(model).config.model_type
        plain = all(value is None for value in images.values()) and not compute_aux_loss
        if self.share_prompts and plain and family in ATTENTION_ONLY:
            logps, entropies = self._shared_prompt_logps(
                model, input_ids, attention_mask, logits_to_keep
            )
            result = (logps, entropies if compute_entropy else None, None)
        else:
            result = super()._get_per_token_logps_and_entropies(
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size=batch_size,
                compute_entropy=compute_entropy,
                compute_aux_loss=compute_aux_loss,
                **images,
            )
        self._scored = result[0].detach()
        return result

    def _shared_prompt_logps(self, model, input_ids, attention_mask, keep):
        """Logprobs and entropies (batch, keep) of the completions; every shared token is computed once (`_pack_tree`), and so is
        a completion that a group has several times: on short answers that is the rule."""
        rows = [
            (
                tuple(ids[:-keep][m[:-keep].bool()].tolist()),
                tuple(ids[-keep:][m[-keep:].bool()].tolist()),
            )
            for ids, m in zip(input_ids, attention_mask, strict=True)
        ]
        groups: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        for i, (prompt, completion) in enumerate(rows):
            groups.setdefault(prompt, {}).setdefault(completion, []).append(i)
        logps, entropies = [None] * len(rows), [None] * len(rows)
        chunk: list[tuple[int, ...]] = []
        for n, prompt in enumerate(
            groups, start=1
        ):  # the mask grows with the square of the length, so it is bounded
            chunk.append(prompt)
            tokens = sum(len(p) + sum(map(len, groups[p])) for p in chunk)
            if n < len(groups) and tokens < MAX_PACKED:
                continue
            ids, positions, targets, sees = _pack_tree(
                [(list(p), list(map(list, groups[p]))) for p in chunk]
            )
            device = input_ids.device
            where = [i for i, target in enumerate(targets) if target != -100]
            with self.accelerator.autocast():
                out = model(
                    input_ids=torch.tensor([ids], device=device),
                    attention_mask=sees[None, None].to(device),
                    position_ids=torch.tensor([positions], device=device),
                    use_cache=False,
                    logits_to_keep=torch.tensor(where, device=device),
                )
            wanted = torch.tensor([targets[i] for i in where], device=device)
            scored, entropy = selective_log_softmax_and_entropy(
                out.logits[0].float(), wanted, temperature=self.temperature
            )
            branches = [(completion, same) for p in chunk for completion, same in groups[p].items()]
            sizes = [len(completion) for completion, _ in branches]
            for (completion, same), lp, h in zip(
                branches, scored.split(sizes), entropy.split(sizes), strict=True
            ):
                for i in same:
                    logps[i] = torch.nn.functional.pad(lp, (0, keep - len(completion)))
                    entropies[i] = torch.nn.functional.pad(h, (0, keep - len(completion)))
            chunk = []
        return torch.stack(logps), torch.stack(entropies)

    def _save_rng_state(self, output_dir):
        super()._save_rng_state(output_dir)
        os.sync()  # before trainer_state.json, which says that a checkpoint is whole, and before the last one is deleted

    def _compute_loss(self, model, inputs):
        if (
            self.loss_type == "dapo"
            and not self.beta
            and not self.args.entropy_coef
            and "pixel_values" not in inputs
        ):
            # This loss divides by the tokens of the whole batch (num_items_in_batch), so what is 0 can be left out. One row
            # stays where all are 0: the optimiser wants a graph.
            taught = inputs["advantages"] != 0
            taught[0] |= not taught.any()
            inputs = {
                name: value[taught]
                if torch.is_tensor(value) and value.shape[:1] == taught.shape
                else value
                for name, value in inputs.items()
            }
        loss = super()._compute_loss(model, inputs)
        if (sampled := inputs.get("sampling_per_token_logps")) is not None:
            mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
            gap = (self._scored - sampled).abs() * mask
            self._metrics["train"]["logprob_gap/max"].append(
                self.accelerator.gather(gap.max()).max().item()
            )
            if not (
                self.use_vllm and self.vllm_importance_sampling_correction
            ):  # else the trainer has logged it
                mean = self.accelerator.gather(gap.sum() / mask.sum().clamp(min=1)).mean().item()
                self._metrics["train"]["sampling/sampling_logp_difference/mean"].append(mean)
        return loss


@contextlib.contextmanager
def vllm_in_precision(dtype: str) -> Iterator[None]:
    """Start the trainer's engine in the policy's own precision: TRL names none, and vLLM's "auto" makes bf16 of fp32, which
    would move the sampled logprobs by 0.1 and more."""
    import trl.generation.vllm_generation as module

    original = module.LLM
    module.LLM = functools.partial(original, dtype=dtype, **engine_settings())
    try:
        yield
    finally:
        module.LLM = original
