"""Every setting has its range: what lies outside is one sentence, wherever it was set."""

from dataclasses import fields, replace
from typing import get_args, get_origin

import pytest

from helpers.settings import profiles
from helpers.settings.profiles import PROFILES, Profile, ProfileError, Settings, get_profile
from scripts.options import chosen_profile

# Fields for which 0 has a meaning.
ZERO_IS_GOOD = {
    "max_turns",
    "max_tokens",
    "top_k",
    "warmup",
    "entropy",
    "seed",
    "resample",
    "scout",
    "self_imitation",
}
HUGE = "9" * 40

NUMBERS = {
    field.name: python_type
    for field in fields(Settings)
    for python_type in [(get_args(field.type) or (field.type,))[0]]
    if python_type in (int, float)
}
WORDS = [
    field.name
    for field in fields(Settings)
    if get_origin(field.type) is not None and field.name not in NUMBERS
]
VARIABLES = set(profiles._VARIABLE_FIELDS)
ON_THE_COMMAND_LINE = ("updates", "seed")

BAD_NUMBERS = [
    (name, value)
    for name in NUMBERS
    for value in ("nan", "inf", "-inf", "-1", HUGE, "1e999", "many", "", "1\n2")
] + [(name, "0") for name in NUMBERS if name not in ZERO_IS_GOOD]
BAD_WORDS = [(name, value) for name in WORDS for value in ("", "\n") if name != "vllm_server"]


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    """A machine of 16 GB without a GPU and without settings."""
    for name in ["profile", *(field.name for field in fields(Settings))]:
        monkeypatch.delenv(f"COURSE_{name.upper()}", raising=False)
    monkeypatch.setattr(profiles, "this_machine", lambda: ("cpu", 16.0))
    return monkeypatch


def check_sentence(message, name):
    """One sentence that names the setting and what to do."""
    assert f"COURSE_{name.upper()}=" in message
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 250


def test_the_numbers_and_the_words_are_all_settings():
    free = {field.name for field in fields(Settings)} - set(NUMBERS) - set(WORDS)
    assert free <= {"name", "measured"}  # texts that are shown and decide nothing


@pytest.mark.parametrize(("name", "value"), BAD_NUMBERS + BAD_WORDS)
def test_what_is_out_of_range_is_refused_wherever_it_is_set(cpu, name, value):
    given = value
    if name in NUMBERS:
        try:
            given = NUMBERS[name](value)
        except (ValueError, OverflowError):  # a text, or nan for a whole number
            given = float(value) if value in ("nan", "inf", "-inf") else value
    with pytest.raises(ProfileError) as error:
        replace(PROFILES["cpu"], **{name: given})
    check_sentence(str(error.value), name)
    if name in VARIABLES:
        cpu.setenv(f"COURSE_{name.upper()}", value)
        with pytest.raises(ProfileError) as error:
            get_profile()
        check_sentence(str(error.value), name)
    if name in ON_THE_COMMAND_LINE and isinstance(given, int):
        with pytest.raises(ProfileError) as error:
            chosen_profile(**{name: given})
        check_sentence(str(error.value), name)


@pytest.mark.parametrize("name", sorted(ZERO_IS_GOOD))
def test_zero_is_taken_where_it_means_something(cpu, name):
    cpu.setenv(f"COURSE_{name.upper()}", "0")
    assert getattr(get_profile(), name) == 0


@pytest.mark.parametrize("address", ["localhost", "localhost:8000", "ftp://x", "http://", "a b"])
def test_a_server_is_an_address(cpu, address):
    cpu.setenv("COURSE_VLLM_SERVER", address)
    with pytest.raises(ProfileError, match="is no address: use http://host:port") as error:
        get_profile()
    check_sentence(str(error.value), "vllm_server")


@pytest.mark.parametrize("address", ["", "http://gpu:8000", "https://gpu.example/"])
def test_an_address_is_taken(cpu, address):
    cpu.setenv("COURSE_VLLM_SERVER", address)
    assert get_profile().vllm_server == address


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("scale", ["smoke", "demo", "full"])
def test_every_profile_is_in_range_at_every_scale(profile, scale):
    scaled = profiles.scaled(profile, scale)
    assert Profile(**{field.name: getattr(scaled, field.name) for field in fields(Settings)})


def test_what_a_policy_was_taught_has_to_be_known(cpu, tmp_path):
    with pytest.raises(ProfileError, match="name them with --task") as error:
        chosen_profile(policy=str(tmp_path), task="taught")
    assert str(error.value).startswith(str(tmp_path))
