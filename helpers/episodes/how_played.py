"""How episodes are played: by default, in a training run, and when a policy is tested.

Each function makes a `RolloutConfig`. One config may serve several tasks: all of them then read one
prompt, the union of what each needs, and keep their own number of turns. A policy that was trained
in another way than the default keeps it in a file of its folder (`keep_how`), so that whoever plays
with it asks it as it was taught.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from helpers.episodes.config import RolloutConfig
from helpers.episodes.tasks import task_names, task_spec
from helpers.policy.prompts import PromptConfig
from helpers.settings.files import RunFileError, read_object, write_json
from helpers.settings.profiles import Profile

LONGEST_SHOWN = 1_400  # tokens of an episode that a warm-up shows, unless it is told otherwise
HOW = "how_played.json"  # in the folder of a policy


def rollout_config(
    tasks: str | Sequence[str], examples: bool = True, **changes: Any
) -> RolloutConfig:
    """The way a task (or several) is played by default.

    Without ``examples`` the prompt shows no worked ones: a policy that has learned the format needs
    none. ``changes``: fields of `RolloutConfig`.
    """
    names = task_names(tasks)
    specs = [task_spec(name) for name in names]
    shown: tuple[str, ...] = ()
    if examples:
        # Those that show a field serve a task of clicks, too, and not the other way round.
        shown = max((spec.examples for spec in specs), key=lambda names: "field" in names)
    config = RolloutConfig(
        max_turns=max(spec.max_turns for spec in specs),
        max_tokens=max(spec.max_tokens for spec in specs),
        turns=_turns_of_each(names),
        prompt=PromptConfig(
            actions=max((spec.actions for spec in specs), key=len),
            examples=shown,
            free_text=any(spec.free_text for spec in specs),
        ),
    )
    return replace(config, **changes)


def episode_config(profile: Profile) -> RolloutConfig:
    """How the profile's episodes are played in training: as its policy was taught, where that one's
    folder says so (`keep_how`), else as the tasks are by default."""
    kept = taught_config(profile.policy, profile.temperature, profile.top_k)
    return kept or _as_trained(profile.tasks, profile)


def evaluation_config(
    tasks: str | Sequence[str],
    taught: str | Sequence[str],
    profile: Profile,
    temperature: float = 0.0,
) -> RolloutConfig:
    """How a policy is tested on ``tasks``: greedily, unless a ``temperature`` is given.

    It reads the prompt of the tasks that it was ``taught``. Each task keeps its own number of
    turns, unless the profile has one for all.
    """
    turns = {}
    if not profile.max_turns:
        turns = _turns_of_each((*task_names(tasks), *task_names(taught)))
    return replace(_as_trained(taught, profile), temperature=temperature, top_k=0, turns=turns)


def _as_trained(tasks: str | Sequence[str], profile: Profile) -> RolloutConfig:
    """How ``tasks`` are played in training with the settings of a profile."""
    config = rollout_config(
        tasks,
        examples=profile.examples == "task",
        temperature=profile.temperature,
        top_k=profile.top_k,
    )
    if profile.max_turns:
        config = replace(config, max_turns=profile.max_turns, turns={})
    if profile.max_tokens:
        config = replace(config, max_tokens=profile.max_tokens)
    return config


def _turns_of_each(tasks: Sequence[str]) -> dict[str, int]:
    """Each task's number of turns, where there are several: one alone has ``max_turns``."""
    turns = {name: task_spec(name).max_turns for name in tasks}
    return turns if len(turns) > 1 else {}


@dataclass(frozen=True)
class Taught:
    """What a policy was taught, and how: it is asked in the same way."""

    tasks: tuple[str, ...]
    config: RolloutConfig

    @property
    def thinking(self) -> tuple[str, ...]:
        """Of the tasks those whose answers begin with a line of thought."""
        return self.tasks if self.config.prompt.thoughts else self.config.thinks


def taught_more(before: Taught, after: Taught) -> Taught:
    """How a policy is asked after another lesson: for the tasks of both, as the new lesson asks,
    and with the room that either of them gives.

    A task that the new lesson left out, as too long for it, is not forgotten for that.
    """
    old, new = before.config, after.config
    tasks = _all_of(before.tasks, after.tasks)
    actions = _all_of(old.prompt.actions, new.prompt.actions)
    config = replace(
        new,
        prompt=replace(new.prompt, actions=actions),
        max_turns=max(old.max_turns, new.max_turns),
        max_tokens=max(old.max_tokens, new.max_tokens),
        max_length=max(old.max_length, new.max_length),
        turns={
            task: max(each.config.turns_of(task) for each in (before, after) if task in each.tasks)
            for task in tasks
        },
    )
    return thinking_on(_all_of(before.thinking, after.thinking), Taught(tasks, config))


def thinking_on(thinking: Collection[str], taught: Taught) -> Taught:
    """The same policy, asked for a thought on these of its tasks, and on no others of them.

    Where they are all of its tasks, an unknown task is asked for thoughts, too.
    """
    everywhere = set(taught.tasks) <= set(thinking)
    some = () if everywhere else tuple(task for task in taught.tasks if task in thinking)
    prompt = replace(taught.config.prompt, thoughts=everywhere)
    return Taught(taught.tasks, replace(taught.config, prompt=prompt, thinks=some))


def _all_of(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Each of them once, in their order."""
    return tuple(dict.fromkeys((*some, *others)))


def keep_how(policy: Path, taught: Taught) -> None:
    """Write into the folder of a policy how it was taught."""
    config = asdict(taught.config)
    write_json(policy / HOW, {"tasks": taught.tasks, "config": config})


def taught_config(policy: str, temperature: float = 0.0, top_k: int = 0) -> RolloutConfig | None:
    """How a policy by name is asked where its folder says it; None where it does not.

    Raises `RunFileError` as `kept_how`.
    """
    taught = kept_how(policy)
    if taught is None:
        return None
    return replace(taught.config, temperature=temperature, top_k=top_k)


def kept_how(policy: str) -> Taught | None:
    """How a policy by name was taught; None where it does not say, or is no folder.

    Raises `RunFileError` where the file is not one that `keep_how` wrote.
    """
    path = Path(policy) / HOW
    if not path.exists():
        return None
    kept = read_object(path) or {}
    try:
        prompt = dict(kept["config"]["prompt"])
        for name in ("actions", "examples"):
            prompt[name] = tuple(prompt[name])
        read = {"prompt": PromptConfig(**prompt), "thinks": tuple(kept["config"].get("thinks", ()))}
        config = RolloutConfig(**{**kept["config"], **read})
        return Taught(tuple(kept["tasks"]), config)
    except (KeyError, TypeError):
        raise RunFileError(
            f"{path} is damaged: delete it, and the policy is asked as its tasks are by default."
        ) from None
