"""Answers one by one with a vLLM engine, in a process of its own: vLLM keeps its memory."""

import json
import signal

import pytest
from in_python import run_script

from helpers.policy.vllm_stream import interrupts_held
from helpers.settings.machine import vllm_problem

SCRIPT = """
import json, signal, sys
from asking import ask
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
    "afterwards": [(a.ids, a.logprobs) for a in generator.generate(prompts, 8, 0.0)],
}
open(sys.argv[1], "w").write(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the script has found."""
    path = tmp_path_factory.mktemp("vllm") / "found.json"
    run_script(SCRIPT, path, timeout=500)
    return json.loads(path.read_text())


def assert_same(some, others):
    assert [ids for ids, _ in some] == [ids for ids, _ in others]
    for (_, one), (_, other) in zip(some, others, strict=True):
        assert one == pytest.approx(other, abs=1e-3)


needs_vllm = pytest.mark.skipif(bool(vllm_problem()), reason="vLLM is not installed here")


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
