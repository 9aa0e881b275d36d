"""Every setting of the course, as one frozen `Profile`, and the function that chooses it.

What goes before what: the machine's profile (``COURSE_PROFILE`` picks another one), then the scale
(``COURSE_SCALE`` = smoke, demo or full), then the variable of a field's own name, such as
``COURSE_UPDATES=40`` or ``COURSE_POLICY=lfm2-350m``.
"""

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    ValidationError,
    create_model,
)
from pydantic.dataclasses import dataclass
from pydantic_settings import BaseSettings, SettingsConfigDict

from helpers.settings.errors import ProfileError
from helpers.settings.machine import this_machine, vllm_problem

__all__ = ["PROFILES", "Profile", "ProfileError", "get_profile", "scaled"]

Count = Annotated[int, Field(ge=1)]


@dataclass(
    frozen=True,
    config=ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True),
)
class Settings:
    """The fields of a `Profile`: one setting each, with what it may be and what it means."""

    name: str
    """The profile's name in `PROFILES`."""
    device: Literal["cpu", "cuda"]
    """Where the policy computes."""
    memory_gb: PositiveFloat
    """What the machine offers in GB: RAM on a CPU, the GPU's memory otherwise."""
    policy: str = "smollm2-135m"
    """The model: a short name, a Hub id or a folder."""
    generator: Literal["vllm", "transformers"] = "vllm"
    """What samples the answers."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the weights; float16 can be evaluated and not trained."""
    task: str = "click-button"
    """MiniWoB++ task, or several with commas; `Profile.tasks` has them one by one."""
    pages: Literal["chosen", "all"] = "chosen"
    """chosen: train on the pages that `helpers.episodes.tasks.train_seeds` picks; all: on all."""
    examples: Literal["task", "none"] = "task"
    """task: worked examples of the task in the prompt; none: without."""
    max_turns: NonNegativeInt = 0
    """Turns per episode; 0: as many as the task has."""
    max_tokens: NonNegativeInt = 0
    """Tokens per answer; 0: as many as the task has."""
    temperature: NonNegativeFloat = 1.0
    """Of sampling while training."""
    top_k: NonNegativeInt = 0
    """Sample from so many tokens only; 0 is off, and should be."""
    groups: Count = 9
    """Prompts per update."""
    group_size: Annotated[int, Field(ge=2)] = 4
    """Rollouts per prompt; a single one would have nothing to be compared with."""
    accumulate: Count = 1
    """Parts in which an update goes through the loss."""
    updates: Count = 20
    """Updates of a run."""
    learning_rate: PositiveFloat = 3e-5
    """For all weights."""
    lora_learning_rate: PositiveFloat = 4e-4
    """For LoRA, in place of ``learning_rate``."""
    lora_rank: Count = 16
    """Rank of the adapters."""
    warmup: NonNegativeInt = 4
    """Updates until the learning rate is reached."""
    entropy: float = 0.0
    """Weight of the entropy bonus, which keeps a group from answering in one voice."""
    eval_episodes: Count = 100
    """Held-out episodes per evaluation."""
    probe_episodes: Count = 32
    """Episodes of a quick measurement in a notebook."""
    workers: Count = 2
    """Browser processes, at most one per core."""
    clients: Count = 36
    """Browser sessions."""
    save_every: Count = 10
    """Updates between checkpoints."""
    seed: NonNegativeInt = 0
    """Training seed."""
    vllm_memory: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of the GPU's memory for vLLM."""
    vllm_server: str = ""
    """Address of a ``trl vllm-serve`` on GPUs of its own, instead of an engine in this process."""
    scale: Literal["smoke", "demo", "full"] = "demo"
    """How large the runs are: a test of the plumbing, the course, five times its updates."""


class Profile(Settings):
    """One machine's settings, frozen; see `Settings` for the fields.

    Change one with ``dataclasses.replace(profile, updates=40)``. A value that a field cannot have
    is a `ProfileError` of one sentence, there as in the constructor.
    """

    if not TYPE_CHECKING:  # a type checker shall go on seeing the fields as parameters

        def __init__(self, *values: Any, **fields: Any) -> None:
            try:
                super().__init__(*values, **fields)
            except ValidationError as error:
                raise ProfileError(_sentence(error)) from None

    @property
    def batch(self) -> int:
        """Episodes per update."""
        return self.groups * self.group_size

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of ``task``, one by one."""
        return tuple(name.strip() for name in self.task.split(","))


_ON_A_GPU: dict[str, Any] = {
    "device": "cuda",
    "policy": "lfm2-350m",
    "group_size": 8,
    "learning_rate": 5e-6,
}

PROFILES: dict[str, Profile] = {
    "cpu": Profile(
        name="cpu",
        device="cpu",
        memory_gb=8.0,
    ),
    "t4": Profile(
        name="t4",
        memory_gb=15.0,
        dtype="float32",  # it has no bf16
        groups=4,
        updates=150,
        workers=2,
        clients=32,
        **_ON_A_GPU,
    ),
    "l4": Profile(
        name="l4",
        memory_gb=22.0,
        dtype="bfloat16",
        groups=4,
        updates=150,
        workers=4,
        clients=32,
        **_ON_A_GPU,
    ),
    "a100": Profile(
        name="a100",
        memory_gb=40.0,
        dtype="bfloat16",
        groups=8,
        updates=200,
        workers=8,
        clients=64,
        **_ON_A_GPU,
    ),
    "h100": Profile(
        name="h100",
        memory_gb=80.0,
        dtype="bfloat16",
        groups=8,
        updates=200,
        workers=8,
        clients=64,
        **_ON_A_GPU,
    ),
}


def get_profile(name: str | None = None, scale: str | None = None) -> Profile:
    """The profile of this machine, scaled, with what the ``COURSE_*`` variables change.

    ``name`` and ``scale`` go before ``COURSE_PROFILE`` and ``COURSE_SCALE``. Raises `ProfileError`.
    """
    profile = _profile_of_this_machine(name or os.environ.get("COURSE_PROFILE"))
    profile = scaled(profile, scale or os.environ.get("COURSE_SCALE", "demo"))
    profile = replace(profile, **_read_variables())
    if profile.generator == "vllm" and vllm_problem():
        return replace(profile, generator="transformers")
    return profile


def scaled(profile: Profile, scale: str) -> Profile:
    """The profile at a scale: smoke, demo or full. Raises `ProfileError` for any other."""
    profile = replace(profile, scale=scale)
    if scale == "smoke":
        return replace(
            profile,
            updates=2,
            eval_episodes=8,
            probe_episodes=8,
            save_every=1,
            groups=1,
            group_size=4,
            clients=4,
        )
    if scale == "full":
        return replace(profile, updates=profile.updates * 5, eval_episodes=400)
    return profile


def _profile_of_this_machine(name: str | None) -> Profile:
    """The profile called ``name`` (by default the machine's own), cut to this machine's size."""
    machine, memory = this_machine()
    name = name or machine
    if name not in PROFILES:
        raise ProfileError(
            f"There is no profile {name!r}: use one of {', '.join(PROFILES)}, "
            "or unset COURSE_PROFILE."
        )
    profile = PROFILES[name]
    if (profile.device == "cpu") != (machine == "cpu"):
        raise ProfileError(
            f"The profile {name!r} does not fit this machine, which is {machine!r}: "
            "unset COURSE_PROFILE."
        )
    cores = os.cpu_count() or 2
    profile = replace(profile, memory_gb=memory, workers=min(profile.workers, cores))
    if machine != "cpu":
        return profile
    # On a CPU the sessions take the memory that a training run leaves, 50 MB each.
    sessions = int((memory - 6.0) / 0.05)
    return replace(profile, clients=max(8, min(profile.clients, sessions)))


# What the machine and the scale decide; COURSE_DEVICE, for one, is a variable of the set-up.
_NO_VARIABLES = ("name", "device", "memory_gb", "scale")


class _Environment(BaseSettings):
    """Where the variables of the settings are found; `_VARIABLES` adds the fields."""

    model_config = SettingsConfigDict(
        env_prefix="COURSE_", allow_inf_nan=False, validate_default=False
    )


_VARIABLE_FIELDS: dict[str, Any] = {
    field.name: (field.type, None) for field in fields(Settings) if field.name not in _NO_VARIABLES
}
_VARIABLES = create_model("_VARIABLES", __base__=_Environment, **_VARIABLE_FIELDS)


def _read_variables() -> dict[str, Any]:
    """What the ``COURSE_<FIELD>`` variables set, by field. Raises `ProfileError`."""
    try:
        return _VARIABLES().model_dump(exclude_unset=True)
    except ValidationError as error:
        raise ProfileError(_sentence(error)) from None


_NO_WHOLE_NUMBER = "{said} is not a whole number: correct it or unset it."
_NO_NUMBER = "{said} is not a number: correct it or unset it."
_SENTENCES = {  # by pydantic's types of errors; the limits' names are pydantic's as well
    "unexpected_keyword_argument": "There is no setting {setting!r}: use one of {settings}.",
    "missing": "A profile needs a value for {setting!r}.",
    "literal_error": "{said} is unknown: use {expected}.",
    "greater_than_equal": "{said} is too small: use {ge:g} or more, or unset it.",
    "greater_than": "{said} is too small: use more than {gt:g}, or unset it.",
    "less_than_equal": "{said} is too large: use {le:g} or less, or unset it.",
    "finite_number": "{said} is not a finite number: correct it or unset it.",
    "int_type": _NO_WHOLE_NUMBER,
    "int_parsing": _NO_WHOLE_NUMBER,
    "int_from_float": _NO_WHOLE_NUMBER,
    "float_type": _NO_NUMBER,
    "float_parsing": _NO_NUMBER,
}
_ANY_OTHER = "{said} cannot be used ({message}): correct it or unset it."


def _sentence(error: ValidationError) -> str:
    """The first thing that pydantic found, in one sentence that names the variable."""
    problem = error.errors()[0]
    setting = str(problem["loc"][0])
    facts = dict(problem.get("ctx", {}))
    if "expected" in facts:
        facts["expected"] = facts["expected"].replace("'", "")
    return _SENTENCES.get(problem["type"], _ANY_OTHER).format(
        said=f"COURSE_{setting.upper()}={problem['input']}",
        setting=setting,
        settings=", ".join(field.name for field in fields(Settings)),
        message=problem["msg"],
        **facts,
    )
