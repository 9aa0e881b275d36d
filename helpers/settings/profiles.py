"""What this machine can do, as one `Profile` that every notebook reads; `setup` is the first call of each notebook.

``COURSE_PROFILE`` picks a profile, ``COURSE_SCALE`` = smoke, demo or full scales it, and every field can be overridden by an
environment variable of its name: ``COURSE_UPDATES=40``, ``COURSE_POLICY=lfm2-350m``, ``COURSE_GENERATOR=transformers``.
"""

import os
from dataclasses import dataclass, fields, replace
from typing import Any

from helpers.settings.machine import _machine, vllm_problem

SCALES = ("smoke", "demo", "full")


class ProfileError(ValueError):
    """A setting is unknown or cannot fit this machine; the message is one sentence with the next step."""


@dataclass(frozen=True)
class Profile:
    """One machine's settings. An update trains on ``groups`` x ``group_size`` episodes; ``memory_gb`` is what the machine
    offers (RAM on a CPU, the GPU's memory otherwise); ``lora_learning_rate`` replaces ``learning_rate`` with LoRA; ``entropy``
    is the weight of the entropy bonus, which keeps a group from answering in one voice; ``pages`` = all trains on every page of
    a task, chosen on those that `helpers.episodes.tasks.train_seeds` picks; ``examples`` = none leaves the worked ones out of the prompt,
    task shows those of the task; ``max_turns`` and ``max_tokens`` 0: as many as the task has; an update's episodes go through
    the loss in ``accumulate`` parts; ``vllm_server``: the address of a ``trl vllm-serve`` on GPUs of its own."""

    name: str
    device: str
    memory_gb: float
    policy: str = "smollm2-135m"
    generator: str = "vllm"
    dtype: str = "float32"
    task: str = "click-button"
    pages: str = "chosen"
    examples: str = "task"
    max_turns: int = 0
    max_tokens: int = 0
    temperature: float = 1.0
    top_k: int = 0
    groups: int = 9
    group_size: int = 4
    accumulate: int = 1
    updates: int = 20
    learning_rate: float = 3e-5
    lora_learning_rate: float = 4e-4
    lora_rank: int = 16
    warmup: int = 4
    entropy: float = 0.0
    eval_episodes: int = 100
    probe_episodes: int = 32
    workers: int = 2
    clients: int = 36
    save_every: int = 10
    seed: int = 0
    vllm_memory: float = 0.2
    vllm_server: str = ""
    scale: str = "demo"

    @property
    def batch(self) -> int:
        """Episodes per update."""
        return self.groups * self.group_size


PROFILES: dict[str, Profile] = {
    "cpu": Profile("cpu", "cpu", 8.0),
    "t4": Profile(
        "t4",
        "cuda",
        15.0,
        policy="lfm2-350m",
        dtype="float32",
        groups=4,
        group_size=8,
        updates=150,
        learning_rate=5e-6,
        workers=2,
        clients=32,
    ),
    "l4": Profile(
        "l4",
        "cuda",
        22.0,
        policy="lfm2-350m",
        dtype="bfloat16",
        groups=4,
        group_size=8,
        updates=150,
        learning_rate=5e-6,
        workers=4,
        clients=32,
    ),
    "a100": Profile(
        "a100",
        "cuda",
        40.0,
        policy="lfm2-350m",
        dtype="bfloat16",
        groups=8,
        group_size=8,
        updates=200,
        learning_rate=5e-6,
        workers=8,
        clients=64,
    ),
    "h100": Profile(
        "h100",
        "cuda",
        80.0,
        policy="lfm2-350m",
        dtype="bfloat16",
        groups=8,
        group_size=8,
        updates=200,
        learning_rate=5e-6,
        workers=8,
        clients=64,
    ),
}


def _override(profile: Profile) -> Profile:
    """Apply the ``COURSE_<FIELD>`` environment variables."""
    changes: dict[str, Any] = {}
    for field in fields(Profile):
        text = os.environ.get(f"COURSE_{field.name.upper()}")
        if text is None or field.name in ("name", "device", "memory_gb", "scale"):
            continue
        kind = type(getattr(profile, field.name))
        try:
            changes[field.name] = kind(text)
        except ValueError:
            raise ProfileError(
                f"COURSE_{field.name.upper()}={text} is not a {kind.__name__}: correct it or unset it."
            ) from None
    return replace(profile, **changes)


def _scaled(profile: Profile, scale: str) -> Profile:
    if scale == "smoke":
        return replace(
            profile,
            scale=scale,
            updates=2,
            eval_episodes=8,
            probe_episodes=8,
            save_every=1,
            groups=1,
            group_size=4,
            clients=4,
        )
    if scale == "full":
        return replace(profile, scale=scale, updates=profile.updates * 5, eval_episodes=400)
    return replace(profile, scale=scale)


def get_profile(name: str | None = None, scale: str | None = None) -> Profile:
    """The profile of this machine, or the one that ``name`` or ``COURSE_PROFILE`` asks for; raises `ProfileError`."""
    scale = scale or os.environ.get("COURSE_SCALE", "demo")
    if scale not in SCALES:
        raise ProfileError(f"COURSE_SCALE={scale} is unknown: use one of {', '.join(SCALES)}.")
    machine, memory = _machine()
    name = name or os.environ.get("COURSE_PROFILE", machine)
    if name not in PROFILES:
        raise ProfileError(
            f"There is no profile {name!r}: use one of {', '.join(PROFILES)}, or unset COURSE_PROFILE."
        )
    if (PROFILES[name].device == "cuda") != (machine != "cpu"):
        raise ProfileError(
            f"The profile {name!r} does not fit this machine, which is {machine!r}: unset COURSE_PROFILE."
        )
    cores = os.cpu_count() or 2
    profile = replace(
        PROFILES[name], memory_gb=memory, workers=max(1, min(PROFILES[name].workers, cores))
    )
    if machine == "cpu":  # sessions take the memory that a training run leaves
        profile = replace(profile, clients=max(8, min(profile.clients, int((memory - 6.0) / 0.05))))
    profile = _override(_scaled(profile, scale))
    if profile.group_size < 2 or profile.groups < 1 or profile.updates < 1:
        raise ProfileError(
            "A group needs at least 2 episodes, an update at least one group, a run at least one update."
        )
    for field, values in (
        ("generator", ("vllm", "transformers")),
        ("pages", ("chosen", "all")),
        ("examples", ("task", "none")),
    ):
        if (value := getattr(profile, field)) not in values:
            raise ProfileError(
                f"COURSE_{field.upper()}={value} is unknown: use {' or '.join(values)}."
            )
    if profile.generator == "vllm" and vllm_problem():
        profile = replace(profile, generator="transformers")
    return profile
