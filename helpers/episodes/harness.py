"""OpenEnv's harness as a door into the same tasks: a session offers the browser's actions as tools.

A harness then plays the episode: OpenEnv's own loop (`stock_rollout_func`), ours behind the same
interface (`ledger_rollout_func`: one sequence per episode that only grows, and a mask), or a black
box, a policy that sees messages and tools and nothing of the trainer (``python -m
scripts.harness``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import (
    CLIHarnessAdapter,
    HarnessRolloutResult,
    HarnessRunLimits,
    MCPHarnessAdapter,
    ModelStep,
    ModelStepResult,
    ResourceSession,
    ResourceSessionFactory,
    SessionMCPBridge,
    ToolResult,
    ToolTraceEntry,
    VerifyResult,
    build_harness_rollout_func,
)
from openenv.core.llm_client import LLMResponse, ToolCall
from typing_extensions import override

from helpers.browser.actions import ACTIONS, format_action, parse_action
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.ledger import POLICY, check_rollout
from helpers.episodes.players import write_page
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.running import OVER, RunningEpisode
from helpers.policy.choosing import trainer_generator
from helpers.policy.prompts import answer_text, build_messages, observation_text, prompt_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from trl import GRPOTrainer

    from helpers.browser.models import Client
    from helpers.policy.generators import Generator

    Message = dict[str, Any]
    RolloutFunc = Callable[[list[str], GRPOTrainer | None], dict[str, list]]

NO_ACTION = "no_action"  # the tool of an answer that is no call; it is not offered

# The types of `helpers.browser.actions.Param` as JSON schema.
_SCHEMAS = {
    "bid": {"type": "string"},
    "str": {"type": "string"},
    "strs": {"type": "string"},
    "number": {"type": "integer"},
}


class BrowserSession(ResourceSession):
    """One episode as a harness sees it; ``running`` has what is written down meanwhile."""

    def __init__(
        self,
        client: Client,
        spec: EpisodeSpec,
        tokenizer: PreTrainedTokenizerBase,
        config: RolloutConfig,
    ) -> None:
        self.running = RunningEpisode.of(spec, client, config)
        self.running.reset()
        if not self.running.over:
            write_page(self.running, tokenizer)

    @override
    def initial_messages(self) -> list[Message]:
        """The conversation before the first answer."""
        return list(build_messages(self.running.observation, self.running.prompt))

    @override
    def list_tools(self) -> list[Tool]:
        """One tool for each action that the prompt teaches."""
        return [_tool(name) for name in self.running.prompt.actions]

    @override
    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """One turn: what is no action on this page costs it, and the result says why.

        The reward is not written into the chat. Raises KeyError for an unknown tool, ValueError
        where the episode is over or arguments are missing.
        """
        running = self.running
        if running.over:
            raise ValueError("The episode is over: make a new session.")
        running.act(self.answer(name, arguments))
        if running.over:
            text = OVER
        else:
            text = observation_text(running.observation, self.running.prompt, first=False)
        reward = running.episode.reward or 0.0
        return ToolResult(text, running.over, {"reward": reward}, running.observation.error or None)

    def answer(self, name: str, arguments: dict[str, Any]) -> str:
        """A tool call as the text that a policy of this course would have written."""
        if name == NO_ACTION:
            return arguments["answer"]
        if name not in self.running.prompt.actions:
            offered = ", ".join(self.running.prompt.actions)
            raise KeyError(f"There is no tool {name!r}: use one of {offered}.")
        params = ACTIONS[name].params
        values = [arguments.get(param.name, param.default) for param in params]
        if None in values or len(arguments) > len(values):
            taken = ", ".join(param.name for param in params)
            raise ValueError(f"{name} takes {taken}, not {', '.join(arguments)}.")
        return format_action(name, *values)

    @override
    def verify(self, transcript: list[Message], final_state: Any | None = None) -> VerifyResult:
        """The outcome. The harness knows no episode without a reward, so a lost one has 0.

        What the infrastructure ended is marked in the metrics, where the strict reward is None.
        """
        episode = self.running.episode
        metrics = dict((final_state or {}).get("metrics", {}))
        metrics["strict_reward"] = episode.reward
        metrics["ended"] = episode.ended
        return VerifyResult(episode.reward or 0.0, self.running.over, metrics)

    @override
    def close(self) -> None:
        """The client belongs to whoever opened it."""


def _tool(name: str) -> Tool:
    """An action as a tool."""
    params = ACTIONS[name].params
    schema = {
        "type": "object",
        "properties": {param.name: _SCHEMAS[param.type] for param in params},
        "required": [param.name for param in params if param.default is None],
    }
    return Tool(name=name, description=ACTIONS[name].doc, input_schema=schema)


class BrowserSessions(ResourceSessionFactory[BrowserSession]):
    """Makes sessions on one client, one after another."""

    def __init__(
        self, client: Client, tokenizer: PreTrainedTokenizerBase, config: RolloutConfig
    ) -> None:
        self.client = client
        self.tokenizer = tokenizer
        self.config = config

    @override
    def create(
        self, task: str, seed: int | None = None, episode_id: str | None = None
    ) -> BrowserSession:
        """A new episode; without a ``seed`` the task is ``str(EpisodeSpec)``, as in a dataset."""
        spec = EpisodeSpec.read(task) if seed is None else EpisodeSpec(task, seed)
        return BrowserSession(self.client, spec, self.tokenizer, self.config)


def read_call(text: str) -> ToolCall:
    """The one tool call of an answer: our parser stands in front of the harness."""
    parsed = parse_action(text)
    if not parsed.ok:
        return ToolCall("1", NO_ACTION, {"answer": text})
    names = [param.name for param in ACTIONS[parsed.name].params]
    return ToolCall("1", parsed.name, dict(zip(names, parsed.args, strict=True)))


def chat_ids(tokenizer: PreTrainedTokenizerBase, messages: list[Message]) -> list[int]:
    """Token ids of a harness's messages, for a template that knows no tools.

    What a tool returned is a message of the user then.
    """
    chat = []
    for message in messages:
        role = "user" if message["role"] == "tool" else message["role"]
        chat.append({"role": role, "content": message["content"]})
    return prompt_ids(tokenizer, chat)


def model_step_builder(
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    generator: Generator | None = None,
) -> Callable[[GRPOTrainer | None, ResourceSession], ModelStep]:
    """The trainer's side of a white-box harness: messages in; ids, logprobs and one tool call out.

    It samples with ``generator``, or else with the trainer's own. Where ``sampling["prompt_ids"]``
    is given, it is read in place of the messages.
    """

    def build(trainer: GRPOTrainer | None, session: ResourceSession) -> ModelStep:
        chosen = generator or trainer_generator(cast("GRPOTrainer", trainer), tokenizer)

        def step(
            messages: list[Message], tools: list[Tool], sampling: dict[str, Any]
        ) -> ModelStepResult:
            ids = sampling.get("prompt_ids") or chat_ids(tokenizer, messages)
            answer = chosen.generate([ids], config.max_tokens, config.temperature)[0]
            text = answer_text(tokenizer, answer.ids)
            response = LLMResponse(text, [read_call(text)])
            return ModelStepResult(response, ids, answer.ids, answer.logprobs)

        return step

    return build


class LedgerAdapter(MCPHarnessAdapter):
    """Our rollout as a harness: the model step reads the ledger of the episode, which only grows.

    The result of a harness has no field for a mask, so the trainer's columns leave among the
    metrics.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer

    @override
    def run_white_box(
        self,
        model_step: ModelStep,
        session: ResourceSession,
        limits: HarnessRunLimits | None = None,
    ) -> HarnessRolloutResult:
        """Play the session's episode to its end."""
        running = cast(BrowserSession, session).running
        ledger, result = running.episode.ledger, HarnessRolloutResult(done=True)
        while not running.over:
            step = model_step([], session.list_tools(), {"prompt_ids": list(ledger.ids)})
            ledger.append(step.completion_ids, POLICY, step.logprobs)
            call = step.response.tool_calls[0]
            told = session.call_tool(call.name, call.args)
            result.tool_trace.append(ToolTraceEntry(call.name, call.args, told))
            if not running.over:
                write_page(running, self.tokenizer)
        columns = rollout_columns([running.episode], self.tokenizer)
        row = {name: column[0] for name, column in columns.items()}
        result.prompt_ids = row["prompt_ids"]
        result.completion_ids = row["completion_ids"]
        result.logprobs = row["logprobs"]
        result.metrics = {"columns": row}
        return result


def stock_rollout_func(
    client: Client,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    generator: Generator | None = None,
) -> RolloutFunc:
    """OpenEnv's ``rollout_func`` with its own adapter: exact for one turn, and without a mask."""
    return build_harness_rollout_func(
        session_factory=BrowserSessions(client, tokenizer, config),
        harness_adapter=MCPHarnessAdapter(),
        model_step_builder=model_step_builder(tokenizer, config, generator),
        limits=HarnessRunLimits(max_turns=config.max_turns),
    )


def ledger_rollout_func(
    client: Client,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    generator: Generator | None = None,
) -> RolloutFunc:
    """OpenEnv's ``rollout_func`` with `LedgerAdapter`.

    It returns the columns that `helpers.episodes.rollout_func.make_rollout_func`'s returns.
    """
    play = build_harness_rollout_func(
        session_factory=BrowserSessions(client, tokenizer, config),
        harness_adapter=LedgerAdapter(tokenizer),
        model_step_builder=model_step_builder(tokenizer, config, generator),
    )

    def rollout_func(prompts: list[str], trainer: GRPOTrainer | None) -> dict[str, list]:
        rows = [metrics["columns"] for metrics in play(prompts, trainer)["verify_metrics"]]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        check_rollout(columns, cast(int, trainer.num_generations) if trainer else 1)
        return columns

    return rollout_func


def black_box(
    tokenizer: PreTrainedTokenizerBase, config: RolloutConfig, generator: Generator
) -> CLIHarnessAdapter:
    """A policy as a program of its own: it keeps a chat, and acts through JSON-RPC alone."""

    def play(
        bridge: SessionMCPBridge, session: ResourceSession, limits: HarnessRunLimits
    ) -> HarnessRolloutResult:
        messages = list(session.initial_messages())
        turn, done = 0, False
        while not done and turn < limits.max_turns:
            ids = chat_ids(tokenizer, messages)
            completion = generator.generate([ids], config.max_tokens, config.temperature)[0]
            text = answer_text(tokenizer, completion.ids)
            told, done = _request_call(bridge, turn, read_call(text))
            messages.append({"role": "assistant", "content": text})
            messages.append({"role": "tool", "content": told})
            turn += 1
        return HarnessRolloutResult(messages=messages, done=done)

    return CLIHarnessAdapter(play)


def _request_call(bridge: SessionMCPBridge, number: int, call: ToolCall) -> tuple[str, bool]:
    """Call a tool by JSON-RPC; returns what the policy is told, and whether the episode is over."""
    request = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": call.name, "arguments": call.args},
    }
    reply = bridge.handle_request(request)
    result = reply.get("result")
    if result is None:
        return reply["error"]["message"], False
    return result["data"], result["done"]
