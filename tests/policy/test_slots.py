"""Answers one by one, with transformers: the same as all together, in any company."""

import random

import pytest
import torch
from asking import ask
from tiny_models import tiny_llama
from transformers import AutoModelForCausalLM, Lfm2Config

from helpers.policy.generators import TransformersGenerator
from helpers.policy.slots import pick
from helpers.policy.streams import Request, Sampling, draw_seed, request_seed

TOKENS = 8  # of an answer, at most


@pytest.fixture(scope="module")
def tiny(policy):
    """A generator with a tiny random model, for which no token is much likelier than others."""
    return TransformersGenerator(tiny_llama(policy.tokenizer).eval(), policy.tokenizer)


@pytest.fixture(scope="module")
def prompts():
    """Nine prompts that begin alike, of different lengths; three of them are one group's."""
    draw = random.Random(0)
    shared = [draw.randrange(3, 1000) for _ in range(60)]
    different = [
        shared + [draw.randrange(3, 1000) for _ in range(length)]
        for length in (1, 40, 7, 22, 3, 90, 15)
    ]
    return [different[0], different[0], *different]


def assert_same(some, others):
    assert [answer.ids for answer in some] == [answer.ids for answer in others]
    for one, other in zip(some, others, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("wait", [0, 1, 3])
def test_greedy_answers_are_those_of_one_call(tiny, prompts, wait):
    """Over two turns: the second one continues what the first has left in the slots."""
    stream = tiny.stream(Sampling(TOKENS, 0.0))
    first = tiny.generate(prompts, TOKENS, 0.0)
    assert_same(ask(stream, prompts, wait), first)
    longer = [
        prompt + answer.ids + [5, 6, 7 + i]
        for i, (prompt, answer) in enumerate(zip(prompts, first, strict=True))
    ]
    assert_same(ask(stream, longer, wait), tiny.generate(longer, TOKENS, 0.0))


def test_a_seed_samples_the_same_in_any_company(tiny, prompts):
    seeds = [request_seed(0, episode, turn=0) for episode in range(len(prompts))]
    together = ask(tiny.stream(Sampling(TOKENS)), prompts, seeds=seeds)
    backwards = ask(tiny.stream(Sampling(TOKENS)), prompts[::-1], 2, seeds[::-1])
    assert_same(together, backwards[::-1])
    for prompt, seed, answer in zip(prompts, seeds, together, strict=True):
        assert_same(ask(tiny.stream(Sampling(TOKENS)), [prompt], seeds=[seed]), [answer])


def test_a_group_is_sampled_with_different_seeds(tiny, prompts):
    group = [prompts[0]] * 8
    seeds = [request_seed(0, episode, turn=0) for episode in range(8)]
    sampled = ask(tiny.stream(Sampling(TOKENS)), group, seeds=seeds)
    assert len({tuple(answer.ids) for answer in sampled}) == 8


def test_the_seed_of_an_answer_is_its_own():
    seeds = {
        request_seed(rollout, episode, turn)
        for rollout in range(3)
        for episode in range(20)
        for turn in range(5)
    }
    assert len(seeds) == 3 * 20 * 5
    torch.manual_seed(1)
    first, second = draw_seed(), draw_seed()
    assert first != second
    torch.manual_seed(1)
    assert draw_seed() == first


def test_one_number_picks_the_token_whose_share_it_falls_into():
    logprobs = torch.tensor([[0.2, 0.0, 0.5, 0.3]]).log().repeat(5, 1)
    numbers = torch.tensor([0.0, 0.19, 0.21, 0.69, 0.999], dtype=torch.double)
    assert pick(logprobs, numbers).tolist() == [0, 0, 2, 2, 3]


def test_tokens_are_sampled_as_often_as_they_are_likely(tiny, prompts):
    """The first tokens of 1,000 answers to one prompt, all of them one of the three likeliest."""
    n, batch, kept = 1_000, 100, 3
    stream = tiny.stream(Sampling(1, 1.0, kept))
    sampled = []
    for first in range(0, n, batch):
        sampled += ask(stream, [prompts[0]] * batch, seeds=range(first, first + batch))
    tokens = [answer.ids[0] for answer in sampled]
    shares = {answer.ids[0]: torch.tensor(answer.logprobs[0]).exp().item() for answer in sampled}
    assert len(shares) == kept
    assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
    for token, share in shares.items():
        deviation = (share * (1 - share) / n) ** 0.5
        assert abs(tokens.count(token) / n - share) < 4 * deviation


def test_an_answer_ends_with_the_end_of_the_turn(tiny, prompts):
    """A token of a greedy answer is declared the end: the answer is cut behind it."""
    whole = tiny.generate(prompts[:1], TOKENS, 0.0)[0]
    end = whole.ids[3]
    short = TransformersGenerator(tiny.model, tiny_tokenizer(end))
    [answer] = ask(short.stream(Sampling(TOKENS, 0.0)), prompts[:1])
    assert answer.ids == whole.ids[: whole.ids.index(end) + 1]
    assert len(answer.logprobs) == len(answer.ids)


def tiny_tokenizer(end):
    """All that a generator asks of a tokenizer."""

    class Tokenizer:
        eos_token_id = end
        pad_token_id = 0

    return Tokenizer()


def test_what_a_stream_computes_with_the_model_leaves_it_as_it_was(tiny, prompts):
    model = tiny.model
    before = model(torch.tensor([prompts[0]])).logits
    model.train()
    ask(tiny.stream(Sampling(TOKENS)), prompts)
    assert model.training
    model.eval()
    assert model.config._attn_implementation == "sdpa"
    assert torch.equal(model(torch.tensor([prompts[0]])).logits, before)
    assert before.requires_grad


def test_adapters_answer_in_a_stream_too(policy, prompts):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    lora = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = get_peft_model(tiny_llama(policy.tokenizer), lora).eval()
    adapted = TransformersGenerator(model, policy.tokenizer)
    expected = adapted.generate(prompts, TOKENS, 0.0)
    assert_same(ask(adapted.stream(Sampling(TOKENS, 0.0)), prompts), expected)
    with model.disable_adapter():
        plain = adapted.generate(prompts, TOKENS, 0.0)
    assert [answer.ids for answer in plain] != [answer.ids for answer in expected]


def test_a_closed_stream_has_forgotten_what_was_asked(tiny, prompts):
    stream = tiny.stream(Sampling(TOKENS, 0.0))
    for lane, prompt in enumerate(prompts):
        stream.add(Request(prompt, lane, lane))
    stream.step()
    stream.close()
    assert stream.step() == []
    assert_same(ask(stream, prompts[:2]), tiny.generate(prompts[:2], TOKENS, 0.0))


def test_a_policy_with_other_layers_than_attention_has_no_stream(policy):
    config = Lfm2Config(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=len(policy.tokenizer),
        layer_types=["conv", "full_attention"],
    )
    model = AutoModelForCausalLM.from_config(config).eval()
    assert TransformersGenerator(model, policy.tokenizer).stream(Sampling(TOKENS)) is None
