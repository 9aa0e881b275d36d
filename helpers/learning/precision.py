"""In which precision a training run keeps, computes and samples, and why a bf16 run learns nothing.

Three things have a precision, and each needs another one:

- The weights that are trained are fp32, whatever the profile says. A number in bf16 has 8 bits: a
  weight of 0.05 has neighbours 0.0002 away, and a step of 5e-6 or 3e-5 is rounded away. On an H100
  a policy whose weights were bf16 themselves stood at 51 % after 100 updates, and every metric
  looked healthy. The same goes for the adapters of LoRA. The weights that LoRA leaves alone are
  fp32, too: before each rollout TRL adds the adapters to them and takes them off again, and in bf16
  they would not come back as they were.
- Training computes in ``COURSE_DTYPE``: fp32 in every profile. With bfloat16 autocast rounds copies
  of the weights for the matrix products; gradients and steps are fp32 again, and every weight that
  fp32 moves is moved. But Adam's first steps have the size of the learning rate for each weight,
  however small its gradient is, and where the rounding has turned a small gradient round, the step
  goes the other way: an update of smollm2-135m has a cosine of 0.91 with that of fp32 (LoRA: 0.94;
  a model of two layers: 0.99). It is there for policies that are too large for fp32. Those of the
  profiles are not, and their GPU waits for the browsers anyway. The output head computes in fp32
  even then (`head_in_fp32`): rounded logits are a part of what bf16 does to a logprob.
- vLLM samples in ``COURSE_VLLM_DTYPE``, which may be rounder still: it decides which episodes are
  played, not how the weights move. The distance between what was sampled and what is trained is a
  metric, ``logprob_gap/max``, and the loss corrects for it
  (``vllm_importance_sampling_correction``). What is sampled follows each step all the same:
  `helpers.policy.vllm_weights` rounds the engine's copy so.

fp16 is not trained: its range is too small for gradients unless the loss is scaled, and a scaler
cannot be tried on a CPU (accelerate computes fp16 on GPUs only).
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedModel


def prepare_weights(model: PreTrainedModel, dtype: str) -> None:
    """Make a loaded model one whose steps arrive: fp32 weights, and an output head in fp32.

    ``dtype``: the profile's, the precision that training computes in.
    """
    model.float()
    if dtype != "float32":
        head_in_fp32(model)


def head_in_fp32(model: PreTrainedModel) -> None:
    """Let the output head compute in fp32 where autocast computes the layers in bf16.

    Only the tokens that are scored go through it, so that it costs next to nothing. Calling it
    twice changes nothing more.
    """
    head: Any = model.get_output_embeddings()
    if head is None or getattr(head, "computes_in_fp32", False):
        return
    compute = head.forward

    def in_fp32(hidden: torch.Tensor) -> torch.Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return compute(hidden.float())

    head.forward = in_fp32
    head.computes_in_fp32 = True
