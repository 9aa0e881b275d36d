"""Eyes: what is learned from is what the environment shows and pays, the lessons go on where they
were stopped, and what a policy with eyes writes depends on what it sees."""

import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.browser.sheets import draw_pages
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play
from helpers.episodes.running import RunningEpisode
from helpers.episodes.seeing import SeeingPlayer, encode_pages, seeing_config
from helpers.episodes.tasks import TEST_SEEDS
from helpers.episodes.tools import picture
from helpers.learning.eyes import answers, encoder
from helpers.learning.eyes.gaze import HEADS, LAYER, Gaze
from helpers.learning.eyes.learn import Course, Lesson, first_lesson, show_squares
from helpers.learning.eyes.lessons import TASKS, own_question, questions
from helpers.learning.eyes.pages import kept_pages
from helpers.learning.eyes.played import click_anywhere, show_played
from helpers.policy.eyes import (
    KEPT,
    TOKENS,
    keep_eyes,
    kept_eyes,
    looked_at,
    policy_with_eyes,
    policy_with_new_eyes,
)
from helpers.policy.loading import PolicyError
from helpers.settings.errors import ProfileError
from helpers.settings.paths import ROOT
from helpers.settings.run_folder import hold_to_settings
from scripts.learn_to_see import main

SEEDS = range(1_000, 1_006)
LEARNED_ALONG = ROOT / "recordings/eyes-learned-along"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The same pages, drawn on sheets, by task."""
    folder = tmp_path_factory.mktemp("pages")
    return {task: kept_pages(folder, task, SEEDS) for task in TASKS}


@pytest.fixture(scope="module")
def seer():
    return policy_with_new_eyes()


@pytest.fixture(scope="module")
def recorded():
    """The policy with the eyes that are recorded."""
    return policy_with_eyes()


@pytest.fixture(scope="module")
def env(shared_server):
    with shared_server.client() as client:
        yield client


# ---- what is learned from ----


@pytest.mark.parametrize("task", TASKS)
def test_a_page_of_a_sheet_is_the_page_of_an_episode(env, drawn, task):
    """Goal and pixels."""
    for n, seed in enumerate(SEEDS):
        seen = env.reset(task, seed, screenshot="small")
        assert drawn[task].goals[n] == seen.goal
        shown = np.array(looked_at(picture(seen)))
        assert (shown == drawn[task].pixels[n]).all(), (task, seed)


@pytest.mark.parametrize("task", TASKS)
def test_what_is_taught_is_paid(env, drawn, task):
    """The answer to what the page itself asks for."""
    for n, seed in enumerate(SEEDS):
        question = own_question(drawn[task], n)
        assert question is not None
        assert env.reset(task, seed).goal == question.goal
        assert env.step(question.action).reward == 1.0, (task, seed, question)


def test_each_square_of_a_coloured_box_is_named_so(drawn):
    labels = encoder.labels_of(drawn["click-color"], 0)
    things = drawn["click-color"].drawn[0]
    kinds = [encoder.GROUPS["kind"][number] for number in labels[:, 0]]
    colours = {encoder.GROUPS["colour"][number] for number in labels[:, 1]}
    assert labels.shape == (TOKENS, 6)
    assert set(kinds) == {"nothing", "box"}
    assert colours == {"nothing", *(thing.colour for thing in things)}


def test_what_is_taught_is_what_is_read_in_an_episode(env, drawn, seer):
    """Token by token."""
    _, processor = seer
    (question,) = questions(drawn["identify-shape"], 0, 1, random.Random(0))
    asked, _ = answers.question_ids(processor.tokenizer, question)
    running = RunningEpisode.of(EpisodeSpec("identify-shape", SEEDS[0]), env, seeing_config())
    running.reset()
    read = encode_pages(processor, [running])["input_ids"][0].tolist()
    assert answers.page_ids(processor.tokenizer) + asked == read


@pytest.fixture
def asked(drawn, seer):
    """Rows of two pages with two questions each, and these questions."""
    pages = drawn["click-shape"]
    both = [questions(pages, n, 2, random.Random(n)) for n in (0, 1)]
    assert [len(each) for each in both] == [2, 2]
    return answers.rows_of(seer[1].tokenizer, [pages.pixels[0], pages.pixels[1]], both), both


def test_questions_about_a_page_are_read_as_if_each_stood_alone(drawn, seer, asked):
    """The logits of their answers are those of a page with a single question."""
    model, processor = seer
    rows, both = asked
    with torch.no_grad():
        together = answers.answer(model, rows)
        first = 0
        for n, each in enumerate(both):
            for question in each:
                before, after = answers.question_ids(processor.tokenizer, question)
                ids = answers.page_ids(processor.tokenizer) + before + after
                pixels = rows.pixels[n : n + 1]
                logits = model(input_ids=torch.tensor([ids]), pixel_values=pixels).logits[0]
                here = slice(first, first + len(after))
                assert together.tokens[here].tolist() == after
                alone = logits[-len(after) - 1 : -1].log_softmax(-1)[range(len(after)), after]
                mine = together.logits[here].log_softmax(-1)[range(len(after)), after]
                assert mine.tolist() == pytest.approx(alone.tolist(), abs=0.3)  # one of them bf16
                first += len(after)


def test_the_gaze_is_the_models_own_attention(seer, asked):
    model, _ = seer
    rows, _ = asked
    places = rows.looks.nonzero()
    language = model.model.language_model
    embedded = model.get_input_embeddings()(rows.ids)
    squares = encoder.tokens_of(model, rows.pixels)
    image = (rows.ids == model.config.image_token_id)[..., None]
    kept = language.config._attn_implementation
    language.set_attn_implementation("eager")  # the one that returns its weights
    try:
        with torch.no_grad(), Gaze(model) as gaze:
            hidden = torch.zeros(rows.sees.shape).masked_fill(~rows.sees, -1e9)
            weights = language(
                inputs_embeds=embedded.masked_scatter(image, squares),
                attention_mask=hidden[:, None],
                position_ids=rows.positions,
                output_attentions=True,
            ).attentions[LAYER]
            seen = gaze.at(rows.ids, *places.T, rows.sees)
    finally:
        language.set_attn_implementation(kept)
    shares = weights[:, :HEADS].mean(1)[places[:, 0], places[:, 1]]
    start = int((rows.ids[0] == model.config.image_token_id).nonzero()[0])
    expected = shares[:, start : start + TOKENS]
    assert seen.exp().numpy() == pytest.approx(expected.numpy(), abs=1e-4)


def test_a_thought_is_what_the_lessons_teach(drawn, seer):
    """The same share of attention and the same words as in the pass that is learned from."""
    model, processor = seer
    (question,) = questions(drawn["identify-shape"], 0, 1, random.Random(0))
    pixels = drawn["identify-shape"].pixels[0]
    with torch.no_grad():
        rows = answers.rows_of(processor.tokenizer, [pixels], [[question]])
        answered = answers.answer(model, rows)
    thought = answers.thought_of(model, processor, Image.fromarray(pixels), question.goal)
    looks = answered.seen[: answers.LOOKING].exp().mean(0)
    assert thought.looks == pytest.approx(looks.tolist(), abs=0.02)  # one of them bf16
    noted = answered.noted[answers.LOOKING - 1]
    for word, logits, group in zip(thought[1:], noted, encoder.PLACES.values(), strict=True):
        assert logits[group.index(word)] > logits.max() - 1


def test_what_shall_be_looked_at_is_where_the_answer_is_clicked(drawn, seer, asked):
    """Or the figure that says which button it is."""
    rows, both = asked
    tokens = answers.LOOKING + len(seer[1].tokenizer(answers.BEGINNING)["input_ids"])
    looking = rows.look_at.split(tokens)
    for squares, question in zip(looking, (q for each in both for q in each), strict=True):
        assert (squares == squares[0]).all()
        x, y = question.answers[0].middle
        assert squares[0].view(8, 8)[int(y - 50) // 20, int(x) // 20]
    (figure,) = questions(drawn["identify-shape"], 0, 1, random.Random(0))
    assert figure.look_at != figure._replace(shown=None).look_at


# ---- the lessons ----


def test_a_lesson_that_was_stopped_goes_on_as_if_it_had_not_been(drawn, tmp_path):
    course = Course(first_steps=4, first_batch=4)

    def lesson(folder):
        folder.mkdir(exist_ok=True)
        model, processor = policy_with_new_eyes(seed=1)
        return first_lesson(model, processor, list(drawn.values()), folder, course).losses

    class StoppedError(Exception):
        pass

    def stopping(self, loss_of_step):
        if len(self.losses) == 2:
            self._save()
            raise StoppedError
        whole_step(self, loss_of_step)

    straight = lesson(tmp_path / "straight")
    whole_step = Lesson._step
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(Lesson, "_step", stopping)
        with pytest.raises(StoppedError):
            lesson(tmp_path / "stopped")
    went_on = lesson(tmp_path / "stopped")
    assert went_on == pytest.approx(straight, rel=1e-4)
    assert straight[-1] < straight[0]


@pytest.mark.parametrize("fast", [True, False])
def test_the_language_model_is_kept_in_bf16_only_where_that_is_fast(monkeypatch, fast):
    monkeypatch.setattr(answers, "has_fast_bf16", lambda device: fast)
    model, _ = policy_with_new_eyes()
    adapter = answers.prepare(model)
    assert model.lm_head.weight.dtype == (torch.bfloat16 if fast else torch.float32)
    assert {weight.dtype for weight in adapter} == {torch.float32}


def test_the_second_lesson_teaches_the_layers_that_look_and_what_is_below_them(asked):
    """Its loss is that of the whole model, which it leaves whole."""
    model, _ = policy_with_new_eyes()
    adapter = answers.prepare(model)
    rows, _ = asked
    layers = [*model.model.language_model.layers]
    loss = answers.look_loss(model, rows)
    loss.backward()
    assert [*model.model.language_model.layers] == layers
    learning = [name for name, weight in model.named_parameters() if weight.grad is not None]
    numbers = {int(re.search(r"layers\.(\d+)\.", name)[1]) for name in learning}
    assert numbers == set(range(LAYER + 1))
    assert 0 < len(learning) < len(adapter)
    with torch.no_grad():
        seen = answers.answer(model, rows).seen
    share = (seen.exp() * rows.look_at).sum(1)
    assert loss.item() == pytest.approx(-share.log().mean().item(), rel=1e-3)


def test_the_third_lesson_teaches_an_adapter_and_nothing_else(drawn, seer, tmp_path):
    """What is kept of it is read back as the same policy, but for rounding."""
    model, processor = policy_with_new_eyes()
    adapter = answers.prepare(model)
    draw = random.Random(0)
    pages = drawn["click-color"]
    asked = [questions(pages, n, 2, draw) for n in (0, 1)]
    rows = answers.rows_of(processor.tokenizer, [pages.pixels[0], pages.pixels[1]], asked)
    answers.answer_loss(model, rows).backward()
    learning = [name for name, weight in model.named_parameters() if weight.grad is not None]
    assert all(weight.grad is not None for weight in adapter)
    assert len(learning) == len(adapter)
    with torch.no_grad():
        for weight in adapter:
            weight.add_(0.01 * torch.randn_like(weight))
    keep_eyes(model, tmp_path, {})
    merged, _ = policy_with_eyes(tmp_path)
    going_on, _ = policy_with_eyes(tmp_path, adapted=False)
    answers.prepare(going_on, kept_eyes(tmp_path))
    before = answers.answer(model, rows).logits.log_softmax(-1)
    for again in merged, going_on:
        after = answers.answer(again, rows)
        gap = before - after.logits.log_softmax(-1)
        assert gap.gather(1, after.tokens[:, None]).abs().mean() < 0.1


@pytest.mark.parametrize("task", ["click-color", "identify-shape", "count-sides"])
def test_the_recorded_eyes_solve_what_they_cannot_blind(browsers, recorded, task):
    specs = [EpisodeSpec(task, seed) for seed in TEST_SEEDS[:10]]
    solved = {}
    for blind in (False, True):
        player = SeeingPlayer(*recorded, blind)
        solved[blind] = sum(e.solved for e in play(specs, browsers, player, seeing_config()))
    assert solved[False] >= 5
    assert solved[False] > 1.5 * solved[True]


@pytest.mark.parametrize("page", ["docs/training.md", "docs/zh/training.md"])
def test_the_tables_are_those_of_the_recording(page):
    recorded = json.loads((KEPT / "result.json").read_text())
    text = (ROOT / page).read_text()
    assert show_squares(recorded["squares"]) in text
    assert show_played(recorded["played"]) in text
    assert f"{sum(recorded['seconds'].values()) / 60:.0f} " in text


def test_each_wrong_click_of_eyes_that_learned_along_is_in_the_right_row(tmp_path):
    """As docs/training.md says of their recording; y comes second in an action."""
    recorded = json.loads((LEARNED_ALONG / "result.json").read_text())
    played = recorded["played"]["click-color"]["seeing"]
    answers_of = dict(zip(played["pages"], played["answers"], strict=True))
    rewards = dict(zip(played["pages"], played["rewards"], strict=True))
    wrong = [seed for seed in played["pages"] if rewards[seed] != 1]
    pages = kept_pages(tmp_path, "click-color", wrong)
    place = re.compile(r"mouse_click\((\d+), (\d+)\)")
    for n, seed in enumerate(wrong):
        x, y = place.fullmatch(answers_of[seed]).groups()
        right_x, right_y = place.fullmatch(own_question(pages, n).action).groups()
        assert y == right_y
        assert x != right_x
    assert len(wrong) == played["n"] - played["solved"]


@pytest.mark.parametrize("page", ["docs/training.md", "docs/zh/training.md"])
def test_what_is_said_of_eyes_that_learned_along_is_recorded(page):
    """The percentages of the paragraph that links to the recording, in their order."""
    recorded = json.loads((LEARNED_ALONG / "result.json").read_text())
    played = recorded["played"]["click-color"]["seeing"]
    taught, after = (
        squares["click-color"]["column"][:2]
        for squares in (recorded["began_with"]["squares"], recorded["squares_after"])
    )
    counts = [(played["solved"], played["n"]), taught, after]
    paragraphs = (ROOT / page).read_text().split("\n\n")
    [about] = [text for text in paragraphs if "eyes-learned-along" in text]
    said = [int(number) for number in re.findall(r"(\d+) %", about)]
    assert said == [round(100 * right / of) for right, of in counts]


def test_a_click_anywhere_is_below_the_goal_and_the_pages_own(env):
    seen = [env.reset("click-color", seed, screenshot="small") for seed in SEEDS]
    clicks = [click_anywhere(page, 0) for page in seen]
    assert clicks == [click_anywhere(page, 0) for page in seen]
    assert len(set(clicks)) == len(SEEDS)
    places = [tuple(map(int, re.findall(r"\d+", click))) for click in clicks]
    assert all(0 <= x < 240 and 75 <= y < 315 for x, y in places)


# ---- a policy with eyes plays ----


def test_what_it_writes_depends_on_what_it_sees(env, seer):
    """And what it reads is in the ledger with what it wrote."""
    model, processor = seer
    specs = [EpisodeSpec("click-color", seed) for seed in SEEDS[:2]]
    told = {}
    for blind in (False, True):
        player = SeeingPlayer(model, processor, blind)
        episodes = play(specs, [env], player, seeing_config())
        assert all(episode.ended for episode in episodes)
        assert all(episode.ledger.completion_length > 0 for episode in episodes)
        told[blind] = [episode.ledger.logprobs for episode in episodes]
    assert told[False] != told[True]


def test_sampled_logprobs_are_those_that_are_computed_again(env, seer):
    model, processor = seer
    running = RunningEpisode.of(EpisodeSpec("click-shape", 1), env, seeing_config(1.0))
    running.reset()
    player = SeeingPlayer(model, processor)
    player.answer([running])
    ledger = running.episode.ledger
    pixels = encode_pages(processor, [running])["pixel_values"]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ledger.ids]), pixel_values=pixels).logits[0]
    logprobs = logits[:-1].log_softmax(-1)
    again = [
        float(logprobs[place - 1, ledger.ids[place]])
        for place in range(ledger.prompt_length, len(ledger.ids))
    ]
    assert again == pytest.approx(ledger.logprobs[ledger.prompt_length :], abs=1e-3)


# ---- what is refused ----


def test_tasks_without_questions_are_refused():
    with pytest.raises(ProfileError, match="no questions for use-slider: choose among click-color"):
        Course(second=("click-color", "use-slider"))


def test_lessons_go_on_with_the_tasks_that_they_began_with(tmp_path, capsys):
    begun = {"task": "click-color", "pages": 2_000, "seed": 0, "begin": ""}
    hold_to_settings(tmp_path, begun)
    assert run(main, ["--output", str(tmp_path), "--task", "click-shape"]) == 2
    assert "a run with other settings (task)" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.pt"))


def test_what_cannot_be_looked_at_is_refused_in_one_sentence(env, seer, tmp_path):
    model, processor = seer
    with pytest.raises(PolicyError, match="has no processor for pictures"):
        SeeingPlayer(model, processor.tokenizer)
    with pytest.raises(ValueError, match="has 160 x 210 pixels, not 332 x 214"):
        looked_at(env.reset("click-color", 1, screenshot="small").image())
    with pytest.raises(PolicyError, match="There are no eyes in .*: make them with python -m"):
        policy_with_eyes(tmp_path)
    running = RunningEpisode.of(
        EpisodeSpec("click-color", 1), env, replace(seeing_config(), screenshots=False)
    )
    running.reset()
    with pytest.raises(ValueError, match="no screenshot"):
        SeeingPlayer(model, processor).answer([running])


def test_pages_come_in_the_order_of_their_seeds():
    seeds = [*SEEDS] * 8  # more than one sheet
    pages = list(draw_pages("click-color", seeds))
    assert [page.seed for page in pages] == seeds
    assert (pages[0].pixels == pages[len(SEEDS)].pixels).all()
    assert not (pages[0].pixels == pages[1].pixels).all()
