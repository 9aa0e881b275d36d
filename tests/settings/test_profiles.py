"""Profiles: what the environment overrides, and what is refused in one sentence."""

from dataclasses import replace

import pytest

from helpers.settings import profiles
from helpers.course.banner import setup
from helpers.settings.predictions import check_fits, predict
from helpers.settings.profiles import PROFILES, ProfileError, get_profile


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    """A machine of 16 GB without a GPU and without settings, whatever runs the tests."""
    for field in (
        "PROFILE",
        "SCALE",
        *(name.upper() for name in PROFILES["cpu"].__dataclass_fields__),
    ):
        monkeypatch.delenv(f"COURSE_{field}", raising=False)
    monkeypatch.setattr(profiles, "_machine", lambda: ("cpu", 16.0))
    return monkeypatch


def test_the_machine_chooses_the_profile(cpu):
    profile = get_profile()
    assert (profile.name, profile.device, profile.scale, profile.memory_gb) == (
        "cpu",
        "cpu",
        "demo",
        16.0,
    )
    assert profile.batch == profile.groups * profile.group_size
    cpu.setattr(profiles, "_machine", lambda: ("l4", 22.0))
    assert get_profile().name == "l4"


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("updates", "7", 7),
        ("learning_rate", "3e-6", 3e-6),
        ("task", "click-tab", "click-tab"),
        ("policy", "a/b", "a/b"),
        ("generator", "transformers", "transformers"),
    ],
)
def test_a_variable_overrides_a_field_at_every_scale(cpu, variable, text, value):
    cpu.setenv(f"COURSE_{variable.upper()}", text)
    assert all(
        getattr(get_profile(scale=scale), variable) == value for scale in ("smoke", "demo", "full")
    )


def test_scales_differ_in_size_only(cpu):
    smoke, demo, full = (get_profile(scale=scale) for scale in ("smoke", "demo", "full"))
    assert (
        smoke.updates < demo.updates < full.updates
        and smoke.eval_episodes < demo.eval_episodes < full.eval_episodes
    )
    assert (
        len(
            {(p.policy, p.task, p.dtype, p.learning_rate, p.generator) for p in (smoke, demo, full)}
        )
        == 1
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"COURSE_SCALE": "tiny"}, "COURSE_SCALE=tiny is unknown: use one of smoke, demo, full"),
        ({"COURSE_PROFILE": "tpu"}, "There is no profile 'tpu': use one of cpu"),
        ({"COURSE_PROFILE": "h100"}, "does not fit this machine"),
        (
            {"COURSE_GENERATOR": "llama.cpp"},
            "COURSE_GENERATOR=llama.cpp is unknown: use vllm or transformers",
        ),
        ({"COURSE_UPDATES": "many"}, "COURSE_UPDATES=many is not a int"),
        ({"COURSE_GROUP_SIZE": "1"}, "at least 2 episodes"),
        ({"COURSE_PAGES": "few"}, "COURSE_PAGES=few is unknown: use chosen or all"),
    ],
)
def test_what_is_unknown_gets_one_sentence(cpu, settings, words):
    for name, value in settings.items():
        cpu.setenv(name, value)
    with pytest.raises(ProfileError, match=words) as error:
        get_profile()
    assert "\n" not in str(error.value)


def test_without_vllm_the_generator_is_transformers(cpu):
    cpu.setattr(profiles, "vllm_problem", lambda: "vLLM is not installed on this machine")
    assert get_profile().generator == "transformers"


def test_too_little_memory_is_refused_before_the_run(cpu):
    profile = get_profile()
    assert check_fits(profile) == predict(profile)
    with pytest.raises(
        ProfileError,
        match=r"needs about \d+\.\d GB and this machine has 2\.0 GB: set COURSE_POLICY",
    ):
        check_fits(replace(profile, memory_gb=2.0))
    with pytest.raises(ProfileError, match="COURSE_DTYPE=float16 cannot be trained: use float32"):
        check_fits(replace(profile, dtype="float16"))
    assert predict(profile, lora=True)["memory_gb"] < predict(profile)["memory_gb"]
    assert predict(replace(profile, updates=600))["minutes"] > predict(profile)["minutes"]


def test_a_gpu_without_bf16_trains_in_fp32_and_fits():
    t4 = PROFILES["t4"]
    assert t4.dtype == "float32" and check_fits(t4)["memory_gb"] < 15


def test_setup_says_what_it_found(cpu, capsys):
    cpu.setenv("COURSE_SCALE", "smoke")
    assert setup("03", 5).scale == "smoke"
    text = capsys.readouterr().out
    assert all(
        word in text
        for word in ("Notebook 03", "torch", "trl", "scale smoke", "smollm2-135m", "5 min")
    )
