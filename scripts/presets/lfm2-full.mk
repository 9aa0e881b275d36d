# The settings of the LFM2-350M repository of December 2025, all weights: make train PRESET=lfm2-full.
COURSE_POLICY ?= lfm2-350m
COURSE_TASK ?= click-test
COURSE_MAX_TURNS ?= 10
COURSE_MAX_TOKENS ?= 32
COURSE_LEARNING_RATE ?= 5e-6
COURSE_WARMUP ?= 10
COURSE_GROUPS ?= 1
COURSE_GROUP_SIZE ?= 4
COURSE_UPDATES ?= 100
COURSE_VLLM_MEMORY ?= 0.1
# Changed: it trained and reported on the same pages, and click-test's only button has the same number on every page: a policy can
# memorise it. Here the seeds for training and for the test never meet. TASK=click-button asks for reading.
