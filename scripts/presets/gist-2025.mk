# The settings of the gist of November 2025 (Qwen3-VL-2B, screenshots, click-test), for make tools PRESET=gist-2025.
# What it set, here: MODEL_ID, MAX_STEPS, MAX_NEW_TOKENS, LEARNING_RATE, WARMUP_STEPS, NUM_GENERATIONS, DATASET_SIZE, SAVE_INTERVAL.
COURSE_POLICY ?= qwen3-vl-2b
COURSE_TASK ?= click-test
OBSERVATION ?= both
COURSE_MAX_TURNS ?= 8
COURSE_MAX_TOKENS ?= 16
COURSE_LEARNING_RATE ?= 1e-6
COURSE_WARMUP ?= 20
COURSE_GROUPS ?= 1
COURSE_GROUP_SIZE ?= 8
COURSE_UPDATES ?= 100
COURSE_SAVE_EVERY ?= 50
# Changed: it sampled with temperature 0.5 and top-k 10. The logprobs that the trainer recomputes are those of temperature 1
# without a cut, so the ratio of the two was wrong from the first token on (notebook 3 measures it). COURSE_TEMPERATURE=0.5
# COURSE_TOP_K=10 bring it back.
# Changed: its 100 rows were one page; here every group has a page of its own.
# Changed: GRAD_ACCUM_STEPS 8 with batches of one; here an update's 8 episodes are one batch (COURSE_ACCUMULATE=8 splits it where
# memory is short: the same gradient).
# Changed: reward functions sum, mean and max with weights 1, 0, 0 are the strict reward where a page pays once (notebook 4).
