"""Plays many episodes at once: one generation call per turn for all that are alive, the browsers stepped in parallel."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from helpers.browser.actions import parse_action
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT
from helpers.policy.generators import Completion, Generator
from helpers.policy.prompts import (
    build_messages,
    continuation_ids,
    observation_text,
    page_lines,
    prompt_ids,
)


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
        episode.reward, episode.ended, episode.infrastructure_error = (
            None,
            "infrastructure_error",
            seen.infrastructure_error,
        )
    elif seen.done:
        episode.reward, episode.raw_reward, episode.ended = seen.reward, seen.raw_reward, seen.ended
    episode.last_screenshot = seen.screenshot or episode.last_screenshot
    return bool(episode.ended)


def act(run: Running, answer: str, config: RolloutConfig) -> None:
    """Parse one answer and step. An answer that is no action costs its turn; the policy is told the reason."""
    before = run.observation
    bids = frozenset(e.bid for e in before.elements) or None
    parsed = parse_action(answer, bids)
    box = (
        next((e.box for e in before.elements if parsed.args and e.bid == parsed.args[0]), None)
        if parsed.ok
        else None
    )
    turn = Turn(
        page_lines(before.axtree_txt, before.goal),
        answer,
        parsed,
        0.0,
        parsed.reason,
        before.screenshot,
        box,
    )
    run.episode.turns.append(turn)
    if parsed.ok:
        last = len(run.episode.turns) >= config.turns_of(
            run.episode.task
        )  # then nobody reads the page again
        run.observation = run.client.step(
            parsed.action, screenshot=config.screenshots, observe=not last
        )
        turn.error, turn.reward = run.observation.error, run.observation.reward
        _finish_if_done(run)
    else:
        run.observation = before.model_copy(
            update={"error": parsed.reason, "last_action_error": True}
        )


def extend(run: Running, tokenizer: Any, config: RolloutConfig) -> None:
    """Write the next observation into the ledger, or end the episode at one of its limits."""
    episode = run.episode
    if episode.ended:
        return
    if len(episode.turns) >= config.turns_of(episode.task):
        episode.ended = "turn_limit"
        return
    message = observation_text(run.observation, config.prompt, first=False)
    ids = continuation_ids(
        tokenizer, message, ended=episode.ledger.ids[-1] == tokenizer.eos_token_id
    )
    if len(episode.ledger.ids) + len(ids) + config.max_tokens > config.max_length:
        episode.ended = "length_limit"
        return
    episode.ledger.append(ids, ENVIRONMENT)


def _answers(
    alive: list[Running], generator: Any, tokenizer: Any, config: RolloutConfig
) -> list[Completion]:
    """One answer per running episode, from a policy or from a script (logprob 0: it was certain)."""
    if script := getattr(generator, "answer", None):
        texts = [script(run.observation, len(run.episode.turns)) for run in alive]
        ids = [
            [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
            for text in texts
        ]
        return [Completion(i, [0.0] * len(i)) for i in ids]
    return generator.generate(
        [run.episode.ledger.ids for run in alive],
        config.max_tokens,
        config.temperature,
        config.top_k,
    )


def play_episodes(
    specs: Sequence[EpisodeSpec],
    clients: Sequence[Any],
    generator: Generator,
    tokenizer: Any,
    config: RolloutConfig = RolloutConfig(),
    progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
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
            fresh = [
                Running(i, episodes[i], idle.pop())
                for i in (waiting.pop() for _ in range(min(len(idle), len(waiting))))
            ]
            list(threads.map(lambda run: begin(run, tokenizer, config), fresh))
            running += fresh
            alive = [run for run in running if not run.episode.ended]
            answers = _answers(alive, generator, tokenizer, config)
            for run, answer in zip(alive, answers, strict=True):
                run.episode.ledger.append(answer.ids, POLICY, answer.logprobs)
            texts = tokenizer.batch_decode(
                [answer.ids for answer in answers], skip_special_tokens=True
            )
            list(threads.map(lambda run, text: act(run, text, config), alive, texts))
            for run in alive:
                extend(run, tokenizer, config)
            idle += [run.client for run in running if run.episode.ended]
            running = [run for run in running if not run.episode.ended]
            if progress:
                progress(len(specs) - len(waiting) - len(running), len(specs))
    return episodes


Agent = Callable[[Any, int], str]  # (observation, turn) -> action


def play_agent(
    agent: Agent,
    specs: Sequence[EpisodeSpec],
    clients: Sequence[Any],
    max_turns: int = 3,
    screenshots: bool = False,
) -> list[Episode]:
    """Play every episode of ``specs`` with an agent; the same `Episode`s as `helpers.episodes.play.play_episodes`, without tokens."""
    free = list(clients)

    def play(spec: EpisodeSpec) -> Episode:
        client, episode = free.pop(), Episode(spec.task, spec.seed)
        try:
            seen = client.reset(spec.task, spec.seed, screenshot=screenshots)
            episode.goal = seen.goal
            while not (seen.done or seen.infrastructure_error) and len(episode.turns) < max_turns:
                action = agent(seen, len(episode.turns))
                parsed = parse_action(action)
                box = next(
                    (e.box for e in seen.elements if parsed.args and e.bid == parsed.args[0]), None
                )
                turn = Turn(
                    page_lines(seen.axtree_txt, seen.goal),
                    action,
                    parsed,
                    screenshot=seen.screenshot,
                    box=box,
                )
                seen = client.step(action, screenshot=screenshots)
                turn.reward, turn.error = seen.reward, seen.error
                episode.turns.append(turn)
            episode.last_screenshot = seen.screenshot
            episode.reward = None if seen.infrastructure_error else float(seen.reward or 0.0)
            episode.raw_reward, episode.infrastructure_error = (
                seen.raw_reward,
                seen.infrastructure_error,
            )
            episode.ended = seen.ended or "turn_limit"
            return episode
        finally:
            free.append(client)

    with ThreadPoolExecutor(max_workers=len(clients)) as threads:
        return list(threads.map(play, specs))
