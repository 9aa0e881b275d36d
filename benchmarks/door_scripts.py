"""The text-match agent in a policy's place, at each door into a task.

So all doors can be given the same actions: a harness wants a generator, TRL's tools want calls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from helpers.browser.actions import ACTIONS, parse_action
from helpers.episodes.harness import BrowserSession, BrowserSessions
from helpers.evaluation.agents import text_match_agent
from helpers.policy.completions import Completion

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.episodes.play import Agent
    from helpers.learning.trainer import ToolsGRPOTrainer


class HarnessScript:
    """An agent in the generator's place, for a harness: it looks at the session made last."""

    def __init__(
        self,
        sessions: Sequence[BrowserSession],
        tokenizer: PreTrainedTokenizerBase,
        agent: Agent = text_match_agent,
    ):
        self.sessions = sessions
        self.tokenizer = tokenizer
        self.agent = agent

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 0,
    ) -> list[Completion]:
        """The agent's answer; each of its tokens has logprob 0."""
        running = self.sessions[-1].running
        answer = self.agent(running.observation, len(running.episode.turns))
        ids = [*self.tokenizer(answer)["input_ids"], self.tokenizer.eos_token_id]
        return [Completion(ids, [0.0] * len(ids))]


def remembered_sessions() -> tuple[Any, list[BrowserSession]]:
    """A patch under which every new harness session is also put into the list."""
    made: list[BrowserSession] = []
    create = BrowserSessions.create

    def remember(sessions: BrowserSessions, task: str, *arguments: Any) -> BrowserSession:
        made.append(create(sessions, task, *arguments))
        return made[-1]

    return patch.object(BrowserSessions, "create", remember), made


def tool_call(action: str) -> str:
    """An action as Qwen3's template writes it."""
    parsed = parse_action(action)
    names = [param.name for param in ACTIONS[parsed.name].params]
    call = {"name": parsed.name, "arguments": dict(zip(names, parsed.args, strict=True))}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def script_tools(
    trainer: ToolsGRPOTrainer, prompt_ids: list[list[int]], *_: Any, **__: Any
) -> tuple[list[list[int]], None]:
    """The agent in the place of the trainer's ``_generate_single_turn``: the next tool call of
    every episode."""
    ids = []
    for environment in trainer.answering:
        session = environment.session
        if session.over:
            text = "Done."
        else:
            turn = len(session.episode.turns)
            text = tool_call(text_match_agent(session.running.observation, turn))
        ids.append(trainer._tokenizer(text + "<|im_end|>")["input_ids"])
    return ids, None
