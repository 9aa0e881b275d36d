"""The trainer that computes where something is taught: its steps are those of TRL's."""

import random

import pytest
import torch
from datasets import Dataset
from tiny_models import tiny_llama
from trl import SFTTrainer

from helpers.learning import answers_only, warm_up
from helpers.learning.answers_only import NOT_TAUGHT, AnswersOnly
from helpers.learning.warm_up import demonstrate


@pytest.fixture(scope="module")
def examples(browsers, policy):
    """Episodes of one turn and of several, which begin with the same words."""
    shown = demonstrate(("click-button", "enter-text"), 4, browsers, policy.tokenizer)
    return [warm_up.to_example(episode) for episode in shown]


def longest(examples):
    return max(len(example["input_ids"]) for example in examples)


def train(kind, policy, examples, folder):
    """Two steps on a tiny model; returns its weights, its loss and how often each layer computed:
    the tokens of all forward passes, and the places of the output head."""
    model = tiny_llama(policy.tokenizer)
    tokens, places = [], []
    model.model.layers[0].register_forward_hook(
        lambda module, given, output: tokens.append(given[0].shape[:2].numel())
    )
    model.lm_head.register_forward_hook(
        lambda module, given, output: places.append(output.shape[:2].numel())
    )
    settings = warm_up._sft_config(
        folder, 2, 1e-2, 0, "float32", 2, 8, longest(examples), on_cpu=True
    )
    trainer = kind(
        model=model,
        processing_class=policy.tokenizer,
        args=settings,
        train_dataset=Dataset.from_list(examples),
    )
    trainer.train()
    return model.state_dict(), trainer.state.log_history[-1]["train_loss"], tokens, places


@pytest.mark.parametrize("most", [answers_only.MOST_TOKENS, 900, 1])
def test_the_steps_are_those_of_trls_trainer(policy, examples, tmp_path, monkeypatch, most):
    """Whether all episodes of an update go through the model together, a few, or each alone."""
    monkeypatch.setattr(answers_only, "MOST_TOKENS", most)
    theirs, their_loss, *_ = train(SFTTrainer, policy, examples, tmp_path)
    ours, our_loss, *_ = train(AnswersOnly, policy, examples, tmp_path)
    assert our_loss == pytest.approx(their_loss, abs=1e-5)
    assert all(torch.allclose(theirs[name], ours[name], atol=1e-5) for name in theirs)
    assert not torch.allclose(ours["lm_head.weight"], tiny_llama(policy.tokenizer).lm_head.weight)


def test_the_head_computes_a_part_and_what_episodes_share_is_computed_once(
    policy, examples, tmp_path
):
    _, _, their_tokens, _ = train(SFTTrainer, policy, examples, tmp_path)
    _, _, our_tokens, our_places = train(AnswersOnly, policy, examples, tmp_path)
    assert 0 < sum(our_places) < sum(their_tokens) / 2
    shared = answers_only.common_beginning(batch_of(examples))
    assert shared > 30  # the prompt says what can be done before it names the task
    assert sum(their_tokens) - sum(our_tokens) == 2 * 7 * shared  # two updates of eight episodes


def test_a_beginning_that_saves_little_is_computed_with_the_rest(policy, examples, tmp_path):
    """As where a part holds prompts that differ after the first words."""
    words = range(100, 100 + len(examples))
    differ = [
        {**example, "input_ids": [*example["input_ids"][:10], word, *example["input_ids"][11:]]}
        for word, example in zip(words, examples, strict=True)
    ]
    _, _, tokens, _ = train(AnswersOnly, policy, differ, tmp_path)
    assert tokens == [len(differ) * longest(differ)] * 2  # one pass for each of two updates


def batch_of(examples):
    """Episodes padded on the right, as TRL's collator has them."""
    length = longest(examples)

    def padded(name, filler):
        return torch.tensor(
            [each[name] + [filler] * (length - len(each[name])) for each in examples]
        )

    ones = [{"mask": [1] * len(each["input_ids"])} for each in examples]
    mask = torch.tensor([one["mask"] + [0] * (length - len(one["mask"])) for one in ones])
    return {
        "input_ids": padded("input_ids", 0),
        "labels": padded("labels", NOT_TAUGHT),
        "attention_mask": mask,
    }


def test_the_common_beginning_ends_before_what_is_taught():
    """Even of episodes that are the same from end to end."""
    same = {"input_ids": [5, 6, 7, 8], "labels": [NOT_TAUGHT, NOT_TAUGHT, 7, 8]}
    assert answers_only.common_beginning(batch_of([same, same])) == 1
    other = {"input_ids": [4, 6, 7, 8], "labels": [NOT_TAUGHT, NOT_TAUGHT, 7, 8]}
    assert answers_only.common_beginning(batch_of([same, other])) == 0


def test_parts_hold_each_row_once_without_what_no_row_needs():
    draw = random.Random(0)
    lengths = [draw.randrange(1, 40) for _ in range(50)]
    rows = [{"input_ids": [row + 1] * n, "labels": [row + 1] * n} for row, n in enumerate(lengths)]
    seen = []
    for part in answers_only.parts_of(batch_of(rows), 60):
        assert part["input_ids"].numel() <= 60
        assert part["attention_mask"].any(dim=0).all()
        seen += [
            ids[mask.bool()].tolist() for ids, mask in zip(*list(part.values())[::2], strict=True)
        ]
    assert sorted(seen) == sorted(row["input_ids"] for row in rows)


@pytest.mark.parametrize("gigabytes", [15, 80])
def test_on_a_gpu_as_many_tokens_go_together_as_its_memory_takes(monkeypatch, gigabytes):
    monkeypatch.setattr(answers_only, "this_machine", lambda: ("a GPU", gigabytes))
    assert answers_only.most_tokens(torch.device("cuda")) == gigabytes * answers_only.TOKENS_A_GB
    assert answers_only.most_tokens(torch.device("cpu")) == answers_only.MOST_TOKENS
