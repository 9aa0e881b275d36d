"""The other door into the same task: the browser as tools of `GRPOTrainer` (``environment_factory``), in text or with pictures.

    python -m scripts.train_tools --policy qwen3-vl-2b --task click-test --observation both --output runs/eyes

TRL makes one environment per rollout, offers its public methods to the policy as tools, calls them, and hands what they return
(text, pictures) to the policy and to the training pass. So the policy's template has to know tools (Qwen3, LFM2.5), and pictures
need a processor (Qwen3-VL, LFM2.5-VL). ``--observation``: tree, screenshot, both or marks (the screenshot with the numbers drawn
in). Everything else is a variable of `helpers.settings.profiles`, as in scripts/train.py.
"""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

from helpers.browser.actions import ACTIONS, format_action, parse_action
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode, Turn
from helpers.policy.prompts import observation_text, page_lines
from helpers.settings.profiles import ProfileError

OBSERVATIONS = ("tree", "screenshot", "both", "marks")


PAGE = (0, 0, 160, 210)  # where a task draws; the rest of the screenshot is grey


OVER = "The episode is over."


SYSTEM = "You use a web page. Act with one tool call at a time."


_TYPES = {"bid": str, "str": str, "strs": str, "number": int}


_ABOUT = {
    "bid": "the number of the element",
    "str": "the text",
    "strs": "the option",
    "number": "a whole number",
}


def picture(seen: Any, marks: bool = False) -> Any:
    """The page of an observation as a ``PIL.Image`` of 160 x 210; ``marks``: with a box and the bid at each clickable element."""
    from PIL import ImageDraw

    image = seen.image().crop(PAGE)
    draw = ImageDraw.Draw(image)
    for e in seen.elements if marks else ():
        if e.clickable and e.box:
            x, y, width, height = e.box
            draw.rectangle((x, y, x + width, y + height), outline="#D55E00")
            right = (
                PAGE[2] - draw.textlength(e.bid) - 1
            )  # at the page's edge a number stands on its element
            draw.text((min(x + width + 1, right), y), e.bid, fill="#D55E00")
    return image


def content(seen: Any, config: RolloutConfig, observation: str, first: bool) -> Any:
    """What the policy is shown of an observation: text, or content blocks with the picture first."""
    text = observation_text(
        seen, replace(config.prompt, page=observation in ("tree", "both")), first
    )
    if observation == "tree":
        return text
    if (
        observation == "screenshot"
    ):  # which numbers there are, and where; what they are, the picture has to tell
        where = [
            f"{e.bid} at {e.box[0]:.0f},{e.box[1]:.0f}"
            for e in seen.elements
            if e.clickable and e.box
        ]
        text = "\n".join([*where, text])
    return [
        {"type": "image", "image": picture(seen, observation == "marks")},
        {"type": "text", "text": text},
    ]


def encode(processor: Any, shown: Any) -> Any:
    """What `content` returns as the first message of a chat, encoded: a batch of one with ids, mask and pixels."""
    blocks = [{"type": "text", "text": shown}] if isinstance(shown, str) else shown
    return processor.apply_chat_template(
        [{"role": "user", "content": blocks}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )


class BrowserTools:
    """One rollout's browser. `browser_tools` makes the class that has a public method per action."""

    def __init__(
        self, client: Any, config: RolloutConfig, observation: str, threads: ThreadPoolExecutor
    ):
        self._client, self._config, self._observation, self._threads = (
            client,
            config,
            observation,
            threads,
        )
        self._seen, self._ahead, self.episode = None, None, Episode("", 0)

    def reset(self, spec: str, **_: Any) -> Any:
        """Start the episode that the row of the dataset names; returns what its first page shows."""
        self.episode = Episode(**asdict(EpisodeSpec.read(spec)))
        self._look("reset", spec)
        self.episode.goal = self._seen.goal
        return content(self._seen, self._config, self._observation, first=True)

    def get_reward(self) -> float | None:
        """Strict success; None where the infrastructure failed."""
        return self.episode.reward

    def _call(self, name: str, argument: str) -> Any:
        """Reset or step, in whatever thread."""
        pictured = self._observation != "tree"
        if name == "reset":
            spec = EpisodeSpec.read(argument)
            return self._client.reset(spec.task, spec.seed, screenshot=pictured)
        return self._client.step(argument, screenshot=pictured)

    def _begin(self, name: str, argument: str) -> None:
        """Start a call that TRL is about to make: it makes them one after another, the browsers can work side by side."""
        self._ahead = (name, argument, self._threads.submit(self._call, name, argument))

    def _look(self, name: str, argument: str) -> None:
        """Take the outcome of a call, or of the same call that was begun earlier, into the episode."""
        ahead, self._ahead = self._ahead, None
        begun = ahead is not None and ahead[:2] == (name, argument)
        seen = self._seen = ahead[2].result() if begun else self._call(name, argument)
        if seen.done:
            self.episode.reward, self.episode.raw_reward, self.episode.ended = (
                seen.reward,
                seen.raw_reward,
                seen.ended,
            )
            self.episode.infrastructure_error = seen.infrastructure_error

    def _over(self) -> bool:
        return bool(self.episode.ended) or len(self.episode.turns) >= self._config.turns_of(
            self.episode.task
        )

    def _action(self, name: str, arguments: dict[str, Any]) -> str:
        """The action string of a tool call; raises TypeError where the arguments are others than the tool's."""
        bound = inspect.signature(getattr(self, name)).bind(**arguments)
        bound.apply_defaults()
        return format_action(name, *bound.args)

    def _act(self, action: str) -> Any:
        """One turn: what is no action on this page costs it, and the policy is told the reason."""
        if self._over():
            return OVER
        before = self._seen
        parsed = parse_action(action, frozenset(e.bid for e in before.elements))
        turn = Turn(
            page_lines(before.axtree_txt, before.goal),
            action,
            parsed,
            0.0,
            parsed.reason,
            before.screenshot,
        )
        self.episode.turns.append(turn)
        if parsed.ok:
            self._look("step", parsed.action)
            turn.reward, turn.error = self._seen.reward, self._seen.error
        else:
            self._seen = before.model_copy(
                update={"error": parsed.reason, "last_action_error": True}
            )
        if self._over():
            self.episode.ended = self.episode.ended or "turn_limit"
            return OVER
        return content(self._seen, self._config, self._observation, first=False)


def _tool(name: str) -> Callable:
    """An action as a method with types and a docstring: TRL makes the tool's schema of them."""
    spec, kind = ACTIONS[name], inspect.Parameter.POSITIONAL_OR_KEYWORD

    def tool(self, **arguments):
        return self._act(self._action(name, arguments))

    types = {p.name: _TYPES[p.type] for p in spec.params}
    tool.__name__ = tool.__qualname__ = name
    tool.__annotations__ = types | {"return": str}
    tool.__signature__ = inspect.Signature(
        [inspect.Parameter("self", kind)]
        + [
            inspect.Parameter(
                p.name,
                kind,
                annotation=types[p.name],
                default=inspect.Parameter.empty if p.default is None else p.default,
            )
            for p in spec.params
        ]
    )
    tool.__doc__ = f"{spec.doc}\n\nArgs:\n" + "\n".join(
        f"    {p.name}: {_ABOUT[p.type]}" for p in spec.params
    )
    return tool


def browser_tools(
    clients: Sequence[Any], config: RolloutConfig, observation: str = "tree"
) -> Callable[[], BrowserTools]:
    """The ``environment_factory`` for `ToolsGRPOTrainer`: each call takes the next of ``clients``, one per episode of an update.

    ``observation``: one of `OBSERVATIONS`. The rows of the dataset hold ``spec`` (``str(EpisodeSpec)``) beside their prompt.
    """
    if observation not in OBSERVATIONS:
        raise ProfileError(
            f"The observation {observation!r} is unknown: use one of {', '.join(OBSERVATIONS)}."
        )
    free, threads = list(clients), ThreadPoolExecutor(len(clients))
    kind = type("Browser", (BrowserTools,), {name: _tool(name) for name in config.prompt.actions})

    def factory() -> BrowserTools:
        if not free:
            raise ProfileError(
                f"An update has more episodes than the {len(clients)} browser sessions: set COURSE_CLIENTS."
            )
        return kind(free.pop(0), config, observation, threads)

    return factory
