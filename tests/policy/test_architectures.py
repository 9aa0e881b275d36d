"""The benchmark of larger policies: their sizes, and an update of small ones of the same kinds."""

from dataclasses import replace

import pytest
import torch

from benchmarks import architectures
from benchmarks.architectures import measure_answers, measure_update, profile_of_update
from benchmarks.made_up_episodes import batch_of
from benchmarks.published_configs import ARCHITECTURES, Architecture
from benchmarks.same_episodes import train_on

TEXT = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 65_536,
    "tie_word_embeddings": True,
}
SMALL_LFM2 = {**TEXT, "layer_types": ["conv", "full_attention"]}
SMALL = Architecture("lfm2", SMALL_LFM2, known_as="lfm2.5-350m")
SMALL_WITH_EYES = Architecture(
    "lfm2_vl",
    {
        "text_config": {"model_type": "lfm2", **SMALL_LFM2},
        "vision_config": {
            "model_type": "siglip2_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_patches": 256,
            "patch_size": 16,
            "vision_use_head": False,
        },
        "downsample_factor": 2,
        "projector_hidden_size": 64,
        "image_token_id": 396,
        "tie_word_embeddings": True,
    },
    vision=True,
)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("LFM2.5-350M", 354_483_968),  # the model card of LFM2-350M
        ("Qwen3-0.6B", 596_049_920),  # of its safetensors, as the Hub counts them
        ("LFM2-VL-450M", 450_822_656),
        ("Qwen3-VL-2B", 2_127_532_032),
    ],
)
def test_an_architecture_has_as_many_parameters_as_was_published(name, parameters):
    with torch.device("meta"):
        model = ARCHITECTURES[name].build()
    assert model.num_parameters() == parameters


def test_only_what_can_fit_is_measured(monkeypatch):
    monkeypatch.setattr(architectures, "this_machine", lambda: ("cpu", 10.0))
    assert architectures.names_that_fit() == ["LFM2.5-350M", "LFM2-VL-450M"]


def test_the_reason_is_what_was_said_before_the_leaks_of_vllms_build():
    stderr = "Traceback\nMemoryError: full\nnanobind: leaked 1 types!\n - leaked type x\n"
    assert architectures._reason(stderr) == "MemoryError: full"
    assert architectures._reason("") == ""


def test_transformers_answers_where_vllm_does_not_take_a_policy(monkeypatch):
    def in_a_process(name, part, groups, group_size, updates, **settings):
        if settings.get("COURSE_GENERATOR") == "transformers":
            return {"generator": "transformers", "answers_s": 2.0}
        return {"answers_failed": failure}

    monkeypatch.setattr(architectures, "_in_a_process", in_a_process)
    failure = "vLLM did not start (no such width): set COURSE_GENERATOR=transformers"
    row = architectures._part_of_row("small", "answers", 1, 2, 1)
    assert row == {"generator": "transformers", "answers_s": 2.0, "not_by_vllm": failure}
    failure = "MemoryError: full"  # transformers would need as much
    assert architectures._part_of_row("small", "answers", 1, 2, 1) == {"answers_failed": failure}


@pytest.mark.parametrize("architecture", [SMALL, SMALL_WITH_EYES], ids=["text", "with eyes"])
@pytest.mark.parametrize("sampled_in", ["float32", "bfloat16"])
def test_an_update_is_one_of_the_courses_trainer(architecture, sampled_in, policy, tmp_path):
    """All weights that the episodes reach are moved, those of the eyes, too."""
    profile = replace(
        profile_of_update(architecture, groups=1, group_size=2),
        generator="transformers",
        vllm_dtype=sampled_in,
        updates=1,
        warmup=0,
    )
    model = architecture.build()
    before = {name: weights.detach().clone() for name, weights in model.named_parameters()}
    batch = batch_of(profile, architecture)
    seconds = train_on(batch, model, policy.tokenizer, profile, tmp_path)
    assert len(seconds) == 1
    assert seconds[0] > 0
    assert not list(tmp_path.glob("checkpoint-*"))  # it would take longer than the update
    moved = {name for name, weights in model.named_parameters() if (weights != before[name]).any()}
    reached = {name for name in before if ".k_proj.bias" not in name}  # softmax does not feel it
    assert moved >= reached


def test_a_row_of_the_table(capsys):
    profile = replace(profile_of_update(SMALL, groups=1, group_size=2), generator="transformers")
    row = measure_update(SMALL, profile, updates=1) | measure_answers(SMALL, profile)
    assert row["tokens"] == 2 * (196 + 45 + 8)
    assert row["parameters_m"] == 2
    assert row["peak_gb"] > 0
    assert row["predicted_gb"] > 0
    result = {
        "policies": {"small": row, "large": {"update_failed": "out of memory"}},
        "episodes": 2,
        "smaller_than_in_the_course": True,
        "machine": "2 cores",
        "device": "cpu",
        "dtype": "float32",
    }
    result["policies"]["small"]["not_by_vllm"] = "no such width"
    architectures.show(result)
    shown = capsys.readouterr().out
    assert "speed and memory are real, answers and rewards are not" in shown
    assert "fewer than the course's profile has" in shown
    assert "large, update: not measured (out of memory)" in shown
    assert "small, answers by transformers: no such width" in shown
