"""A policy with eyes in TRL's own loop: what it reads and answers there, what pictures that are
shared leave as it was, and an update with a real browser."""

import json

import numpy as np
import pytest
import torch
from tiny_models import remember_batches
from trl.chat_template_utils import parse_response, supports_tool_calling

from helpers.browser.sheets import draw_pages
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.running import RunningEpisode
from helpers.episodes.seeing import encode_pages, seeing_config
from helpers.learning.eyes.encoder import pixel_values
from helpers.learning.eyes.played import show_played
from helpers.learning.eyes.practice import beside, practice_profile, practised_policy
from helpers.learning.tools_trainer import build_tools_trainer
from helpers.policy.eyes import policy_with_eyes
from helpers.policy.generators import TransformersGenerator
from helpers.policy.pictures import ReadsPictures
from helpers.settings.paths import ROOT
from helpers.settings.profiles import get_profile
from scripts.practise_seeing import main

ANSWERS = {
    "mouse_click(120, 150)": [("mouse_click", {"x": "120", "y": "150"})],
    "mouse_click(120, 150": [("mouse_click", {"x": "120", "y": "150"})],
    "mouse_click(120)": [],
    "I see nothing.": [],
}

RECORDED = ROOT / "recordings/eyes-practice"


@pytest.fixture(scope="module")
def seer():
    return policy_with_eyes()


@pytest.fixture(scope="module")
def asked(seer):
    """Ids and pixels of four prompts: two pages, two goals on each."""
    _, processor = seer
    first, second = (page.pixels[50:] for page in draw_pages("click-color", [1, 2]))
    pixels = pixel_values(np.stack([first, first, second, second]))
    chats = [
        [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": goal}]}]
        for goal in ("red", "blue", "red", "blue")
    ]
    text = processor.apply_chat_template(chats, tokenize=False, add_generation_prompt=True)
    images = [[picture] for picture in (first, first, second, second)]
    ids = processor(images=images, text=text, padding=True, return_tensors="pt")["input_ids"]
    return ids, pixels


# ---- TRL's loop ----


def test_trl_takes_the_policy_for_one_that_calls_tools(seer):
    assert supports_tool_calling(seer[1])


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_click_is_a_call(seer, answer):
    tokenizer = seer[1].tokenizer
    prefix = tokenizer("<|im_start|>assistant\n")["input_ids"]
    ids = tokenizer(f"{answer}<|im_end|>")["input_ids"]
    calls = parse_response(tokenizer, ids, prefix=prefix).get("tool_calls") or []
    called = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
    assert called == ANSWERS[answer]


# ---- pictures that are shared ----


def test_squares_are_numbered_by_what_is_seen(seer, asked):
    """Equal pages have equal numbers, and other pages others; words keep theirs."""
    model, _ = seer
    ids, pixels = asked
    numbered = ReadsPictures(model, pixels).numbered(ids)
    square = ids == model.config.image_token_id
    assert (numbered[~square] == ids[~square]).all()
    seen = [set(row[mask].tolist()) for row, mask in zip(numbered, square, strict=True)]
    assert all(len(numbers) == 64 for numbers in seen)
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert not seen[0] & seen[2]


def test_logits_and_gradients_are_the_models_own(seer, asked):
    """Of a model that reads the pictures itself; the encoder's gradient included."""
    model, _ = seer
    ids, pixels = asked
    weight = model.model.vision_tower.embeddings.patch_embedding.weight

    def scored(logits):
        chosen = logits[:, -1].log_softmax(-1)[:, :100].sum()
        return logits[:, -1].detach().numpy(), torch.autograd.grad(chosen, weight)[0].numpy()

    plain, plain_gradient = scored(model(input_ids=ids, pixel_values=pixels).logits)
    seeing = ReadsPictures(model, pixels)
    shared, gradient = scored(seeing(seeing.numbered(ids)).logits)
    assert shared == pytest.approx(plain, abs=1e-3)
    assert gradient == pytest.approx(plain_gradient, rel=1e-2, abs=1e-4)


def test_a_generator_that_shares_prompts_samples_from_what_is_seen(seer, asked):
    """Two pages with the same words are two prompts; its logprobs are those of the model."""
    model, processor = seer
    ids, pixels = asked
    with torch.no_grad():
        seeing = ReadsPictures(model, pixels)
        rows = [seeing.numbered(row, n).tolist() for n, row in enumerate(ids)]
        answers = TransformersGenerator(seeing, processor.tokenizer).generate(rows, 6, 1.0)
        for n, answer in enumerate(answers):
            whole = torch.tensor([ids[n].tolist() + answer.ids])
            logits = model(input_ids=whole, pixel_values=pixels[n : n + 1]).logits[0]
            places = range(len(ids[n]) - 1, whole.shape[1] - 1)
            again = logits.log_softmax(-1)[places, answer.ids].tolist()
            assert again == pytest.approx(answer.logprobs, abs=1e-3)


# ---- an update ----


@pytest.fixture(scope="module")
def trainer(browsers, tmp_path_factory):
    """Of one update of two groups of two, on tasks that differ."""
    profile = practice_profile(
        get_profile(), groups=2, group_size=2, updates=1, clients=4, lora_rank=2
    )
    model, processor = policy_with_eyes()
    folder = tmp_path_factory.mktemp("practice")
    return build_tools_trainer(
        profile, model, processor, browsers, folder, "picture", lora=True, progress=False
    )


def test_an_update_reads_what_was_taught_and_learns_from_its_clicks(trainer, browsers, seer):
    batches = remember_batches(trainer)
    trainer.train()
    [batch] = batches
    episodes = trainer.recorder.episodes
    assert [episode.task for episode in episodes] == ["identify-shape"] * 2 + ["count-sides"] * 2
    # What is read is, token by token, what an episode of `SeeingPlayer` reads.
    running = RunningEpisode.of(
        EpisodeSpec(episodes[0].task, episodes[0].seed), browsers[0], seeing_config()
    )
    running.reset()
    read = encode_pages(seer[1], [running])
    prompts = [
        ids[mask.bool()].tolist()
        for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)
    ]
    assert read["input_ids"][0].tolist() in prompts
    assert any((read["pixel_values"][0] == pixels).all() for pixels in batch["pixel_values"])
    # An answer is the policy's alone: nothing of a tool's result is in it.
    assert batch["completion_ids"].shape[1] <= 16
    assert batch["tool_mask"][batch["completion_mask"].bool()].all()
    assert trainer.recorder.rows[0]["logprob_gap/max"] < 1e-3


def test_practice_leaves_the_eyes_as_they_are(trainer):
    learning = [name for name, weight in trainer.model.named_parameters() if weight.requires_grad]
    assert learning
    assert all(".language_model.layers." in name for name in learning)


def test_the_loss_with_shared_pictures_is_trls_own(trainer, asked):
    """Padded rows, each with its picture, against the packed sequence."""
    ids, pixels = asked
    answers = torch.tensor([[30, 31, 32], [33, 34, 35], [30, 36, 37], [38, 39, 40]])
    whole = torch.cat([ids, answers], 1)
    mask = torch.ones_like(whole)
    given = {"pixel_values": pixels, "num_images": [1] * 4}
    arguments = (trainer.model, whole, mask, 3)
    with torch.no_grad():
        shared, *_ = trainer._get_per_token_logps_and_entropies(*arguments, **given)
        trainer.share_prefixes = False
        padded, *_ = trainer._get_per_token_logps_and_entropies(*arguments, **given)
    assert shared.numpy() == pytest.approx(padded.numpy(), abs=1e-3)


def test_what_practice_adds_is_read_back(trainer, seer, asked, tmp_path):
    ids, pixels = asked
    with torch.no_grad():
        for name, weight in trainer.model.named_parameters():
            if "lora_B" in name:
                weight.add_(0.01 * torch.randn_like(weight))
    trainer.save_model(str(tmp_path / "adapter"))
    again, _ = practised_policy("recordings/eyes", tmp_path / "adapter")
    with torch.no_grad():
        mine = trainer.model(input_ids=ids, pixel_values=pixels).logits[:, -1]
        read = again(input_ids=ids, pixel_values=pixels).logits[:, -1]
        start = seer[0](input_ids=ids, pixel_values=pixels).logits[:, -1]
    assert read.numpy() == pytest.approx(mine.numpy(), abs=1e-2)
    assert (read - start).abs().max() > 0.1


def test_a_click_outside_the_page_ends_the_episode_as_for_text(browsers):
    running = RunningEpisode.of(EpisodeSpec("click-color", 1), browsers[0], seeing_config())
    running.reset()
    running.act("mouse_click(9000, 10)")
    assert running.over
    assert running.episode.reward == 0.0


def test_a_setting_out_of_its_range_is_refused_before_anything_is_begun(tmp_path, capsys):
    assert run(main, ["--output", str(tmp_path / "run"), "--group-size", "1"]) == 2
    assert "COURSE_GROUP_SIZE=1 is too small: use 2 or more" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# ---- what is recorded ----


@pytest.fixture(scope="module")
def recorded():
    """What came of each run, by its name in the tables."""
    folders = sorted(RECORDED.glob("seed*"))
    return {
        f"seed {seed}": json.loads((folder / "result.json").read_text())
        for seed, folder in enumerate(folders)
    }


def test_the_recorded_runs_began_alike_and_differ_in_their_seed(recorded):
    first, *others = recorded.values()
    assert [result["profile"]["seed"] for result in recorded.values()] == [0, 1, 2]
    for other in others:
        assert other["before"] == first["before"]
        assert {**other["profile"], "seed": 0} == first["profile"]


def test_practice_adds_ten_points_on_two_tasks_in_each_recorded_run(recorded):
    for result in recorded.values():
        for task, played in result["before"].items():
            before, after = played["seeing"], result["after"][task]["seeing"]
            assert before["pages"] == after["pages"]
            gain = after["solved"] / after["n"] - before["solved"] / before["n"]
            assert gain >= 0.1


@pytest.mark.parametrize("page", ["docs/training.md", "docs/zh/training.md"])
def test_the_table_and_the_settings_in_the_text_are_those_of_the_recordings(recorded, page):
    text = (ROOT / page).read_text()
    first = recorded["seed 0"]
    after = {name: result["after"] for name, result in recorded.items()}
    assert show_played(beside(first["before"], after)) in text
    [about] = [part for part in text.split("\n\n") if "`recordings/eyes-practice`" in part]
    profile = first["profile"]
    steps = json.loads((RECORDED / "eyes.json").read_text())["course"]["third_steps"]
    minutes = round(first["seconds"] / 60)
    for number in (steps, profile["updates"], profile["groups"], profile["group_size"], minutes):
        assert f" {number} " in about.replace("\n", " ")
