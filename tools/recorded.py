"""What stands in recordings/: results of benchmarks, times of a `make course`, and trainings."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from helpers.episodes.tasks import TASKS
from helpers.settings.paths import RECORDINGS
from helpers.settings.profiles import PROFILES, Profile, scaled

FOUR_ROLLOUTS = RECORDINGS / "four_rollouts" / "episodes.jsonl"
# Fields of a profile that are no part of a command: either it names them in another way, or they
# have no effect on training.
NOT_IN_A_COMMAND = {
    "name",
    "device",
    "memory_gb",
    "workers",
    "policy",
    "task",
    "updates",
    "seed",
    "scale",
    "probe_episodes",
}


@dataclass
class Run:
    """A recorded training: its folder in recordings/ and the content of its result.json."""

    folder: Path
    result: dict[str, Any]

    @property
    def command(self) -> str:
        """The command that makes this run, with what differs from the profile's settings."""
        if "command" in self.result:
            return self.result["command"]
        profile = self.result["profile"]
        words = [*_settings(profile), "make train", f"POLICY={profile['policy']}"]
        words += [
            f"TASK={'suite' if profile['task'] == ','.join(TASKS) else profile['task']}",
            f"UPDATES={profile['updates']}",
            f"SEED={profile['seed']}",
        ]
        if self.result["lora"]:
            words.append("LORA=1")
        return " ".join(words)


def _settings(profile: dict[str, Any]) -> list[str]:
    """COURSE_NAME=value for each field in which a recorded profile differs from the usual one."""
    usual = scaled(PROFILES[profile["name"]], profile["scale"])
    settings = []
    for field in fields(Profile):
        name = field.name
        if name in NOT_IN_A_COMMAND or name not in profile:
            continue
        if profile[name] != getattr(usual, name):
            settings.append(f"COURSE_{name.upper()}={profile[name]}")
    if profile["scale"] != "demo":
        settings.append(f"COURSE_SCALE={profile['scale']}")
    return settings


def find_runs(recordings: Path = RECORDINGS) -> list[Run]:
    """Every recorded training: task by task, all weights before LoRA, by seed."""
    runs = []
    for path in recordings.glob("*/result.json"):
        result = json.loads(path.read_text())
        if "profile" in result and result.get("before"):
            runs.append(Run(path.parent, result))

    def order(run: Run) -> tuple[str, bool, int, str]:
        profile = run.result["profile"]
        return profile["task"], run.result["lora"], profile["seed"], run.folder.name

    return sorted(runs, key=order)


def read_json(path: Path) -> dict[str, Any]:
    """The content of a file, or an empty dict where there is no such file."""
    return json.loads(path.read_text()) if path.exists() else {}


def recorded_result(name: str) -> dict[str, Any]:
    """recordings/NAME/result.json, or an empty dict."""
    return read_json(RECORDINGS / name / "result.json")


def read_times() -> dict[str, Any]:
    """The recorded times.json of a `make course`, or an empty dict."""
    return read_json(RECORDINGS / "course" / "times.json")


def read_evaluations(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """recordings/suite/NAME/evaluation.json for those of the names that have one."""
    found = {}
    for name in names:
        if evaluation := read_json(RECORDINGS / "suite" / name / "evaluation.json"):
            found[name] = evaluation
    return found
