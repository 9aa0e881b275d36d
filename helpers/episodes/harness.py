"""OpenEnv's harness as a door into the same task: a session offers the browser's actions as tools, a harness plays the episode.

    python -m scripts.harness --policy runs/05/policy --task click-button --n 50

The command is a black-box evaluation: the policy is a program that sees messages and tools, and nothing of the trainer. With a
trainer, `stock_rollout_func` is OpenEnv's own loop, and `ledger_rollout_func` ours behind the same interface: one sequence per
episode that only grows, and a mask.
"""

from collections.abc import Callable
from typing import Any

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import (
    CLIHarnessAdapter,
    HarnessRolloutResult,
    HarnessRunLimits,
    MCPHarnessAdapter,
    ModelStepResult,
    ResourceSession,
    ResourceSessionFactory,
    ToolResult,
    ToolTraceEntry,
    VerifyResult,
    build_harness_rollout_func,
)
from openenv.core.llm_client import LLMResponse, ToolCall

from helpers.browser.actions import ACTIONS, format_action, parse_action
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.ledger import POLICY, check_rollout
from helpers.episodes.play import Running, act, begin, extend
from helpers.episodes.rollout_func import rollout_columns
from helpers.policy.choosing import trainer_generator
from helpers.policy.prompts import build_messages, observation_text, prompt_ids

NO_ACTION = "no_action"  # the tool of an answer that is no call; it is not offered


SCHEMA = {
    "bid": {"type": "string"},
    "str": {"type": "string"},
    "strs": {"type": "string"},
    "number": {"type": "integer"},
}


class BrowserSession(ResourceSession):
    """One episode. ``run`` holds the client, the latest observation and the `Episode` that is written down meanwhile."""

    def __init__(self, client: Any, spec: EpisodeSpec, tokenizer: Any, config: RolloutConfig):
        self.run, self.config = Running(0, Episode(spec.task, spec.seed), client), config
        begin(self.run, tokenizer, config)

    def initial_messages(self) -> list[dict]:
        return build_messages(self.run.observation, self.config.prompt)

    def list_tools(self) -> list[Tool]:
        return [
            Tool(
                name=name,
                description=ACTIONS[name].doc,
                input_schema={
                    "type": "object",
                    "properties": {p.name: SCHEMA[p.type] for p in ACTIONS[name].params},
                    "required": [p.name for p in ACTIONS[name].params if p.default is None],
                },
            )
            for name in self.config.prompt.actions
        ]

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """One turn. What is no action on this page costs it, and the result says why; the reward is not written into the chat.
        Raises KeyError for an unknown tool, ValueError where the episode is over or arguments are missing."""
        if self.run.episode.ended:
            raise ValueError("The episode is over: make a new session.")
        act(self.run, self.answer(name, arguments), self.config)
        seen, episode = self.run.observation, self.run.episode
        if not episode.ended and len(episode.turns) >= self.config.turns_of(episode.task):
            episode.ended = "turn_limit"
        text = (
            "The episode is over."
            if episode.ended
            else observation_text(seen, self.config.prompt, first=False)
        )
        return ToolResult(
            text, bool(episode.ended), {"reward": episode.reward or 0.0}, seen.error or None
        )

    def answer(self, name: str, arguments: dict[str, Any]) -> str:
        """A tool call as the text that a policy of this course would have written."""
        if name == NO_ACTION:
            return arguments["answer"]
        if name not in self.config.prompt.actions:
            raise KeyError(
                f"There is no tool {name!r}: use one of {', '.join(self.config.prompt.actions)}."
            )
        values = [arguments.get(p.name, p.default) for p in ACTIONS[name].params]
        if None in values or len(arguments) > len(values):
            raise ValueError(
                f"{name} takes {', '.join(p.name for p in ACTIONS[name].params)}, not {', '.join(arguments)}."
            )
        return format_action(name, *values)

    def verify(self, transcript: list[dict], final_state: Any | None = None) -> VerifyResult:
        """The harness knows no episode without a reward; what the infrastructure ended is marked in the metrics."""
        episode = self.run.episode
        metrics = dict((final_state or {}).get("metrics", {})) | {
            "strict_reward": episode.reward,
            "ended": episode.ended,
        }
        return VerifyResult(
            env_reward=episode.reward or 0.0, done=bool(episode.ended), metrics=metrics
        )

    def close(self) -> None:
        """The client belongs to whoever opened it."""


class BrowserSessions(ResourceSessionFactory[BrowserSession]):
    """Makes sessions on one client; ``task`` is ``str(EpisodeSpec)``, as in the trainer's dataset."""

    def __init__(self, client: Any, tokenizer: Any, config: RolloutConfig):
        self.client, self.tokenizer, self.config = client, tokenizer, config

    def create(
        self, task: Any, seed: int | None = None, episode_id: str | None = None
    ) -> BrowserSession:
        spec = EpisodeSpec.read(task) if seed is None else EpisodeSpec(task, seed)
        return BrowserSession(self.client, spec, self.tokenizer, self.config)


def read_call(text: str) -> ToolCall:
    """The one tool call of an answer: our parser stands in front of the harness."""
    parsed = parse_action(text)
    if not parsed.ok:
        return ToolCall("1", NO_ACTION, {"answer": text})
    return ToolCall(
        "1",
        parsed.name,
        dict(zip([p.name for p in ACTIONS[parsed.name].params], parsed.args, strict=True)),
    )


def chat_ids(tokenizer: Any, messages: list[dict]) -> list[int]:
    """A harness's messages as a prompt, for a template that knows no tools: their results are the user's messages."""
    roles = {"tool": "user"}
    return prompt_ids(
        tokenizer,
        [{"role": roles.get(m["role"], m["role"]), "content": m["content"]} for m in messages],
    )


def model_step_builder(tokenizer: Any, config: RolloutConfig, generator: Any = None) -> Callable:
    """The trainer's side of a white-box harness: messages in; token ids, their logprobs and one tool call out. It samples with
    ``generator``, or else with the trainer's own. ``sampling["prompt_ids"]`` goes before the messages."""

    def build(trainer: Any, session: ResourceSession) -> Callable:
        chosen = generator or trainer_generator(trainer, tokenizer)

        def step(
            messages: list[dict], tools: list[Tool], sampling: dict[str, Any]
        ) -> ModelStepResult:
            ids = sampling.get("prompt_ids") or chat_ids(tokenizer, messages)
            answer = chosen.generate([ids], config.max_tokens, config.temperature)[0]
            text = tokenizer.decode(answer.ids, skip_special_tokens=True)
            return ModelStepResult(
                LLMResponse(text, [read_call(text)]), ids, answer.ids, answer.logprobs
            )

        return step

    return build


class LedgerAdapter(MCPHarnessAdapter):
    """Our rollout as a harness: the ledger of the session's episode is all that the model step reads, and it only grows. The
    result has no field for a mask, so the trainer's columns leave among the metrics."""

    def __init__(self, tokenizer: Any, config: RolloutConfig):
        self.tokenizer, self.config = tokenizer, config

    def run_white_box(
        self, model_step: Callable, session: BrowserSession, limits: HarnessRunLimits | None = None
    ) -> HarnessRolloutResult:
        episode, result = session.run.episode, HarnessRolloutResult()
        while not episode.ended:
            step = model_step([], session.list_tools(), {"prompt_ids": list(episode.ledger.ids)})
            episode.ledger.append(step.completion_ids, POLICY, step.logprobs)
            call = step.response.tool_calls[0]
            result.tool_trace.append(
                ToolTraceEntry(call.name, call.args, session.call_tool(call.name, call.args))
            )
            extend(session.run, self.tokenizer, self.config)
        columns = {
            name: column[0] for name, column in rollout_columns([episode], self.tokenizer).items()
        }
        result.prompt_ids, result.completion_ids, result.logprobs = (
            columns[name] for name in ("prompt_ids", "completion_ids", "logprobs")
        )
        result.done, result.metrics = True, {"columns": columns}
        return result


def stock_rollout_func(
    client: Any, tokenizer: Any, config: RolloutConfig, generator: Any = None
) -> Callable:
    """OpenEnv's ``rollout_func`` with its own adapter: exact for episodes of one turn, and without a mask."""
    return build_harness_rollout_func(
        session_factory=BrowserSessions(client, tokenizer, config),
        harness_adapter=MCPHarnessAdapter(),
        model_step_builder=model_step_builder(tokenizer, config, generator),
        limits=HarnessRunLimits(max_turns=config.max_turns),
    )


def ledger_rollout_func(
    client: Any, tokenizer: Any, config: RolloutConfig, generator: Any = None
) -> Callable:
    """OpenEnv's ``rollout_func`` with `LedgerAdapter`; what it returns is what `helpers.episodes.rollout_func.make_rollout_func` returns."""
    play = build_harness_rollout_func(
        session_factory=BrowserSessions(client, tokenizer, config),
        harness_adapter=LedgerAdapter(tokenizer, config),
        model_step_builder=model_step_builder(tokenizer, config, generator),
    )

    def rollout_func(prompts: list[str], trainer: Any) -> dict[str, list]:
        rows = [metrics["columns"] for metrics in play(prompts, trainer)["verify_metrics"]]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        check_rollout(columns, trainer.num_generations if trainer else 1)
        return columns

    return rollout_func


def black_box(tokenizer: Any, config: RolloutConfig, generator: Any) -> CLIHarnessAdapter:
    """A policy as a program of its own: it keeps a chat, and acts through JSON-RPC requests and nothing else."""

    def play(
        bridge: Any, session: ResourceSession, limits: HarnessRunLimits
    ) -> HarnessRolloutResult:
        messages, done = list(session.initial_messages()), False
        while not done and sum(m["role"] == "tool" for m in messages) < limits.max_turns:
            answer = generator.generate(
                [chat_ids(tokenizer, messages)], config.max_tokens, config.temperature
            )[0]
            text = tokenizer.decode(answer.ids, skip_special_tokens=True)
            call = read_call(text)
            reply = bridge.handle_request(
                {
                    "jsonrpc": "2.0",
                    "id": len(messages),
                    "method": "tools/call",
                    "params": {"name": call.name, "arguments": call.args},
                }
            )
            result = reply.get("result") or {"data": reply["error"]["message"], "done": False}
            messages += [
                {"role": "assistant", "content": text},
                {"role": "tool", "content": result["data"]},
            ]
            done = result["done"]
        return HarnessRolloutResult(messages=messages, done=done)

    return CLIHarnessAdapter(play)
