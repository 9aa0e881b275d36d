# The settings of the LFM2-350M repository of December 2025, LoRA: make train PRESET=lfm2-lora.

LORA ?= 1
COURSE_LORA_LEARNING_RATE ?= 1e-4
COURSE_LORA_RANK ?= 8
# alpha is twice the rank (16) and dropout 0, as it was.
COURSE_VLLM_MEMORY ?= 0.15
# Changed: the names of LFM2's own modules (in_proj, out_proj, w1, w2, w3 beside q, k, v); the usual Llama list adapts q, k and v of
# six layers and nothing else (notebook 6).
include scripts/presets/lfm2-full.mk
