"""The browser as tools of the policy: TRL's own loop on a real browser, in text and with pictures."""

from dataclasses import replace

import pytest
from trl.chat_template_utils import qwen3_chat_template

from benchmarks.doors import script_tools
from helpers.episodes.tasks import rollout_config
from helpers.episodes.tools import OBSERVATIONS, browser_tools, content, encode, picture
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.policy.loading import PolicyError
from helpers.policy.vision import small_policy_with_eyes
from helpers.settings.profiles import ProfileError, get_profile
from scripts import train_tools


@pytest.fixture(scope="module")
def eyes():
    return small_policy_with_eyes()


@pytest.fixture
def small(policy):
    """A two-layer Llama with random weights, and a tokenizer whose template takes tools."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(policy.path)
    tokenizer.chat_template = qwen3_chat_template
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    ), tokenizer


def profile_of(task, **changes):
    return replace(
        get_profile(),
        task=task,
        generator="transformers",
        groups=1,
        group_size=4,
        clients=4,
        updates=1,
        **changes,
    )


@pytest.fixture
def scripted(monkeypatch):
    """A script writes the tool calls in the policy's place; returns how many answers each round of generation had."""
    rounds = []

    def answer(trainer, prompt_ids, *_, **__):
        rounds.append(len(prompt_ids))
        return script_tools(trainer, prompt_ids)

    monkeypatch.setattr(BrowserGRPOTrainer, "_generate_single_turn", answer)
    return rounds


def test_an_update_with_tools_in_text(small, browsers, scripted, tmp_path):
    trainer = build_tools_trainer(
        profile_of("enter-text"), *small, browsers, tmp_path, show=lambda text: None
    )
    stepped = []
    for (
        client
    ) in browsers:  # every reset and every step reaches the browser once, though it is begun ahead
        call = client._call
        client._call = lambda *a, call=call, **n: (stepped.append(a[0]), call(*a, **n))[1]
    try:
        trainer.train()
    finally:
        for client in browsers:
            del client._call
    episodes = trainer.recorder.episodes
    assert [e.reward for e in episodes] == [1.0] * 4 and len({e.seed for e in episodes}) == 1
    assert [[t.parsed.name for t in e.turns] for e in episodes] == [["fill", "click"]] * 4
    assert sorted(stepped) == ["reset"] * 4 + ["step"] * 8
    assert scripted == [
        4,
        4,
        4,
    ]  # fill, click, and the round whose answers are dropped because all is over
    assert trainer.recorder.rows[0]["reward"] == 1.0


def test_the_policys_tokens_and_no_others_are_trained_on(small, browsers, scripted, tmp_path):
    trainer = build_tools_trainer(
        profile_of("enter-text"), *small, browsers, tmp_path, show=lambda text: None
    )
    batch = {}
    plain = BrowserGRPOTrainer._compute_loss
    trainer._compute_loss = lambda model, inputs: (
        batch.update(inputs),
        plain(trainer, model, inputs),
    )[1]
    trainer.train()
    tokenizer = small[1]
    for ids, kept, mask in zip(
        batch["completion_ids"], batch["completion_mask"], batch["tool_mask"], strict=True
    ):
        mine = tokenizer.decode(ids[(kept * mask).bool()])
        assert (
            mine.count("<tool_call>") == 2 and "Page:" not in mine and "tool_response" not in mine
        )
        assert "tool_response" in tokenizer.decode(ids[kept.bool()])


def test_an_update_with_pictures(eyes, browsers, scripted, tmp_path):
    trainer = build_tools_trainer(
        profile_of("click-button-sequence"),
        *eyes,
        browsers,
        tmp_path,
        "both",
        show=lambda text: None,
    )
    batch = {}
    plain = BrowserGRPOTrainer._compute_loss
    trainer._compute_loss = lambda model, inputs: (
        batch.update(inputs),
        plain(trainer, model, inputs),
    )[1]
    trainer.train()
    assert [len(e.turns) for e in trainer.recorder.episodes] == [2] * 4
    # Two pictures a rollout: that of the reset (the first turn is not blind) and that of the first step.
    assert len(batch["image_grid_thw"]) == 8


def test_another_picture_gives_other_logprobs(eyes, browsers):
    import torch

    model, processor = eyes
    config = rollout_config("click-button")
    seen = browsers[0].reset("click-button", 7, screenshot=True)
    blocks = content(seen, config, "screenshot", first=True)
    other = [{**blocks[0], "image": blocks[0]["image"].rotate(180)}, *blocks[1:]]

    def logprobs(content):
        batch = encode(processor, content)
        with torch.no_grad():
            return batch["input_ids"], model(**batch).logits[0, -1].log_softmax(-1)

    (ids, first), (same_ids, second), (_, again) = (
        logprobs(blocks),
        logprobs(other),
        logprobs(blocks),
    )
    assert torch.equal(ids, same_ids) and torch.equal(first, again)
    assert (first - second).abs().max() > 1e-3


def test_what_each_observation_shows(browsers):
    seen = browsers[0].reset("click-button", 7, screenshot=True)
    config, shown = rollout_config("click-button"), {}
    for name in OBSERVATIONS:
        shown[name] = content(seen, config, name, first=True)
    button = next(e for e in seen.elements if e.role == "button")
    assert button.name in shown["tree"] and seen.goal in shown["tree"]
    for name in ("screenshot", "both", "marks"):
        image, text = shown[name]
        assert image["image"].size == (160, 210) and seen.goal in text["text"]
        assert (f'"{button.name}" button {button.bid}' in text["text"]) == (name == "both")
    assert (
        button.bid in shown["screenshot"][1]["text"]
        and button.bid not in shown["marks"][1]["text"].splitlines()
    )
    assert picture(seen).tobytes() != picture(seen, marks=True).tobytes()


def test_a_call_that_the_page_cannot_take_costs_a_turn_and_is_told(browsers):
    environment = browser_tools(browsers[:1], rollout_config("enter-text"))()
    environment.reset(spec="enter-text#3")
    assert "no element '999'" in environment.click(bid="999")
    assert environment.episode.kinds == ["unknown_bid"] and environment.get_reward() == 0.0
    with pytest.raises(TypeError):
        environment.click()
    environment.click(bid="999"), environment.click(bid="999")
    assert (
        environment.episode.ended == "turn_limit"
        and environment.click(bid="999") == train_tools.OVER
    )


def test_a_schema_per_action(browsers):
    from transformers.utils import get_json_schema

    environment = browser_tools(browsers[:1], rollout_config("enter-text"))()
    schema = get_json_schema(environment.fill)["function"]
    assert schema["name"] == "fill" and set(schema["parameters"]["properties"]) == {"bid", "value"}
    assert schema["parameters"]["required"] == ["bid", "value"]


def test_bad_input_gets_one_sentence(policy, small, browsers, tmp_path):
    profile = profile_of("click-button")
    with pytest.raises(PolicyError, match="takes no tools"):
        build_tools_trainer(profile, policy.model, policy.tokenizer, browsers, tmp_path)
    with pytest.raises(PolicyError, match="no processor for pictures"):
        build_tools_trainer(profile, *small, browsers, tmp_path, "screenshot")
    with pytest.raises(ProfileError, match="observation 'smell' is unknown"):
        browser_tools(browsers, rollout_config("click-button"), "smell")
    with pytest.raises(ProfileError, match="browser sessions"):
        factory = browser_tools(browsers[:1], rollout_config("click-button"))
        factory(), factory()
