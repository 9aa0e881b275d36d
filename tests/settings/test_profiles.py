"""Profiles: what the environment overrides, and what is refused in one sentence."""

from dataclasses import FrozenInstanceError, asdict, fields, replace

import pytest

from helpers.course.banner import setup
from helpers.settings import profiles
from helpers.settings.predictions import check_fits, predict
from helpers.settings.profiles import PROFILES, Profile, ProfileError, Settings, get_profile

SCALES = ("smoke", "demo", "full")


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    """A machine of 16 GB without a GPU and without settings, whatever runs the tests."""
    names = ["profile", *(field.name for field in fields(Profile))]
    for name in names:
        monkeypatch.delenv(f"COURSE_{name.upper()}", raising=False)
    monkeypatch.setattr(profiles, "this_machine", lambda: ("cpu", 16.0))
    return monkeypatch


def test_the_machine_chooses_the_profile(cpu):
    profile = get_profile()
    assert profile.name == "cpu"
    assert profile.device == "cpu"
    assert profile.scale == "demo"
    assert profile.memory_gb == 16.0
    assert profile.batch == profile.groups * profile.group_size
    cpu.setattr(profiles, "this_machine", lambda: ("l4", 22.0))
    assert get_profile().name == "l4"


@pytest.mark.parametrize("scale", SCALES)
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
def test_a_variable_overrides_a_field_at_every_scale(cpu, scale, variable, text, value):
    cpu.setenv(f"COURSE_{variable.upper()}", text)
    assert getattr(get_profile(scale=scale), variable) == value


def test_what_the_machine_decides_is_no_variable(cpu):
    usual = get_profile()
    cpu.setenv("COURSE_DEVICE", "gpu")  # a word of the set-up
    cpu.setenv("COURSE_NAME", "x")
    cpu.setenv("COURSE_MEMORY_GB", "1")
    cpu.setenv("COURSE_REPORT_TO", "trackio")  # no field
    assert get_profile() == usual


def test_scales_differ_in_size_only():
    smoke, demo, full = (get_profile(scale=scale) for scale in SCALES)
    assert smoke.updates < demo.updates < full.updates
    assert smoke.eval_episodes < demo.eval_episodes < full.eval_episodes
    assert smoke.clients < demo.clients == full.clients
    assert smoke.workers <= demo.workers == full.workers
    for same in ("policy", "task", "dtype", "learning_rate", "generator"):
        assert getattr(smoke, same) == getattr(demo, same) == getattr(full, same)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"SCALE": "tiny"}, "COURSE_SCALE=tiny is unknown: use smoke, demo or full"),
        ({"PROFILE": "tpu"}, "There is no profile 'tpu': use one of cpu"),
        ({"PROFILE": "h100"}, "does not fit this machine"),
        ({"GENERATOR": "llama.cpp"}, "COURSE_GENERATOR=llama.cpp is unknown: use vllm or tran"),
        ({"PAGES": "few"}, "COURSE_PAGES=few is unknown: use chosen or all"),
        ({"EXAMPLES": "all"}, "COURSE_EXAMPLES=all is unknown: use task or none"),
        ({"DTYPE": "int8"}, "COURSE_DTYPE=int8 is unknown: use float32, bfloat16 or float16"),
        ({"UPDATES": "many"}, "COURSE_UPDATES=many is not a whole number: correct it"),
        ({"UPDATES": "2.5"}, "COURSE_UPDATES=2.5 is not a whole number: correct it"),
        ({"UPDATES": ""}, "COURSE_UPDATES= is not a whole number: correct it"),
        ({"LEARNING_RATE": "fast"}, "COURSE_LEARNING_RATE=fast is not a number: correct it"),
        ({"GROUP_SIZE": "1"}, "COURSE_GROUP_SIZE=1 is too small: use 2 or more"),
        ({"VLLM_MEMORY": "1.5"}, "COURSE_VLLM_MEMORY=1.5 is too large: use 1 or less"),
        ({"ENTROPY": "nan"}, "COURSE_ENTROPY=nan is not a finite number"),
    ],
)
def test_what_is_unknown_gets_one_sentence(cpu, settings, words):
    for name, value in settings.items():
        cpu.setenv(f"COURSE_{name}", value)
    with pytest.raises(ProfileError, match=words) as error:
        get_profile()
    assert "\n" not in str(error.value)


AT_LEAST_ONE = [
    "groups",
    "accumulate",
    "updates",
    "lora_rank",
    "eval_episodes",
    "probe_episodes",
    "workers",
    "clients",
    "save_every",
]
AT_LEAST_ZERO = ["max_turns", "max_tokens", "top_k", "warmup", "entropy", "seed"]
ABOVE_ZERO = ["temperature", "learning_rate", "lora_learning_rate", "vllm_memory"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        *((field, 0, "use 1 or more") for field in AT_LEAST_ONE),
        *((field, -1, "use 0 or more") for field in AT_LEAST_ZERO),
        *((field, 0, "use more than 0") for field in ABOVE_ZERO),
        *((field, float("inf"), "not a finite number") for field in ABOVE_ZERO),
    ],
)
def test_a_nonsense_value_is_refused_from_the_environment_and_in_code(cpu, field, value, words):
    said = f"COURSE_{field.upper()}={value} is .*{words}"
    with pytest.raises(ProfileError, match=said):
        replace(PROFILES["cpu"], **{field: value})
    cpu.setenv(f"COURSE_{field.upper()}", str(value))
    with pytest.raises(ProfileError, match=said) as error:
        get_profile()
    assert "\n" not in str(error.value)


def test_the_smallest_sensible_values_are_taken():
    smallest = dict.fromkeys(AT_LEAST_ONE, 1) | dict.fromkeys(AT_LEAST_ZERO, 0)
    profile = replace(PROFILES["cpu"], **smallest, group_size=2)
    assert profile.batch == 2


def test_a_profile_is_a_frozen_dataclass():
    cpu = PROFILES["cpu"]
    profile = Profile("cpu", "cpu", 9.0, eval_episodes=cpu.eval_episodes, measured=cpu.measured)
    assert profile == cpu
    assert Profile(**asdict(profile)) == profile
    assert list(asdict(profile)) == [field.name for field in fields(Profile)]
    changed = replace(profile, updates=3)
    assert changed != profile
    assert asdict(changed) == asdict(profile) | {"updates": 3}
    with pytest.raises(FrozenInstanceError):
        profile.updates = 3
    with pytest.raises(ProfileError, match="There is no setting 'update': use one of name, "):
        replace(profile, update=3)


def test_replace_does_not_read_the_environment_again(cpu):
    cpu.setenv("COURSE_UPDATES", "7")
    assert replace(get_profile(), updates=9, groups=2).updates == 9
    assert Profile("cpu", "cpu", 8.0).updates == 20


@pytest.mark.parametrize(
    ("task", "tasks"),
    [
        ("click-test", ("click-test",)),
        ("click-test,enter-text", ("click-test", "enter-text")),
        ("click-test, enter-text", ("click-test", "enter-text")),
    ],
)
def test_several_tasks_are_a_tuple(task, tasks):
    assert replace(PROFILES["cpu"], task=task).tasks == tasks


def test_every_setting_says_what_it_means():
    for name, field in Settings.__pydantic_fields__.items():
        assert field.description, name


def test_without_vllm_the_generator_is_transformers(cpu):
    cpu.setattr(profiles, "vllm_problem", lambda: "vLLM is not installed on this machine")
    assert get_profile().generator == "transformers"


def test_a_small_machine_gets_fewer_sessions(cpu):
    cpu.setattr(profiles, "this_machine", lambda: ("cpu", 8.1))
    assert get_profile().clients == 20
    cpu.setattr(profiles, "this_machine", lambda: ("cpu", 3.0))
    assert get_profile().clients == 8


def test_too_little_memory_is_refused_before_the_run():
    profile = get_profile()
    assert check_fits(profile) == predict(profile)
    small = replace(profile, memory_gb=2.0)
    words = r"needs about \d+\.\d GB and this machine has 2\.0 GB \(.*\): set COURSE_POLICY"
    with pytest.raises(ProfileError, match=words):
        check_fits(small)


def test_fp16_is_not_trained():
    half = replace(get_profile(), dtype="float16")
    with pytest.raises(ProfileError, match="COURSE_DTYPE=float16 cannot be trained: use float32"):
        check_fits(half)


def test_predictions_follow_what_is_trained_and_how_long():
    profile = get_profile()
    assert predict(profile, lora=True)["memory_gb"] < predict(profile)["memory_gb"]
    longer = replace(profile, updates=600)
    assert predict(longer)["minutes"] > predict(profile)["minutes"]


def test_setup_says_what_it_found(cpu, capsys):
    cpu.setenv("COURSE_SCALE", "smoke")
    assert setup("03", 5).scale == "smoke"
    text = capsys.readouterr().out
    for word in ("Notebook 03", "torch", "trl", "scale smoke", "smollm2-135m", "5 min"):
        assert word in text
