"""The lessons, one after the other: from a policy that has never seen anything to one that clicks
what it is told to.

Stopped at any moment, the same call goes on where it was last kept.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter

from helpers.episodes.tasks import TEST_SEEDS, TRAIN_SEEDS
from helpers.evaluation.statistics import wilson_interval
from helpers.learning.eyes import answers, encoder
from helpers.learning.eyes.lessons import TASKS
from helpers.learning.eyes.pages import KeptPages, kept_pages
from helpers.output import Progress, percent, table
from helpers.policy.eyes import keep_eyes, kept_eyes, policy_with_eyes, policy_with_new_eyes
from helpers.policy.loading import cache_dir
from helpers.settings.errors import ProfileError

if TYPE_CHECKING:
    from transformers import LlavaForConditionalGeneration, LlavaProcessor

KEEP_EVERY = 20  # steps
WARM_UP = 20  # steps in which the learning rate rises
LAST_SHARE = 0.03  # of the learning rate, at the end


@dataclass(frozen=True)
class Course:
    """What is learned from, and for how long."""

    first: tuple[str, ...] = TASKS
    """Tasks whose pages the encoder learns from."""
    second: tuple[str, ...] = ("click-color",)
    """Tasks on whose pages it learns where to look, a step each in turn."""
    third: tuple[str, ...] = ("click-color", "identify-shape", "click-color", "count-sides")
    """Tasks whose questions it answers with a click, a step each in turn."""
    pages: int = 2_000
    """Of each task, all of them training pages."""
    first_steps: int = 400
    first_batch: int = 32
    second_steps: int = 300
    third_steps: int = 240
    batch: int = 4
    """Pages of a step of the second and of the third lesson, all of one task."""
    questions: int = 8
    """Of each page, at most."""
    learning_rate: float = 1e-3
    seed: int = 0
    held_out: int = 200
    """Test pages of each task, for the tables."""

    def __post_init__(self) -> None:
        unknown = sorted({*self.first, *self.second, *self.third} - {*TASKS})
        if unknown:
            raise ProfileError(
                f"There are no questions for {', '.join(unknown)}: choose among {', '.join(TASKS)}."
            )


@dataclass
class Lesson:
    """One lesson as it goes on: its weights, their optimizer, and how far it is."""

    name: str
    steps: int
    weights: list[Parameter]
    """All that learns."""
    highest_rate: float
    folder: Path
    losses: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.AdamW(self.weights, betas=(0.9, 0.98), weight_decay=0.0)

    @property
    def path(self) -> Path:
        """The file in which it is kept."""
        return self.folder / f"{self.name}.pt"

    def go(self, loss_of_step: Callable[[int], Tensor]) -> None:
        """All steps that are left; ``loss_of_step`` depends on the number of the step alone."""
        self._load()
        with Progress(self.steps, self.name, initial=len(self.losses)) as progress:
            while len(self.losses) < self.steps:
                begin = time.monotonic()
                self._step(loss_of_step)
                self.seconds += time.monotonic() - begin
                progress.reach(len(self.losses), f"loss {self.losses[-1]:.2f}")
                if len(self.losses) % KEEP_EVERY == 0 or len(self.losses) == self.steps:
                    self._save()

    def _step(self, loss_of_step: Callable[[int], Tensor]) -> None:
        done = len(self.losses)
        share = min(1.0, (done + 1) / WARM_UP) * max(LAST_SHARE, 1 - done / self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = self.highest_rate * share
        loss = loss_of_step(done)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.losses.append(loss.item())

    def _save(self) -> None:
        """Whole or not at all: it may be stopped while it writes."""
        state = {
            "weights": [weight.detach() for weight in self.weights],
            "optimizer": self.optimizer.state_dict(),
            "losses": self.losses,
            "seconds": self.seconds,
        }
        scratch = self.path.with_suffix(".new")
        torch.save(state, scratch)
        scratch.replace(self.path)

    def _load(self) -> None:
        if not self.path.exists():
            return
        state = torch.load(self.path)
        for weight, kept in zip(self.weights, state["weights"], strict=True):
            weight.data.copy_(kept)
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses = state["losses"]
        self.seconds = state["seconds"]


def learn_to_see(
    folder: Path, course: Course = Course(), begin: Path | None = None
) -> dict[str, Any]:
    """Draw the pages, give the lessons, and write the eyes into ``folder``/eyes after each of them;
    returns what is to be said of them. The same call after an interruption goes on. Without steps
    a lesson is left out: eyes of the first lesson alone tell things apart, and the language model
    has not learned to answer with what they tell.

    ``begin``: a folder of eyes that have had the first lesson, and maybe more: then it goes on with
    their adapter.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        task: kept_pages(cache_dir() / "eyes", task, TRAIN_SEEDS[: course.pages])
        for task in dict.fromkeys(course.first + course.second + course.third)
    }
    about: dict[str, Any] = {"course": asdict(course), "seconds": {}, "losses": {}}
    kept: dict[str, Tensor] = {}
    if begin is None:
        model, processor = policy_with_new_eyes(seed=course.seed)
        sets = [pages[task] for task in course.first]
        _note(about, "first", first_lesson(model, processor, sets, folder, course))
    else:
        model, processor = policy_with_eyes(begin, adapted=False)
        kept = {name: weight for name, weight in kept_eyes(begin).items() if "lora_" in name}
    about["squares"] = tell_apart(model, processor, course)
    keep_eyes(model, folder / "eyes", about)
    adapter = answers.prepare(model, kept)
    for order, name, tasks, steps, loss in (
        ("second", "where to look", course.second, course.second_steps, answers.look_loss),
        ("third", "where to click", course.third, course.third_steps, answers.answer_loss),
    ):
        if tasks and steps:
            lesson = Lesson(name, steps, adapter, course.learning_rate, folder)
            sets = [pages[task] for task in tasks]
            question_lesson(lesson, loss, model, processor, sets, course, order)
            _note(about, order, lesson)
            keep_eyes(model, folder / "eyes", about)
    return about


def _note(about: dict[str, Any], name: str, lesson: Lesson) -> None:
    """Write down how long a lesson took, and how it went."""
    about["seconds"][name] = round(lesson.seconds)
    about["losses"][name] = _thinned(lesson.losses)


def _thinned(losses: Sequence[float], points: int = 50) -> list[float]:
    """About so many of them, each the mean of its neighbours."""
    size = max(1, len(losses) // points)
    parts = [losses[start : start + size] for start in range(0, len(losses), size)]
    return [round(sum(part) / len(part), 4) for part in parts]


def first_lesson(
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    sets: Sequence[KeptPages],
    folder: Path,
    course: Course,
) -> Lesson:
    """What stands in each square (`helpers.learning.eyes.encoder`)."""
    dictionary = encoder.Dictionary.of(model, processor.tokenizer)
    inner: Any = model.model
    model.requires_grad_(False)
    eyes = [*inner.vision_tower.parameters(), *inner.multi_modal_projector.parameters()]
    for weight in eyes:
        weight.requires_grad_(True)
    lesson = Lesson("what stands where", course.first_steps, eyes, course.learning_rate, folder)

    def loss(step: int) -> Tensor:
        draw = random.Random(f"{course.seed} first {step}")
        pixels, labels = next(encoder.batches(sets, course.first_batch, draw))
        return encoder.lesson_loss(encoder.tokens_of(model, pixels), labels, dictionary)

    lesson.go(loss)
    return lesson


def question_lesson(
    lesson: Lesson,
    loss: Callable[[LlavaForConditionalGeneration, answers.Rows], Tensor],
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    sets: Sequence[KeptPages],
    course: Course,
    order: str,
) -> None:
    """The second or the third lesson: questions about pages (`helpers.learning.eyes.answers`), all
    of a step about pages of one task."""

    def loss_of_step(step: int) -> Tensor:
        draw = random.Random(f"{course.seed} {order} {step}")
        one_task = [sets[step % len(sets)]]
        rows = answers.batches(processor.tokenizer, one_task, course.batch, course.questions, draw)
        return loss(model, next(rows))

    lesson.go(loss_of_step)


def tell_apart(
    model: LlavaForConditionalGeneration, processor: LlavaProcessor, course: Course
) -> dict[str, dict[str, list[float]]]:
    """For each task of the first lesson and each group of words: in how many squares of held-out
    pages that show something the nearest word is right, of how many, and the interval; the same for
    white paper ("blind")."""
    dictionary = encoder.Dictionary.of(model, processor.tokenizer)
    found: dict[str, dict[str, list[float]]] = {}
    for task in course.first:
        pages = kept_pages(cache_dir() / "eyes", task, TEST_SEEDS[: course.held_out])
        labels = torch.stack(
            [torch.from_numpy(encoder.labels_of(pages, n)) for n in range(len(pages))]
        )
        pixels = encoder.pixel_values(pages.pixels[:])
        for name, shown in (task, pixels), (f"{task}, blind", torch.ones_like(pixels)):
            with torch.inference_mode():
                counts = encoder.accuracy(encoder.tokens_of(model, shown), labels, dictionary)
            found[name] = {
                group: [right, of, *wilson_interval(right, of)]
                for group, (right, of) in counts.items()
                if of
            }
    return found


def show_squares(found: dict[str, dict[str, list[float]]]) -> str:
    """The table of `tell_apart`: percent, with 95 % intervals."""
    groups = [*encoder.GROUPS, *encoder.PLACES]
    rows = [
        [task, *[_percent(counts.get(group)) for group in groups]] for task, counts in found.items()
    ]
    return table(["squares named right, %", *groups], rows)


def _percent(count: list[float] | None) -> str:
    if count is None:
        return "-"
    right, of, low, high = count
    return percent(right / of, low, high, sign="")
