"""The settings that the course grew out of, as presets of make; browsers on servers elsewhere."""

import os
import re
import subprocess
from dataclasses import replace

import pytest

from helpers.browser import start_browser_server
from helpers.episodes.how_played import episode_config, evaluation_config
from helpers.learning.configuration import grpo_config
from helpers.learning.run import open_browsers
from helpers.settings.paths import ROOT
from helpers.settings.profiles import ProfileError, get_profile

PRESETS = sorted(path.stem for path in (ROOT / "scripts" / "presets").glob("*.mk"))


def make(*arguments, **environment):
    """make with its arguments, in an environment without settings of the course."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COURSE_")}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env=clean | {"MAKEFLAGS": "", "MAKELEVEL": "0"} | environment,
    )


def settings(preset, **environment):
    """The variables that a command of make would see."""
    shown = make("--eval", "show:; @env", "show", f"PRESET={preset}", **environment).stdout
    return dict(line.split("=", 1) for line in shown.splitlines() if line.startswith("COURSE_"))


# What the gist and the repository set, from their own texts: name here -> value there.
ORIGINAL = {
    "gist-2025": {
        "policy": "qwen3-vl-2b",
        "max_turns": 8,
        "max_tokens": 16,
        "learning_rate": 1e-6,
        "warmup": 20,
        "group_size": 8,
        "updates": 100,
        "save_every": 50,
    },
    "lfm2-full": {
        "policy": "lfm2-350m",
        "max_turns": 10,
        "max_tokens": 32,
        "learning_rate": 5e-6,
        "warmup": 10,
        "group_size": 4,
        "updates": 100,
        "vllm_memory": 0.1,
    },
    "lfm2-lora": {
        "policy": "lfm2-350m",
        "lora_learning_rate": 1e-4,
        "lora_rank": 8,
        "vllm_memory": 0.15,
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_becomes_a_profile(preset, monkeypatch):
    for name, value in settings(preset).items():
        monkeypatch.setenv(name, value)
    profile = get_profile(scale="demo")
    original = ORIGINAL[preset]
    assert {name: getattr(profile, name) for name in original} == original
    config = episode_config(profile)
    assert config.max_turns == profile.max_turns
    assert config.max_tokens == profile.max_tokens
    assert config.temperature == 1.0
    assert config.top_k == 0
    held_out = evaluation_config("click-test", "click-test", profile)
    assert held_out.turns_of("click-test") == profile.max_turns


def test_what_is_set_by_hand_goes_before_a_preset():
    assert settings("lfm2-full", COURSE_UPDATES="7")["COURSE_UPDATES"] == "7"


def test_a_preset_may_choose_lora():
    assert "--lora" in make("-n", "train", "PRESET=lfm2-lora").stdout


def test_an_unknown_preset_is_refused():
    unknown = make("-n", "train", "PRESET=nope")
    assert unknown.returncode
    names = " ".join(PRESETS)
    assert re.search(f"There is no preset nope: use one of {names}", unknown.stderr)


def test_the_settings_reach_the_trainer(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_TEMPERATURE", "0.5")
    monkeypatch.setenv("COURSE_TOP_K", "10")
    monkeypatch.setenv("COURSE_ACCUMULATE", "2")
    monkeypatch.setenv("COURSE_GROUPS", "2")
    monkeypatch.setenv("COURSE_GROUP_SIZE", "4")
    profile = get_profile(scale="demo")
    config = grpo_config(profile, tmp_path)
    assert (config.temperature, config.top_k) == (0.5, 10)
    assert (config.per_device_train_batch_size, config.gradient_accumulation_steps) == (4, 2)
    assert episode_config(profile).temperature == 0.5
    assert episode_config(profile).top_k == 10


def test_parts_that_do_not_divide_an_update_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_GROUPS", "2")
    monkeypatch.setenv("COURSE_GROUP_SIZE", "4")
    monkeypatch.setenv("COURSE_ACCUMULATE", "3")
    with pytest.raises(ProfileError, match="COURSE_GROUPS and COURSE_ACCUMULATE"):
        grpo_config(get_profile(scale="demo"), tmp_path)


def test_sessions_on_servers_elsewhere(monkeypatch):
    with (
        start_browser_server(workers=1, token="shared") as one,
        start_browser_server(workers=1, token="shared") as two,
    ):
        monkeypatch.setenv("COURSE_SERVERS", f"{one.url}, {two.url}")
        monkeypatch.setenv("COURSE_SERVER_TOKEN", "shared")
        with open_browsers(replace(get_profile(), clients=3)) as clients:
            for client in clients:
                client.reset("click-test", 0)
                assert client.step("click('13')").reward == 1.0
            assert one.stats()["sessions"] == 2
            assert two.stats()["sessions"] == 1
