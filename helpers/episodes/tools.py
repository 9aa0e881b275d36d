"""The browser as tools of `GRPOTrainer`: the other door to the same tasks, in text or pictures.

TRL makes one environment per rollout (``environment_factory``), offers its public methods to the
policy as tools, calls them, and hands what they return (text, pictures) to the policy and to the
training pass. So the policy's template has to know tools (Qwen3, LFM2.5), and pictures need a
processor (Qwen3-VL, LFM2.5-VL). ``python -m scripts.train_tools`` trains through it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from helpers.browser.actions import EVERY_ACTION, format_action
from helpers.browser.options import SCALE, SMALL
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.running import OVER, RunningEpisode
from helpers.episodes.threads import Ended, Threads
from helpers.policy.eyes import looked_at
from helpers.policy.prompts import observation_text
from helpers.settings.errors import ProfileError

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import BatchEncoding, ProcessorMixin

    from helpers.browser.models import BrowserObservation, Client

    Content = str | list[dict[str, Any]]

OBSERVATIONS = ("tree", "screenshot", "both", "marks", "picture")
"""What the policy sees: the page's lines; its picture with the places of the elements; lines and
picture; the picture with the elements' numbers drawn in; the picture below the goal and nothing
else, for a policy that acts on places (`helpers.policy.eyes`)."""

SYSTEM = "You use a web page. Act with one tool call at a time."

_PAGE = (0, 0, 160, 210)  # where a task draws; the rest of the small screenshot is grey
_MARK = "#D55E00"

# For the tools' schemas: the types of `helpers.browser.actions.Param` in Python, and in words.
_TYPES = {"bid": str, "str": str, "strs": str, "number": int}
_ABOUT = {
    "bid": "the number of the element",
    "str": "the text",
    "strs": "the option",
    "number": "a whole number",
}


def picture(seen: BrowserObservation, marks: bool = False) -> Image:
    """The page of an observation, 160 x 210 pixels.

    ``marks``: with a box and the number at each clickable element. Raises ValueError where the
    observation has no screenshot.
    """
    from PIL import ImageDraw

    image = seen.image().resize(SMALL).crop(_PAGE)
    if not marks:
        return image
    draw = ImageDraw.Draw(image)
    for element in seen.elements:
        if element.clickable and element.box:
            x, y, width, height = (number / SCALE for number in element.box)
            draw.rectangle((x, y, x + width, y + height), outline=_MARK)
            # Beside the element, or on it where it stands at the page's right edge.
            rightmost = _PAGE[2] - draw.textlength(element.bid) - 1
            draw.text((min(x + width + 1, rightmost), y), element.bid, fill=_MARK)
    return image


def content(
    seen: BrowserObservation, config: RolloutConfig, observation: str, first: bool
) -> Content:
    """What the policy is shown of an observation: text, or content blocks with the picture first.

    ``observation``: one of `OBSERVATIONS`. ``first``: before the first answer, with the goal.
    """
    prompt = replace(config.prompt, page=observation in ("tree", "both"))
    text = observation_text(seen, prompt, first)
    if observation == "tree":
        return text
    if observation == "picture":
        return [
            {"type": "image", "image": looked_at(picture(seen))},
            {"type": "text", "text": text},
        ]
    if observation == "screenshot":
        # Which numbers there are, and where; what they are, the picture has to tell.
        where = [
            f"{element.bid} at {element.box[0] / SCALE:.0f},{element.box[1] / SCALE:.0f}"
            for element in seen.elements
            if element.clickable and element.box
        ]
        text = "\n".join([*where, text])
    image = picture(seen, marks=observation == "marks")
    return [{"type": "image", "image": image}, {"type": "text", "text": text}]


def encode(processor: ProcessorMixin, shown: Content) -> BatchEncoding:
    """What `content` returns, as the first message of a chat, encoded.

    A batch of one, with ids, attention mask and, where there is a picture, pixels.
    """
    blocks = [{"type": "text", "text": shown}] if isinstance(shown, str) else shown
    chat: list[Any] = [{"role": "user", "content": blocks}]
    encoded = processor.apply_chat_template(
        chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    return cast("BatchEncoding", encoded)


class EagerClient:
    """A client whose next call can be started before it is made.

    TRL calls the tools of its rollouts one after another; what each call will be is known before,
    so the browsers can work side by side.
    """

    def __init__(self, client: Client, threads: Threads) -> None:
        self._client = client
        self._threads = threads
        self._started: tuple[Any, Ended] | None = None

    def start(self, method: str, *arguments: Any, **options: Any) -> None:
        """Start ``client.method(...)`` in a thread; the same call, made later, has its outcome."""
        ended: Ended = SimpleQueue()
        self._threads.start(partial(getattr(self._client, method), *arguments, **options), ended)
        self._started = ((method, arguments, options), ended)

    def reset(
        self, task: str = "click-button", seed: int = 0, screenshot: bool | str | None = None
    ) -> BrowserObservation:
        """As the client's `reset`."""
        return self._outcome("reset", task, seed, screenshot=screenshot)

    def step(
        self, action: str, screenshot: bool | str | None = None, observe: bool = True
    ) -> BrowserObservation:
        """As the client's `step`."""
        return self._outcome("step", action, screenshot=screenshot, observe=observe)

    def close(self) -> None:
        """As the client's `close`."""
        self._client.close()

    def _outcome(self, method: str, *arguments: Any, **options: Any) -> BrowserObservation:
        started, self._started = self._started, None
        if started is not None:
            asked, ended = started
            outcome = ended.get().outcome()  # whichever it was: a client makes one call at a time
            if asked == (method, arguments, options):
                return outcome
        return getattr(self._client, method)(*arguments, **options)


class ToolSession:
    """One rollout: the episode that is running, and the browser that it runs in.

    An instance plays one episode after another, as TRL uses its environments again.
    """

    def __init__(
        self, client: Client, config: RolloutConfig, observation: str, threads: Threads
    ) -> None:
        self._client = EagerClient(client, threads)
        self._config = replace(config, screenshots="small" if observation != "tree" else False)
        self._observation = observation
        self.running = self._new(EpisodeSpec("", 0))  # until the first reset

    def _new(self, spec: EpisodeSpec) -> RunningEpisode:
        return RunningEpisode.of(spec, self._client, self._config)

    @property
    def episode(self) -> Episode:
        """What has been written down of the episode."""
        return self.running.episode

    @property
    def over(self) -> bool:
        """Whether the episode takes no more calls."""
        return self.running.over

    def reset(self, spec: EpisodeSpec) -> Content:
        """Begin an episode; returns what its first page shows."""
        self.running = self._new(spec)
        self.running.reset()
        return self._shown(first=True)

    def act(self, action: str) -> Content:
        """One turn; returns what the page shows then, or that the episode is over."""
        if self.over:
            return OVER
        self.running.act(action)
        return self._shown(first=False)

    def start_reset(self, spec: EpisodeSpec) -> None:
        """Start the reset that TRL is about to ask for."""
        self._client.start("reset", spec.task, spec.seed, screenshot=self._config.screenshots)

    def start_call(self, name: str | None, arguments: Any) -> None:
        """Start the step of a tool call that TRL is about to make.

        Name and arguments are as the policy wrote them. Nothing is started where TRL will refuse
        the call, or where it is no action on this page.
        """
        if name not in self._config.prompt.actions:
            return
        try:
            action = call_text(name, arguments)
        except TypeError:
            return
        parsed = self.running.parse(action)
        if parsed.ok:
            self._client.start(
                "step",
                parsed.action,
                screenshot=self._config.screenshots,
                observe=not self.running.last_turn,
            )

    def _shown(self, first: bool) -> Content:
        if self.over:
            return OVER
        return content(self.running.observation, self._config, self._observation, first)


class BrowserTools:
    """An environment as TRL wants it; `browser_tools` adds a method for each action.

    Every public method is a tool of the policy, so all else is in ``session``.
    """

    def __init__(self, session: ToolSession) -> None:
        self.session = session

    def reset(self, spec: str, **_: Any) -> Content:
        """Begin the episode that a row of the dataset names; returns what its first page shows."""
        return self.session.reset(EpisodeSpec.read(spec))

    def get_reward(self) -> float | None:
        """Strict success; None where the infrastructure failed."""
        return self.session.episode.reward


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call as the text of its action, such as ``click('13')``.

    Raises TypeError where the arguments are others than the tool's.
    """
    bound = _signature(name).bind(**arguments)
    bound.apply_defaults()
    return format_action(name, *bound.args)


def _signature(name: str) -> inspect.Signature:
    """An action's parameters as those of a Python function."""
    return inspect.Signature(
        [
            inspect.Parameter(
                param.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                annotation=_TYPES[param.type],
                default=inspect.Parameter.empty if param.default is None else param.default,
            )
            for param in EVERY_ACTION[name].params
        ]
    )


def _tool(name: str) -> Callable[..., Content]:
    """An action as a method with types and a docstring: TRL makes the tool's schema of them."""
    params = EVERY_ACTION[name].params

    def tool(self: BrowserTools, **arguments: Any) -> Content:
        return self.session.act(call_text(name, arguments))

    tool.__name__ = tool.__qualname__ = name
    about = "\n".join(f"    {param.name}: {_ABOUT[param.type]}" for param in params)
    tool.__doc__ = f"{EVERY_ACTION[name].doc}\n\nArgs:\n{about}"
    tool.__annotations__ = {param.name: _TYPES[param.type] for param in params} | {"return": str}
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *_signature(name).parameters.values()])
    tool.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return tool


def browser_tools(
    clients: Sequence[Client], config: RolloutConfig, observation: str = "tree"
) -> Callable[[], BrowserTools]:
    """The ``environment_factory`` for `helpers.learning.trainer.ToolsGRPOTrainer`.

    Each call takes the next of ``clients``, one per episode of an update. ``observation``: one of
    `OBSERVATIONS`. The rows of the dataset hold ``spec`` (``str(EpisodeSpec)``) beside their
    prompt. Raises `ProfileError` for an unknown observation, and when the clients are used up.
    """
    if observation not in OBSERVATIONS:
        raise ProfileError(
            f"The observation {observation!r} is unknown: use one of {', '.join(OBSERVATIONS)}."
        )
    free = list(clients)
    threads = Threads(len(clients))
    tools = {name: _tool(name) for name in config.prompt.actions}
    environment = type("Browser", (BrowserTools,), tools)

    def factory() -> BrowserTools:
        if not free:
            raise ProfileError(
                f"An update has more episodes than the {len(clients)} browser sessions: set "
                "COURSE_CLIENTS."
            )
        return environment(ToolSession(free.pop(0), config, observation, threads))

    return factory
