"""What experiments that train adapters have in common: what they are made of, and one run of GRPO,
which goes on where it was stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from helpers.learning.checkpoints import saving
from helpers.learning.resuming import prepare_folder
from helpers.learning.run import build_trainer
from helpers.policy.lora import small_adapter
from helpers.settings.files import new_folder

if TYPE_CHECKING:
    from helpers.browser.models import Client
    from helpers.episodes.config import RolloutConfig
    from helpers.policy.loading import Policy
    from helpers.settings.profiles import Profile

UPDATES_KEPT = 5  # between two checkpoints


class Numbers(Protocol):
    """What a plan says of each run."""

    @property
    def updates(self) -> int:
        """Of the run."""
        ...

    @property
    def groups(self) -> int:
        """Of an update."""
        ...

    @property
    def group_size(self) -> int:
        """Episodes of a group."""
        ...

    @property
    def learning_rate(self) -> float:
        """Of the adapter."""
        ...


P = TypeVar("P", bound=Numbers)


@dataclass
class AdapterExperiment(Generic[P]):
    """An experiment whose parts are kept in ``folder``: what is there is done."""

    plan: P
    profile: Profile
    clients: Sequence[Client]
    folder: Path
    say: Callable[[str], None] = print

    def profile_of_run(self, start: Path | str, tasks: Sequence[str], seed: int) -> Profile:
        """The settings of a run from the adapter ``start`` on, with the plan's numbers."""
        plan = self.plan
        return replace(
            self.profile,
            policy=str(start),
            generator="transformers",
            task=",".join(tasks),
            updates=plan.updates,
            warmup=min(2, plan.updates // 5),
            groups=plan.groups,
            group_size=plan.group_size,
            lora_learning_rate=plan.learning_rate,
            save_every=UPDATES_KEPT,
            seed=seed,
        )

    def train_adapter(
        self, policy: Policy, profile: Profile, folder: Path, config: RolloutConfig, **options: Any
    ) -> None:
        """Train the adapter of ``policy`` from the last checkpoint in ``folder`` on, and keep it in
        ``folder/policy``. ``options`` are further ones of `build_trainer`."""
        checkpoint = prepare_folder(folder, profile, lora=True, resume=True)
        trainer = build_trainer(
            profile, policy, self.clients, folder, lora=True, config=config, **options
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        with new_folder(folder / "policy") as saved, saving(folder):
            trainer.save_model(str(saved))
            small_adapter(saved, policy.name)
