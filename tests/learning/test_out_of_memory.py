"""A GPU whose memory is full: one sentence, and the weights that the run had reached."""

from dataclasses import replace

import pytest
import torch
from one_update import on_a_cpu, tiny, trained_weights, trainer_of

from helpers.learning.checkpoints import last_checkpoint
from helpers.learning.out_of_memory import GPUMemoryError, say_when_vllm_has_no_room
from helpers.settings.profiles import PROFILES

FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def trainer_that_fails_in(update, policy, folder, monkeypatch, place="loss"):
    """A trainer of four updates whose memory is full in one of them, and its weights before."""
    profile = replace(on_a_cpu(PROFILES["t4"]), updates=4)
    trainer = trainer_of(profile, tiny(policy.tokenizer, "float32"), policy.tokenizer, folder)
    reached = []
    compute = trainer._compute_loss

    def compute_loss(model, inputs):
        if trainer.state.global_step == update - 1:
            reached.append(trained_weights(trainer))
            if place == "loss":
                raise FULL
        return compute(model, inputs)

    monkeypatch.setattr(trainer, "_compute_loss", compute_loss)
    return trainer, reached


def test_a_full_memory_ends_with_a_sentence_and_a_checkpoint_to_go_on_from(
    policy, tmp_path, monkeypatch
):
    trainer, reached = trainer_that_fails_in(3, policy, tmp_path, monkeypatch)
    with pytest.raises(GPUMemoryError) as error:
        trainer.train()
    sentence = str(error.value)
    assert "full in update 3: take COURSE_ACCUMULATE=2" in sentence
    assert "\n" not in sentence
    checkpoint = last_checkpoint(tmp_path)
    assert checkpoint == str(tmp_path / "checkpoint-2")
    assert checkpoint in sentence

    profile = replace(on_a_cpu(PROFILES["t4"]), updates=4)
    again = trainer_of(profile, tiny(policy.tokenizer, "float32"), policy.tokenizer, tmp_path)
    begun = []
    compute = again._compute_loss

    def compute_loss(model, inputs):
        begun.append(trained_weights(again))
        return compute(model, inputs)

    monkeypatch.setattr(again, "_compute_loss", compute_loss)
    again.train(resume_from_checkpoint=checkpoint)
    assert torch.equal(begun[0], reached[0])
    assert [row["update"] for row in again.recorder.rows] == [1, 2, 3, 4]


def test_in_the_first_update_there_is_nothing_to_save(policy, tmp_path, monkeypatch):
    trainer, _ = trainer_that_fails_in(1, policy, tmp_path, monkeypatch)
    with pytest.raises(GPUMemoryError, match=r"full in update 1: .*nothing is lost"):
        trainer.train()
    assert last_checkpoint(tmp_path) is None


def test_weights_that_are_half_changed_are_not_saved(policy, tmp_path, monkeypatch):
    trainer, reached = trainer_that_fails_in(3, policy, tmp_path, monkeypatch, place="optimiser")
    trainer.create_optimizer()
    step = trainer.optimizer.step

    def step_until_full(*arguments, **named):
        if reached:
            raise FULL
        return step(*arguments, **named)

    monkeypatch.setattr(trainer.optimizer, "step", step_until_full)
    with pytest.raises(GPUMemoryError, match="go on from the last checkpoint"):
        trainer.train()
    assert last_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    "error",
    [
        FULL,
        ValueError(
            "Free memory on device cuda:0 (1.5/14.6 GiB) on startup is less than desired GPU "
            "memory utilization (0.2, 2.9 GiB). Decrease GPU memory utilization."
        ),
        ValueError("No available memory for the cache blocks: raise `gpu_memory_utilization`."),
    ],
)
def test_a_vllm_that_finds_no_room_says_what_to_change(error):
    words = "no room for its COURSE_VLLM_MEMORY=0.2 of 15 GB .*COURSE_GENERATOR=transformers"
    with (
        pytest.raises(GPUMemoryError, match=words) as found,
        say_when_vllm_has_no_room(PROFILES["t4"]),
    ):
        raise error
    assert "\n" not in str(found.value)


def test_other_errors_at_the_start_stay_what_they_are():
    with (
        pytest.raises(ValueError, match="no such thing"),
        say_when_vllm_has_no_room(PROFILES["t4"]),
    ):
        raise ValueError("no such thing")
