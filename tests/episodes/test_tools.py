"""The browser as tools of the policy: TRL's own loop on a real browser, in text and pictures."""

from dataclasses import replace

import pytest
import torch
from tiny_models import remember_batches, tiny_tool_caller
from transformers.utils import get_json_schema

from benchmarks.door_scripts import script_tools
from helpers.episodes.how_played import rollout_config
from helpers.episodes.running import OVER
from helpers.episodes.tools import OBSERVATIONS, browser_tools, content, encode, picture
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.learning.trainer import BrowserGRPOTrainer
from helpers.policy.loading import PolicyError
from helpers.policy.vision import small_policy_with_eyes
from helpers.settings.profiles import ProfileError, get_profile


@pytest.fixture(scope="module")
def eyes():
    return small_policy_with_eyes()


@pytest.fixture
def small(policy):
    """A two-layer Llama with random weights, and a tokenizer whose template takes tools."""
    return tiny_tool_caller(policy)


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
    """A script writes the tool calls in the policy's place; returns how many answers each round of
    generation had."""
    rounds = []

    def answer(trainer, prompt_ids, *_, **__):
        rounds.append(len(prompt_ids))
        return script_tools(trainer, prompt_ids)

    monkeypatch.setattr(BrowserGRPOTrainer, "_generate_single_turn", answer)
    return rounds


@pytest.fixture
def calls(browsers, monkeypatch):
    """The names of all calls that reach the browsers, in the order in which they were made."""
    made = []

    def watch(client, name):
        call = getattr(client, name)

        def counted(*arguments, **options):
            made.append(name)
            return call(*arguments, **options)

        monkeypatch.setattr(client, name, counted)

    for client in browsers:
        watch(client, "reset")
        watch(client, "step")
    return made


def test_an_update_with_tools_in_text(small, browsers, scripted, calls, tmp_path):
    trainer = build_tools_trainer(
        profile_of("enter-text"), *small, browsers, tmp_path, progress=False
    )
    trainer.train()
    episodes = trainer.recorder.episodes
    assert [e.reward for e in episodes] == [1.0] * 4, [e.turns for e in episodes]
    assert len({e.seed for e in episodes}) == 1
    actions = [[turn.parsed.name for turn in e.turns] for e in episodes]
    assert actions == [["fill", "click"]] * 4
    # Every reset and every step reaches the browser once, though it is started ahead.
    assert sorted(calls) == ["reset"] * 4 + ["step"] * 8
    # Fill, click, and the round whose answers are dropped because all is over.
    assert scripted == [4, 4, 4]
    assert trainer.recorder.rows[0]["reward"] == 1.0


def test_the_policys_tokens_and_no_others_are_trained_on(small, browsers, scripted, tmp_path):
    trainer = build_tools_trainer(
        profile_of("enter-text"), *small, browsers, tmp_path, progress=False
    )
    batches = remember_batches(trainer)
    trainer.train()
    [batch] = batches
    _, tokenizer = small
    rows = zip(batch["completion_ids"], batch["completion_mask"], batch["tool_mask"], strict=True)
    for ids, kept, mask in rows:
        mine = tokenizer.decode(ids[(kept * mask).bool()])
        assert mine.count("<tool_call>") == 2
        assert "Page:" not in mine
        assert "tool_response" not in mine
        assert "tool_response" in tokenizer.decode(ids[kept.bool()])


def test_an_update_with_pictures(eyes, browsers, scripted, tmp_path):
    profile = profile_of("click-button-sequence")
    trainer = build_tools_trainer(profile, *eyes, browsers, tmp_path, "both", progress=False)
    batches = remember_batches(trainer)
    trainer.train()
    [batch] = batches
    assert [len(e.turns) for e in trainer.recorder.episodes] == [2] * 4
    # Two pictures a rollout: that of the reset (the first turn is not blind) and that of the first
    # step.
    assert len(batch["image_grid_thw"]) == 8


def test_another_picture_gives_other_logprobs(eyes, browsers):
    model, processor = eyes
    config = rollout_config("click-button")
    seen = browsers[0].reset("click-button", 7, screenshot=True)
    blocks = content(seen, config, "screenshot", first=True)
    other = [{**blocks[0], "image": blocks[0]["image"].rotate(180)}, *blocks[1:]]

    def logprobs(content):
        batch = encode(processor, content)
        with torch.no_grad():
            return batch["input_ids"], model(**batch).logits[0, -1].log_softmax(-1)

    ids, first = logprobs(blocks)
    same_ids, second = logprobs(other)
    _, again = logprobs(blocks)
    assert torch.equal(ids, same_ids)
    assert torch.equal(first, again)
    assert (first - second).abs().max() > 1e-3


def test_what_each_observation_shows(browsers):
    seen = browsers[0].reset("click-button", 7, screenshot=True)
    config = rollout_config("click-button")
    shown = {name: content(seen, config, name, first=True) for name in OBSERVATIONS}
    button = next(e for e in seen.elements if e.role == "button")
    assert button.name in shown["tree"]
    assert seen.goal in shown["tree"]
    for name in ("screenshot", "both", "marks"):
        image, text = shown[name]
        assert image["image"].size == (160, 210)
        assert seen.goal in text["text"]
        assert (f'"{button.name}" button {button.bid}' in text["text"]) == (name == "both")
    assert button.bid in shown["screenshot"][1]["text"]
    assert button.bid not in shown["marks"][1]["text"].splitlines()
    assert picture(seen).tobytes() != picture(seen, marks=True).tobytes()


def test_a_call_that_the_page_cannot_take_costs_a_turn_and_is_told(browsers):
    environment = browser_tools(browsers[:1], rollout_config("enter-text"))()
    environment.reset(spec="enter-text#3")
    assert "no element '999'" in environment.click(bid="999")
    assert environment.session.episode.kinds == ["unknown_bid"]
    assert environment.get_reward() == 0.0
    with pytest.raises(TypeError):
        environment.click()
    environment.click(bid="999")
    environment.click(bid="999")
    assert environment.session.episode.ended == "turn_limit"
    assert environment.click(bid="999") == OVER


def test_a_schema_per_action(browsers):
    environment = browser_tools(browsers[:1], rollout_config("enter-text"))()
    schema = get_json_schema(environment.fill)["function"]
    assert schema["name"] == "fill"
    assert set(schema["parameters"]["properties"]) == {"bid", "value"}
    assert schema["parameters"]["required"] == ["bid", "value"]


def test_bad_input_gets_one_sentence(policy, small, browsers, tmp_path):
    profile = profile_of("click-button")
    with pytest.raises(PolicyError, match="takes no tools"):
        build_tools_trainer(profile, policy.model, policy.tokenizer, browsers, tmp_path)
    with pytest.raises(PolicyError, match="no processor for pictures"):
        build_tools_trainer(profile, *small, browsers, tmp_path, "screenshot")
    with pytest.raises(ProfileError, match="observation 'smell' is unknown"):
        browser_tools(browsers, rollout_config("click-button"), "smell")
    factory = browser_tools(browsers[:1], rollout_config("click-button"))
    factory()
    with pytest.raises(ProfileError, match="browser sessions"):
        factory()
