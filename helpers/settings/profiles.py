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
    StringConstraints,
    ValidationError,
    create_model,
)
from pydantic.dataclasses import dataclass
from pydantic_settings import BaseSettings, SettingsConfigDict

from helpers.settings.errors import ProfileError
from helpers.settings.machine import this_machine, vllm_problem
from helpers.settings.names import split_names

__all__ = ["PROFILES", "Profile", "ProfileError", "get_profile", "scaled"]

Updates = Annotated[int, Field(ge=1, le=1_000_000)]
Pages = Annotated[int, Field(ge=1, le=1_000)]  # as many as there are to test on
Rate = Annotated[float, Field(gt=0, le=1)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


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
    memory_gb: Annotated[float, Field(gt=0, le=100_000)]
    """What the machine offers in GB: RAM on a CPU, the GPU's memory otherwise."""
    policy: Name = "smollm2-135m"
    """The model: a short name, a Hub id or a folder."""
    generator: Literal["vllm", "transformers"] = "vllm"
    """What samples the answers."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision that training computes in, over weights that are kept in fp32; not float16."""
    vllm_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision in which vLLM holds its copy of the weights and samples."""
    task: Name = "click-button"
    """MiniWoB++ task, or several with commas; `Profile.tasks` has them one by one."""
    pages: Literal["chosen", "all"] = "chosen"
    """chosen: train on the pages that `helpers.episodes.tasks.train_seeds` picks; all: on all."""
    examples: Literal["task", "none"] = "task"
    """task: worked examples of the task in the prompt; none: without."""
    max_turns: Annotated[int, Field(ge=0, le=1_000)] = 0
    """Turns per episode; 0: as many as the task has."""
    max_tokens: Annotated[int, Field(ge=0, le=1_024)] = 0
    """Tokens per answer; 0: as many as the task has."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Of sampling while training."""
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Sample from so many tokens only; 0 is off, and should be."""
    groups: Annotated[int, Field(ge=1, le=1_000)] = 9
    """Prompts per update."""
    group_size: Annotated[int, Field(ge=2, le=1_000)] = 4
    """Rollouts per prompt; a single one would have nothing to be compared with."""
    accumulate: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Parts in which an update goes through the loss."""
    updates: Updates = 20
    """Updates of a run."""
    learning_rate: Rate = 3e-5
    """For all weights."""
    lora_learning_rate: Rate = 4e-4
    """For LoRA, in place of ``learning_rate``."""
    lora_rank: Annotated[int, Field(ge=1, le=1_024)] = 16
    """Rank of the adapters."""
    warmup: Annotated[int, Field(ge=0, le=1_000_000)] = 4
    """Updates until the learning rate is reached."""
    entropy: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Weight of the entropy bonus, which keeps a group from answering in one voice."""
    resample: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Episodes that an update may play beyond its own, on other pages, where groups ended alike."""
    curriculum: Literal["none", "success"] = "none"
    """none: tasks in turn; success: those tasks and pages that the policy solves now and then."""
    scout: Annotated[int, Field(ge=0, le=1_000)] = 0
    """Pages of each task that are played before the first update, each by a group: a curriculum
    leaves out the tasks whose groups all ended alike."""
    advantages: Literal["group", "turns", "solved", "shuffled"] = "group"
    """group: GRPO; turns: with groups of turns on one page; solved: 1 or 0; shuffled: a control."""
    self_imitation: Annotated[int, Field(ge=0, le=1_000)] = 0
    """Own solved episodes of earlier updates that each update learns from again."""
    eval_episodes: Pages = 100
    """Held-out episodes per evaluation."""
    probe_episodes: Pages = 32
    """Episodes of a quick measurement in a notebook."""
    workers: Annotated[int, Field(ge=1, le=256)] = 2
    """Browser processes, at most one per core."""
    clients: Annotated[int, Field(ge=1, le=2_000)] = 36
    """Browser sessions."""
    save_every: Updates = 10
    """Updates between checkpoints."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Training seed."""
    vllm_memory: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of the GPU's memory for vLLM."""
    vllm_server: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = ""
    """Address of a vLLM server (``make serve``), instead of an engine in this process."""
    scale: Literal["smoke", "demo", "full"] = "demo"
    """How large the runs are: a test of the plumbing, the course, five times its updates."""
    measured: str = ""
    """On what the profile's settings were run; where that was another machine, which one."""


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
        return split_names(self.task)


# What a GPU's profile is made of:
# - Learning rate, groups, updates and fp32 are those that learn: click-button with smollm2-135m
#   goes from 50 to 99 % in 40 updates of 8 groups of 8 at 3e-5, 52 to 60 s on an H200
#   (recordings/gpu). With weights kept in bf16, and 5e-6, it had learned nothing in 100 updates on
#   an H100. Computing in bf16 over fp32 weights is there for larger policies (COURSE_DTYPE), but an
#   update then points elsewhere than fp32's; `helpers.learning.precision` has the numbers.
# - vLLM samples in bf16. In fp32 it took over 100 s to start on the H100 (bf16: 35 to 55 s), and
#   what bf16 moves the logprobs by, 0.01 to 0.02 in the mean, the loss corrects. A T4 has no bf16
#   and samples in fp32.
# - Four browser processes played 123 episodes a second there on 16 cores, sixteen 147.
# - An update goes through the loss in so many parts that the activations of one of them fit beside
#   the rest (`helpers.settings.predictions`).
_ON_A_GPU: dict[str, Any] = {
    "device": "cuda",
    "policy": "lfm2.5-350m",
    "vllm_dtype": "bfloat16",
    "groups": 8,
    "group_size": 8,
    "updates": 40,
    "learning_rate": 3e-5,
    "workers": 4,
    "clients": 64,
}
_H100 = (
    "an H200 with 16 cores, smollm2-135m: training in fp32, and vLLM beside it in bf16 "
    "(recordings/gpu)"
)
_LIKE_H100 = f"not on this GPU; its settings are the h100's ({_H100})"

PROFILES: dict[str, Profile] = {
    "cpu": Profile(
        name="cpu",
        device="cpu",
        memory_gb=9.0,
        eval_episodes=64,
        measured="a machine with 2 cores and 25 GB (recordings/click-button-*)",
    ),
    "t4": Profile(
        name="t4",
        memory_gb=15.0,
        **_ON_A_GPU
        | {
            "vllm_dtype": "float32",  # it has no bf16; the recorded runs on a CPU are in fp32, too
            "groups": 4,  # 32 episodes are about what a CPU's update has
            "accumulate": 4,
            "workers": 2,
            "clients": 32,
            "measured": (
                "not on this GPU; learning rate and updates: an H200 with smollm2-135m in fp32; "
                "groups, and both in fp32: a CPU (recordings/click-button-*)"
            ),
        },
    ),
    "l4": Profile(name="l4", memory_gb=22.0, accumulate=4, measured=_LIKE_H100, **_ON_A_GPU),
    "a100": Profile(name="a100", memory_gb=40.0, accumulate=2, measured=_LIKE_H100, **_ON_A_GPU),
    "h100": Profile(name="h100", memory_gb=80.0, measured=_H100, **_ON_A_GPU),
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


def with_options(profile: Profile, **options: Any) -> Profile:
    """The profile with the options that were given; None: as the profile has it.

    Raises `ProfileError` for a value that its setting cannot have.
    """
    return replace(profile, **{name: value for name, value in options.items() if value is not None})


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
            workers=1,  # for four sessions a second browser is started longer than it plays
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
    sessions = int((memory - 7.1) / 0.05)
    return replace(profile, clients=max(8, min(profile.clients, sessions)))


# What the machine and the scale decide; COURSE_DEVICE, for one, is a variable of the set-up.
_NO_VARIABLES = ("name", "device", "memory_gb", "scale", "measured")


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
    "less_than_equal": "{said} is too large: use {le:.10g} or less, or unset it.",
    "less_than": "{said} is too large: use less than {lt:.10g}, or unset it.",
    "string_too_short": "{said} is empty: give it a value, or unset it.",
    "string_pattern_mismatch": "{said} is no address: use http://host:port, or unset it.",
    "finite_number": "{said} is not a finite number: correct it or unset it.",
    "int_type": _NO_WHOLE_NUMBER,
    "int_parsing": _NO_WHOLE_NUMBER,
    "int_parsing_size": "{said} is too large: correct it or unset it.",
    "int_from_float": _NO_WHOLE_NUMBER,
    "float_type": _NO_NUMBER,
    "float_parsing": _NO_NUMBER,
}
_ANY_OTHER = "{said} cannot be used ({message}): correct it or unset it."


def _short(value: Any) -> str:
    """A value as it was given, in one line that is not too long to be read."""
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _sentence(error: ValidationError) -> str:
    """The first thing that pydantic found, in one sentence that names the variable."""
    problem = error.errors()[0]
    setting = str(problem["loc"][0])
    facts = dict(problem.get("ctx", {}))
    if "expected" in facts:
        facts["expected"] = facts["expected"].replace("'", "")
    return _SENTENCES.get(problem["type"], _ANY_OTHER).format(
        said=f"COURSE_{setting.upper()}={_short(problem['input'])}",
        setting=setting,
        settings=", ".join(field.name for field in fields(Settings)),
        message=problem["msg"],
        **facts,
    )
