"""The update by hand: the plain loss is TRL's, in value and gradient, also where it clips."""

import platform
import re
from pathlib import Path

import nbformat
import pytest
import torch
from tiny_models import tiny_llama
from torch.nn.utils.rnn import pad_sequence

from helpers.browser.actions import parse_action
from helpers.course.by_hand import TRLGroup, give_memory_back, grpo_loss, largest_gap
from helpers.episodes.advantages import group_advantages
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT
from helpers.episodes.rollout_func import rollout_columns
from helpers.settings.paths import NOTEBOOKS
from helpers.settings.profiles import PROFILES

EPSILON = 0.2
PROMPT_IDS = list(range(20, 29))


def episode(reward, *answers):
    """An episode of one prompt, with answers of given lengths and three tokens between two."""
    turn = Turn([], "click('13')", parse_action("click('13')"), reward)
    played = Episode("click-test", 7, "Click the button.", [turn], reward=reward)
    played.ledger.append(PROMPT_IDS, PROMPT)
    for turn, length in enumerate(answers):
        if turn:
            played.ledger.append([51, 52, 53], ENVIRONMENT)
        ids = torch.randint(100, 2000, (length,)).tolist()
        played.ledger.append(ids, POLICY, [-1.0] * length)
    return played


def group(rewards):
    """Four episodes of different lengths; one of them has two turns."""
    torch.manual_seed(1)
    lengths = ((5,), (2, 4), (3,), (7,))
    return [episode(reward, *answers) for reward, answers in zip(rewards, lengths, strict=True)]


def padded(rows):
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def logprobs_of(model, columns):
    """The logprobs of all tokens after the prompt, as the notebook computes them."""
    prompt, answers = padded(columns["prompt_ids"]), padded(columns["completion_ids"])
    ids = torch.cat([prompt, answers], dim=1)
    logits = model(input_ids=ids, logits_to_keep=answers.shape[1] + 1).logits[:, :-1]
    return logits.log_softmax(-1).gather(-1, answers[..., None]).squeeze(-1)


def gradients_of(model, loss):
    model.zero_grad()
    loss.backward()
    return [weights.grad.clone() for weights in model.parameters()]


@pytest.mark.parametrize(
    ("rewards", "clips"),
    [
        ((1.0, 0.0, 0.0, 1.0), True),
        ((0.0, 1.0, None, 0.0), True),
        ((0.0, 0.0, 0.0, 0.0), False),
    ],
    ids=["two solved", "one lost", "all failed"],
)
def test_loss_and_gradient_are_those_of_trl_in_each_use_of_a_batch(
    policy, tmp_path, rewards, clips
):
    tokenizer = policy.tokenizer
    model = tiny_llama(tokenizer)
    episodes = group(rewards)
    columns = rollout_columns(episodes, tokenizer)
    mask = padded(columns["env_mask"])
    advantages = torch.tensor(group_advantages(rewards, 4))
    trl = TRLGroup(model, tokenizer, episodes, EPSILON, tmp_path)
    old = logprobs_of(model, columns).detach()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    outside, steepest = [], []
    for _ in range(3):
        logprobs = logprobs_of(model, columns)
        ratio = (logprobs - old).exp()
        outside.append(bool((((ratio - 1).abs() > EPSILON) & (mask == 1)).any()))
        ours = grpo_loss(logprobs, old, advantages, mask, EPSILON)
        theirs = trl.loss()
        assert abs(ours.item() - theirs.item()) < 1e-5
        gradient = gradients_of(model, ours)
        assert largest_gap(gradient, gradients_of(model, theirs)) < 1e-5
        steepest.append(max(one.abs().max().item() for one in gradient))
        optimizer.step()
    assert outside == [False, clips, clips]
    assert (min(steepest) > 1e-2) == clips  # in each use some tokens are not clipped


def test_the_gap_of_two_gradients():
    one = [torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])]
    assert largest_gap(one, one) == 0
    assert largest_gap([torch.tensor([3.0, 1.5]), torch.tensor([[1.0]])], one) == 3.0
    with pytest.raises(ValueError, match="shorter"):
        largest_gap(one, one[:1])


def resident_megabytes():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such call")
def test_what_was_freed_between_what_stays_is_given_back():
    small = [torch.zeros(30_000) for _ in range(2_000)]  # too small for pages of their own: 229 MB
    kept = small[-1]
    del small
    before = resident_megabytes()
    give_memory_back()
    assert before - resident_megabytes() > 100
    assert kept.sum() == 0


def page_cell():
    """The code of notebook 5 that looks for a page with something to learn from."""
    notebook = nbformat.read(next(NOTEBOOKS.glob("05_*.ipynb")), as_version=4)
    return next(cell.source for cell in notebook.cells if cell.id == "n05-h01")


@pytest.mark.parametrize(
    ("played", "pages"),
    [
        ([(0.0, 1.0, 0.0, 0.0)], 1),
        ([(0.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0)], 3),
        ([(0.0, None, 0.0, 0.0), (None, None, None, None), (None, 0.0, 1.0, 0.0)], 3),
        ([(0.0, 0.0, 0.0, 0.0)] * 30, 20),
    ],
    ids=["the first", "the third", "lost ones are no signal", "none"],
)
def test_a_page_whose_rollouts_end_alike_is_named_and_left(
    policy, monkeypatch, capsys, played, pages
):
    groups = iter(group(rewards) for rewards in played)
    monkeypatch.setattr("helpers.episodes.play.play_episodes", lambda *_: next(groups))
    monkeypatch.setattr("helpers.policy.loading.load_policy", lambda *_: policy)
    defined = {"profile": PROFILES["cpu"], "task": "click-button", "clients": []}
    exec(page_cell(), defined)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("page ")]
    silent = [line.endswith("no signal: next page") for line in said]
    assert len(said) == pages
    assert silent[:-1] == [True] * (pages - 1)
    assert silent[-1] == (pages == 20)
    assert defined["rewards"] == list(played[pages - 1])
