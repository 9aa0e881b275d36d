"""The other door into the same task: the browser as tools of `GRPOTrainer` (``environment_factory``), in text or with pictures.

    python -m scripts.train_tools --policy qwen3-vl-2b --task click-test --observation both --output runs/eyes

TRL makes one environment per rollout, offers its public methods to the policy as tools, calls them, and hands what they return
(text, pictures) to the policy and to the training pass. So the policy's template has to know tools (Qwen3, LFM2.5), and pictures
need a processor (Qwen3-VL, LFM2.5-VL). ``--observation``: tree, screenshot, both or marks (the screenshot with the numbers drawn
in). Everything else is a variable of `helpers.profiles`, as in scripts/train.py.
"""

import argparse
import contextlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from helpers.actions import ACTIONS, format_action, parse_action
from helpers.browser import BrowserServerError
from helpers.episodes import Episode, Turn
from helpers.generation import prepare_vllm
from helpers.policies import POLICIES, PolicyError, load_policy, policy_path, quiet_transformers
from helpers.profiles import Profile, ProfileError
from helpers.prompts import observation_text, page_lines
from helpers.rollouts import EpisodeSpec, RolloutConfig
from helpers.training import (
    BrowserGRPOTrainer,
    Recorder,
    episode_config,
    grpo_config,
    lora_config,
    run_facts,
    training_specs,
    vllm_in_precision,
)
from scripts.train import chosen_profile, open_browsers

OBSERVATIONS = ("tree", "screenshot", "both", "marks")
PAGE = (0, 0, 160, 210)  # where a task draws; the rest of the screenshot is grey
OVER = "The episode is over."
SYSTEM = "You use a web page. Act with one tool call at a time."
_TYPES = {"bid": str, "str": str, "strs": str, "number": int}
_ABOUT = {"bid": "the number of the element", "str": "the text", "strs": "the option", "number": "a whole number"}


def picture(seen: Any, marks: bool = False) -> Any:
    """The page of an observation as a ``PIL.Image`` of 160 x 210; ``marks``: with a box and the bid at each clickable element."""
    from PIL import ImageDraw

    image = seen.image().crop(PAGE)
    draw = ImageDraw.Draw(image)
    for e in seen.elements if marks else ():
        if e.clickable and e.box:
            x, y, width, height = e.box
            draw.rectangle((x, y, x + width, y + height), outline="#D55E00")
            right = PAGE[2] - draw.textlength(e.bid) - 1  # at the page's edge a number stands on its element
            draw.text((min(x + width + 1, right), y), e.bid, fill="#D55E00")
    return image


def content(seen: Any, config: RolloutConfig, observation: str, first: bool) -> Any:
    """What the policy is shown of an observation: text, or content blocks with the picture first."""
    text = observation_text(seen, replace(config.prompt, page=observation in ("tree", "both")), first)
    if observation == "tree":
        return text
    if observation == "screenshot":  # which numbers there are, and where; what they are, the picture has to tell
        where = [f"{e.bid} at {e.box[0]:.0f},{e.box[1]:.0f}" for e in seen.elements if e.clickable and e.box]
        text = "\n".join([*where, text])
    return [{"type": "image", "image": picture(seen, observation == "marks")}, {"type": "text", "text": text}]


def encode(processor: Any, shown: Any) -> Any:
    """What `content` returns as the first message of a chat, encoded: a batch of one with ids, mask and pixels."""
    blocks = [{"type": "text", "text": shown}] if isinstance(shown, str) else shown
    return processor.apply_chat_template([{"role": "user", "content": blocks}], add_generation_prompt=True, tokenize=True,
                                         return_dict=True, return_tensors="pt")


class BrowserTools:
    """One rollout's browser. `browser_tools` makes the class that has a public method per action."""

    def __init__(self, client: Any, config: RolloutConfig, observation: str, threads: ThreadPoolExecutor):
        self._client, self._config, self._observation, self._threads = client, config, observation, threads
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
            self.episode.reward, self.episode.raw_reward, self.episode.ended = seen.reward, seen.raw_reward, seen.ended
            self.episode.infrastructure_error = seen.infrastructure_error

    def _over(self) -> bool:
        return bool(self.episode.ended) or len(self.episode.turns) >= self._config.turns_of(self.episode.task)

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
        turn = Turn(page_lines(before.axtree_txt, before.goal), action, parsed, 0.0, parsed.reason, before.screenshot)
        self.episode.turns.append(turn)
        if parsed.ok:
            self._look("step", parsed.action)
            turn.reward, turn.error = self._seen.reward, self._seen.error
        else:
            self._seen = before.model_copy(update={"error": parsed.reason, "last_action_error": True})
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
    tool.__signature__ = inspect.Signature([inspect.Parameter("self", kind)] + [
        inspect.Parameter(p.name, kind, annotation=types[p.name],
                          default=inspect.Parameter.empty if p.default is None else p.default) for p in spec.params])
    tool.__doc__ = f"{spec.doc}\n\nArgs:\n" + "\n".join(f"    {p.name}: {_ABOUT[p.type]}" for p in spec.params)
    return tool


def browser_tools(clients: Sequence[Any], config: RolloutConfig, observation: str = "tree") -> Callable[[], BrowserTools]:
    """The ``environment_factory`` for `ToolsGRPOTrainer`: each call takes the next of ``clients``, one per episode of an update.

    ``observation``: one of `OBSERVATIONS`. The rows of the dataset hold ``spec`` (``str(EpisodeSpec)``) beside their prompt.
    """
    if observation not in OBSERVATIONS:
        raise ProfileError(f"The observation {observation!r} is unknown: use one of {', '.join(OBSERVATIONS)}.")
    free, threads = list(clients), ThreadPoolExecutor(len(clients))
    kind = type("Browser", (BrowserTools,), {name: _tool(name) for name in config.prompt.actions})

    def factory() -> BrowserTools:
        if not free:
            raise ProfileError(f"An update has more episodes than the {len(clients)} browser sessions: set COURSE_CLIENTS.")
        return kind(free.pop(0), config, observation, threads)

    return factory


class ToolsGRPOTrainer(BrowserGRPOTrainer):
    """`GRPOTrainer` with an ``environment_factory`` of `browser_tools`. Two things are added: the browsers work side by side, and
    an episode that is over gets no more answers."""

    def _generate_and_score_completions(self, inputs):
        pool = self._environment_pool[None]
        while len(pool) < len(inputs):
            pool.append(self.environment_factories[None]())
        for environment, row in zip(pool, inputs, strict=False):
            environment._begin("reset", row["spec"])
        self._answering = None
        result = super()._generate_and_score_completions(inputs)
        episodes = [environment.episode for environment in self.environments]
        for episode in episodes:  # an answer without a call ends TRL's loop
            episode.ended = episode.ended or "no_call"
        self.recorder.on_batch(episodes)
        return result

    def _generate_single_turn(self, prompt_ids, *arguments, **named):
        """One answer each; then the calls in them begin in all browsers at once. No answer where the episode is over: an empty
        one ends TRL's loop for this rollout."""
        ids, logprobs = super()._generate_single_turn(prompt_ids, *arguments, **named)
        environments = self.environments if self._answering is None else self._answering
        if len(environments) != len(ids):  # TRL has left one out, whose text grew too long; nothing is begun ahead then
            return ids, logprobs
        self._answering = []
        for i, environment in enumerate(environments):
            if environment._over():
                ids[i] = []
                if logprobs is not None:
                    logprobs[i] = []
            elif calls := self._calls(ids[i], prompt_ids[i]):
                self._answering.append(environment)
                function = calls[0].get("function", {})
                if function.get("name") in ACTIONS and len(calls) == 1:
                    self._begin_step(environment, function["name"], function["arguments"])
        return ids, logprobs

    def _calls(self, ids: list[int], prompt_ids: list[int]) -> list[dict]:
        from trl.chat_template_utils import parse_response

        return parse_response(self._tokenizer, ids, prefix=prompt_ids, tools=self.tools).get("tool_calls") or []

    @staticmethod
    def _begin_step(environment: BrowserTools, name: str, arguments: dict[str, Any]) -> None:
        try:
            action = environment._action(name, arguments)
        except (TypeError, AttributeError):  # TRL will tell the policy
            return
        if parse_action(action, frozenset(e.bid for e in environment._seen.elements)).ok:
            environment._begin("step", action)


def small_policy_with_eyes(seed: int = 0) -> tuple[Any, Any]:
    """A Qwen3-VL of 3 million random weights, built from its config, and a processor of SmolLM2's tokenizer, Qwen's image
    processor and the template that TRL ships: all goes through the same code as with the real model, but it can do nothing."""
    import torch
    from transformers import ProcessorMixin, Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from trl.chat_template_utils import qwen3_vl_chat_template

    names = ["vision_start", "vision_end", "image_pad", "video_pad"]
    tokenizer = load_policy("smollm2-135m", weights=False).tokenizer
    tokenizer.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in names]})
    start, end, image, video = tokenizer.convert_tokens_to_ids([f"<|{name}|>" for name in names])

    class Processor(Qwen3VLProcessor):
        """Without its part for videos, which wants torchvision."""

        def __init__(self, image_processor=None, tokenizer=None, chat_template=None):
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)
            self.vision_start_token, self.vision_end_token, self.image_token, self.video_token = (f"<|{name}|>" for name in names)
            self.vision_start_token_id, self.vision_end_token_id = start, end
            self.image_token_id, self.video_token_id = image, video

    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(Qwen3VLConfig(
        text_config={"vocab_size": len(tokenizer), "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "rope_parameters": {
                         "rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3], "mrope_interleaved": True}},
        vision_config={"depth": 2, "hidden_size": 32, "num_heads": 4, "intermediate_size": 64, "out_hidden_size": 64,
                       "patch_size": 16, "spatial_merge_size": 2, "num_position_embeddings": 256,
                       "deepstack_visual_indexes": [0]},
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end,
        tie_word_embeddings=True))
    pictures = Qwen2VLImageProcessorPil(patch_size=16, merge_size=2, size={"shortest_edge": 32**2, "longest_edge": 256**2})
    return model, Processor(pictures, tokenizer, chat_template=qwen3_vl_chat_template)


def load_with_processor(name: str, profile: Profile) -> tuple[Any, Any]:
    """Model and processor of a policy with eyes (``small-with-eyes``: random weights), model and tokenizer of one without; raises
    `PolicyError`."""
    if name == "small-with-eyes":
        return small_policy_with_eyes()
    if name in POLICIES and not POLICIES[name].vision:
        policy = load_policy(name, profile.dtype, profile.device)
        return policy.model, policy.tokenizer
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    quiet_transformers()
    path = policy_path(name)
    try:
        model = AutoModelForImageTextToText.from_pretrained(path, dtype=getattr(torch, profile.dtype)).to(profile.device)
        return model, AutoProcessor.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise PolicyError(f"{name!r} ({path}) could not be loaded as a policy with eyes: it needs weights and a processor "
                          f"({str(error).splitlines()[0][:150]}).") from error


def build_tools_trainer(profile: Profile, model: Any, processing_class: Any, clients: Sequence[Any], folder: Path | str,
                        observation: str = "tree", lora: bool = False,
                        show: Callable[[str], None] | None = None) -> ToolsGRPOTrainer:
    """As `helpers.training.build_trainer`, through the other door."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl.chat_template_utils import supports_tool_calling

    if not supports_tool_calling(processing_class):
        raise PolicyError(f"The chat template of {profile.policy!r} takes no tools: choose a policy whose template does (Qwen3, "
                          "Qwen3-VL, LFM2.5), or train it with make train.")
    if observation != "tree" and not hasattr(processing_class, "image_processor"):
        raise PolicyError(f"{profile.policy!r} has no processor for pictures: use --observation tree, or a policy with eyes.")
    config = episode_config(profile)
    arguments = grpo_config(profile, folder, lora)
    arguments.max_tool_calling_iterations = max(config.turns_of(task) for task in profile.task.split(","))
    limit = "max_tokens" if arguments.use_vllm else "max_new_tokens"
    arguments.generation_kwargs = {limit: 8 * config.max_tokens}  # a call as JSON takes more than click('13')
    rows = [{"prompt": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ""}], "spec": str(spec)}
            for spec in training_specs(profile, profile.updates * profile.groups)]
    recorder = Recorder(Path(folder), profile.updates, show)
    quiet_transformers()
    prepare_vllm()
    with vllm_in_precision(profile.dtype) if arguments.use_vllm else contextlib.nullcontext():
        trainer = ToolsGRPOTrainer(
            model=model, processing_class=processing_class, args=arguments, train_dataset=Dataset.from_list(rows),
            reward_funcs=[], environment_factory=browser_tools(clients, config, observation), callbacks=[recorder],
            peft_config=lora_config(profile, model.config.model_type) if lora else None)
    trainer.remove_callback(PrinterCallback)
    trainer.recorder = recorder
    return trainer


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy")
    parser.add_argument("--task")
    parser.add_argument("--updates", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--observation", default="tree", help=", ".join(OBSERVATIONS))
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--output", default="runs/tools")
    options = parser.parse_args(arguments)
    try:
        profile = chosen_profile(options)
        model, processing_class = load_with_processor(profile.policy, profile)
        begin = time.monotonic()
        with open_browsers(replace(profile, clients=profile.batch)) as clients:
            trainer = build_tools_trainer(profile, model, processing_class, clients, options.output, options.observation,
                                          options.lora)
            trainer.train()
    except (ProfileError, PolicyError, BrowserServerError) as error:
        print(error, file=sys.stderr)
        return 2
    trainer.save_model(str(Path(options.output) / "policy"))
    rewards = [row["reward"] for row in trainer.recorder.rows]
    result = {"profile": asdict(profile), "observation": options.observation, "lora": options.lora,
              "seconds": round(time.monotonic() - begin, 1), "rewards": rewards, **run_facts()}
    (Path(options.output) / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
