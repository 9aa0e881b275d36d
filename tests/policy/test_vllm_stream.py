"""What a vLLM engine answers, one by one and in episodes, in a process of its own: vLLM keeps its
memory. One engine serves all tests, because it takes half a minute to start."""

import json
import signal

import pytest
import torch
from in_python import run_script
from logprobs import largest_gap

from helpers.episodes.episode import read_episodes
from helpers.episodes.ledger import check_rollout
from helpers.episodes.rollout_func import rollout_columns
from helpers.policy.vllm_stream import interrupts_held
from helpers.settings.machine import vllm_problem

SCRIPT = """
import json, signal, sys
import torch
from pathlib import Path
from asking import ask
from helpers.browser import start_browser_server
from helpers.episodes.episode import write_episodes
from helpers.episodes.how_played import rollout_config
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.policy.loading import load_policy
from helpers.policy.streams import Request, Sampling
from helpers.policy.vllm_engine import start_vllm

policy = load_policy(weights=False)
generator = start_vllm(policy.path)
words = "The button says Ok. Click it, then type your name into the field and submit the form."
shared = policy.tokenizer(words * 4)["input_ids"]
prompts = [shared + policy.tokenizer(f"{n} times {n}:")["input_ids"] for n in range(6)]

def answers(sampling, prompts, wait=0):
    assert generator.llm.reset_prefix_cache()  # as after each update of the weights
    seeds = range(100, 100 + len(prompts))
    found = ask(generator.stream(sampling), prompts, wait, seeds)
    return [(completion.ids, completion.logprobs) for completion in found]

def cached():
    engine = generator.llm.llm_engine
    step, counts = engine.step, []
    def counting_step():
        outputs = step()
        counts.extend(output.num_cached_tokens for output in outputs if output.finished)
        return outputs
    engine.step = counting_step
    answers(greedy, prompts)
    engine.step = step
    return counts

def interrupted():
    engine = generator.llm.llm_engine
    stream, step, log = generator.stream(Sampling(8)), engine.step, []
    def interrupted_step():
        signal.raise_signal(signal.SIGINT)
        outputs = step()
        log.append("step ends")
        return outputs
    for lane, prompt in enumerate(prompts):
        stream.add(Request(prompt, lane, lane))
    engine.step = interrupted_step
    try:
        stream.step()
    except KeyboardInterrupt:
        log.append("interrupt")
    engine.step = step
    stream.close()
    log.append(engine.has_unfinished_requests())
    return log

greedy, drawn = Sampling(8, 0.0), Sampling(8)
together = [(a.ids, a.logprobs) for a in generator.generate(prompts, 8, 0.0)]
found = {
    "one call": together,
    "greedy": answers(greedy, prompts, wait=2),
    "drawn together": answers(drawn, prompts),
    "drawn apart": answers(drawn, prompts, wait=3),
    "a group": answers(drawn, [prompts[0]] * 4),
    "shared": len(shared),
    "cached": cached(),
    "interrupted": interrupted(),
    "drawn in one call": len(generator.generate(prompts, 1)),
    "compiled": torch._dynamo.utils.counters["frames"],
    "afterwards": [(a.ids, a.logprobs) for a in generator.generate(prompts, 8, 0.0)],
}
folder = Path(sys.argv[1])
(folder / "found.json").write_text(json.dumps(found))

pages = specs("enter-text", VALIDATION_SEEDS, 4)
config = rollout_config("enter-text", max_tokens=12)
with start_browser_server(workers=1, timeout=120) as server:
    episodes = play_episodes(pages, server.clients(4), generator, policy.tokenizer, config)
write_episodes(folder / "episodes.jsonl", episodes)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the script has written."""
    folder = tmp_path_factory.mktemp("vllm")
    run_script(SCRIPT, folder)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    """What the script has found."""
    return json.loads((folder / "found.json").read_text())


def assert_same(some, others):
    assert [ids for ids, _ in some] == [ids for ids, _ in others]
    for (_, one), (_, other) in zip(some, others, strict=True):
        assert one == pytest.approx(other, abs=1e-3)


needs_vllm = pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed here")


@pytest.mark.slow
@needs_vllm
@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's engine is faster when compiled")
def test_an_engine_on_a_cpu_compiles_nothing(found):
    assert found["drawn in one call"] == 6
    assert not found["compiled"]


@pytest.mark.slow
@needs_vllm
def test_a_vllm_stream_answers_as_one_call_and_as_its_seeds_say(found):
    assert_same(found["greedy"], found["one call"])
    assert_same(found["drawn apart"], found["drawn together"])
    assert len({tuple(ids) for ids, _ in found["a group"]}) > 1


@pytest.mark.slow
@needs_vllm
def test_what_prompts_begin_with_is_computed_once_also_where_they_come_together(found):
    """In whole blocks of the engine's cache."""
    block = 32
    from_the_cache = sorted(found["cached"])
    assert from_the_cache[0] == 0
    assert min(from_the_cache[1:]) >= found["shared"] // block * block > 0


@pytest.mark.slow
@needs_vllm
def test_an_interrupt_ends_no_step_in_its_middle_and_leaves_nothing_behind(found):
    assert found["interrupted"] == ["step ends", "interrupt", False]
    assert_same(found["afterwards"], found["one call"])


@pytest.mark.slow
@needs_vllm
def test_vllm_samples_with_the_same_logprobs(folder, policy):
    path = folder / "episodes.jsonl"
    episodes = read_episodes(path)
    turns = sum(len(e.turns) for e in episodes)
    assert len(episodes) == 4
    assert turns > 4
    check_rollout(rollout_columns(episodes, policy.tokenizer), 1)
    gaps = [largest_gap(policy.model, e) for e in episodes]
    print(f"largest gap, vLLM: {max(gaps):.1e} over {turns} turns")
    assert max(gaps) <= 1e-3
    assert json.loads(path.read_text().splitlines()[0])["task"] == "enter-text"


def test_an_interrupt_is_heard_when_the_block_is_over():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_held():
        signal.raise_signal(signal.SIGINT)
        done.append("the block")
    assert done == ["the block"]
    with interrupts_held():
        done.append("another block")
    assert done == ["the block", "another block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
