"""Plays many episodes at once: one generation call per turn for all that are alive, the browsers stepped in parallel."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from helpers.actions import parse_action
from helpers.episodes import ENVIRONMENT, POLICY, PROMPT, Episode, Turn, check_rollout
from helpers.generation import Completion, Generator, TransformersGenerator, VLLMGenerator, VLLMServerGenerator
from helpers.prompts import PromptConfig, build_messages, continuation_ids, observation_text, page_lines, prompt_ids


@dataclass(frozen=True)
class EpisodeSpec:
    """Which episode to play: a MiniWoB task and the seed that fixes its instance."""

    task: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}#{self.seed}"

    @classmethod
    def read(cls, text: str) -> "EpisodeSpec":
        """Read back ``str(spec)``."""
        task, _, seed = text.rpartition("#")
        return cls(task, int(seed))


@dataclass(frozen=True)
class RolloutConfig:
    """How episodes are played. ``max_turns``: actions per episode; ``max_tokens``: tokens per answer; ``max_length``: tokens
    of a whole episode; ``temperature`` 0 is greedy; ``top_k`` 0 is off, and has to be off while training. ``turns``: tasks
    whose episodes have another number of turns, where one config serves several."""

    max_turns: int = 1
    max_tokens: int = 16
    temperature: float = 1.0
    top_k: int = 0
    max_length: int = 1536
    prompt: PromptConfig = field(default_factory=PromptConfig)
    screenshots: bool = False
    turns: dict[str, int] = field(default_factory=dict)

    def turns_of(self, task: str) -> int:
        return self.turns.get(task, self.max_turns)


@dataclass
class Running:
    """An episode being played, the client that plays it and its latest observation."""

    index: int
    episode: Episode
    client: Any
    observation: Any = None


def begin(run: Running, tokenizer: Any, config: RolloutConfig) -> None:
    """Reset the client on the episode's task and seed; write the prompt into the ledger."""
    episode = run.episode
    run.observation = run.client.reset(episode.task, episode.seed, screenshot=config.screenshots)
    episode.goal = run.observation.goal
    if _finish_if_done(run):
        return
    ids = prompt_ids(tokenizer, build_messages(run.observation, config.prompt))
    episode.ledger.append(ids, PROMPT)
    if len(ids) + config.max_tokens > config.max_length:
        episode.ended = "length_limit"


def _finish_if_done(run: Running) -> bool:
    """Copy the outcome into the episode where the observation ends it."""
    seen, episode = run.observation, run.episode
    if seen.infrastructure_error:
        episode.reward, episode.ended, episode.infrastructure_error = None, "infrastructure_error", seen.infrastructure_error
    elif seen.done:
        episode.reward, episode.raw_reward, episode.ended = seen.reward, seen.raw_reward, seen.ended
    episode.last_screenshot = seen.screenshot or episode.last_screenshot
    return bool(episode.ended)


def act(run: Running, answer: str, config: RolloutConfig) -> None:
    """Parse one answer and step. An answer that is no action costs its turn; the policy is told the reason."""
    before = run.observation
    bids = frozenset(e.bid for e in before.elements) or None
    parsed = parse_action(answer, bids)
    box = next((e.box for e in before.elements if parsed.args and e.bid == parsed.args[0]), None) if parsed.ok else None
    turn = Turn(page_lines(before.axtree_txt, before.goal), answer, parsed, 0.0, parsed.reason, before.screenshot, box)
    run.episode.turns.append(turn)
    if parsed.ok:
        last = len(run.episode.turns) >= config.turns_of(run.episode.task)  # then nobody reads the page again
        run.observation = run.client.step(parsed.action, screenshot=config.screenshots, observe=not last)
        turn.error, turn.reward = run.observation.error, run.observation.reward
        _finish_if_done(run)
    else:
        run.observation = before.model_copy(update={"error": parsed.reason, "last_action_error": True})


def extend(run: Running, tokenizer: Any, config: RolloutConfig) -> None:
    """Write the next observation into the ledger, or end the episode at one of its limits."""
    episode = run.episode
    if episode.ended:
        return
    if len(episode.turns) >= config.turns_of(episode.task):
        episode.ended = "turn_limit"
        return
    message = observation_text(run.observation, config.prompt, first=False)
    ids = continuation_ids(tokenizer, message, ended=episode.ledger.ids[-1] == tokenizer.eos_token_id)
    if len(episode.ledger.ids) + len(ids) + config.max_tokens > config.max_length:
        episode.ended = "length_limit"
        return
    episode.ledger.append(ids, ENVIRONMENT)


def _answers(alive: list[Running], generator: Any, tokenizer: Any, config: RolloutConfig) -> list[Completion]:
    """One answer per running episode, from a policy or from a script (logprob 0: it was certain)."""
    if script := getattr(generator, "answer", None):
        texts = [script(run.observation, len(run.episode.turns)) for run in alive]
        ids = [[*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id] for text in texts]
        return [Completion(i, [0.0] * len(i)) for i in ids]
    return generator.generate([run.episode.ledger.ids for run in alive], config.max_tokens, config.temperature, config.top_k)


def play_episodes(specs: Sequence[EpisodeSpec], clients: Sequence[Any], generator: Generator, tokenizer: Any,
                  config: RolloutConfig = RolloutConfig(), progress: Callable[[int, int], None] | None = None) -> list[Episode]:
    """Play every episode of ``specs``; returns them in that order.

    ``clients``: open `BrowserClient`s; as many episodes run at once. When one ends, its client takes the next, so the
    generation batch stays full. ``progress(done, of)`` is called as episodes end. A ``generator`` with a method
    ``answer(observation, turn) -> text`` is a script: its answers are written into the ledger as a policy's would be.
    """
    episodes = [Episode(spec.task, spec.seed) for spec in specs]
    waiting = list(range(len(specs)))[::-1]
    idle, running = list(clients), []
    with ThreadPoolExecutor(max_workers=max(1, len(clients))) as threads:
        while waiting or running:
            fresh = [Running(i, episodes[i], idle.pop()) for i in (waiting.pop() for _ in range(min(len(idle), len(waiting))))]
            list(threads.map(lambda run: begin(run, tokenizer, config), fresh))
            running += fresh
            alive = [run for run in running if not run.episode.ended]
            answers = _answers(alive, generator, tokenizer, config)
            for run, answer in zip(alive, answers, strict=True):
                run.episode.ledger.append(answer.ids, POLICY, answer.logprobs)
            texts = tokenizer.batch_decode([answer.ids for answer in answers], skip_special_tokens=True)
            list(threads.map(lambda run, text: act(run, text, config), alive, texts))
            for run in alive:
                extend(run, tokenizer, config)
            idle += [run.client for run in running if run.episode.ended]
            running = [run for run in running if not run.episode.ended]
            if progress:
                progress(len(specs) - len(waiting) - len(running), len(specs))
    return episodes


def rollout_columns(episodes: Sequence[Episode], tokenizer: Any) -> dict[str, list]:
    """The dict that ``rollout_func`` returns: the trainer's four columns and, for the reward functions, one more per fact.

    An episode that the infrastructure ended before the policy said a word still needs a token (TRL refuses an empty
    completion); its reward is None, which keeps it out of the group's baseline and sets its advantage to 0.
    """
    filler = {"prompt_ids": [tokenizer.eos_token_id], "completion_ids": [tokenizer.eos_token_id], "env_mask": [1],
              "logprobs": [0.0]}
    rows = [{**(e.ledger.columns() if e.ledger.completion_length else filler), "task": e.task, "seed": e.seed,
             "strict_reward": e.reward, "raw_reward": e.raw_reward, "turn_rewards": [t.reward for t in e.turns],
             "kinds": e.kinds, "ended": e.ended} for e in episodes]
    return {key: [row[key] for row in rows] for key in rows[0]}


def trainer_generator(trainer: Any, tokenizer: Any) -> Generator:
    """The generator of a trainer: its colocated vLLM engine, its vLLM server, or its own model."""
    if trainer.use_vllm and trainer.vllm_mode == "server":
        return VLLMServerGenerator(trainer.args.vllm_server_base_url)
    if trainer.use_vllm:
        return VLLMGenerator(trainer.vllm_generation.llm)
    return TransformersGenerator(trainer.accelerator.unwrap_model(trainer.model), tokenizer)


def make_rollout_func(clients: Sequence[Any], tokenizer: Any, config: RolloutConfig,
                      on_batch: Callable[[list[Episode]], None] | None = None) -> Callable[[list[str], Any], dict]:
    """Build the ``rollout_func`` of `GRPOTrainer`.

    The trainer calls it with prompts (``str(EpisodeSpec)``) that it has already repeated ``num_generations`` times, in group
    order; it gets back exactly one sample per prompt, checked by `check_rollout`. ``on_batch`` sees every batch of episodes.
    """

    def rollout_func(prompts: list[str], trainer: Any) -> dict[str, list]:
        generator = trainer_generator(trainer, tokenizer)
        episodes = play_episodes([EpisodeSpec.read(p) for p in prompts], clients, generator, tokenizer, config)
        columns = rollout_columns(episodes, tokenizer)
        check_rollout(columns, trainer.num_generations)
        if on_batch:
            on_batch(episodes)
        return columns

    return rollout_func
