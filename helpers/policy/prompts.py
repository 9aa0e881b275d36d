"""From an observation to the text that the policy reads.

The system prompt is generated from `helpers.browser.actions.ACTIONS`, so what it teaches exists. A page is shown as one line per
element, ``"name" role bid``, taken from BrowserGym's accessibility tree; this works for any OpenEnv BrowserGym server.
"""

import re
from dataclasses import dataclass
from typing import Any

from helpers.browser.actions import ACTIONS, signature

_NODE = re.compile(
    r"^\s*(?:\[(?P<bid>\w+)\] )?(?P<role>\w+) (?P<quote>['\"])(?P<name>.*?)(?P=quote)(?P<rest>(?:, .*| \w+=.*)?)$",
    re.DOTALL,
)
_BARE = re.compile(r"^\s*\[(?P<bid>\w+)\] (?P<role>\w+)(?P<rest>(?:, .*| \w+=.*)?)$", re.DOTALL)
_STATES = re.compile(
    r"(?:(value|checked|selected|expanded|pressed)=('[^']*'|\"[^\"]*\"|True|true|mixed)|\b(focused|disabled)\b)"
)
_CONTAINERS = {
    "generic",
    "paragraph",
    "RootWebArea",
    "LabelText",
    "Section",
    "list",
    "group",
    "none",
    "LayoutTable",
}
_HIDDEN = {
    "InlineTextBox",
    "ListMarker",
    "LineBreak",
}  # pieces of a StaticText that newer versions of Chromium list again


@dataclass(frozen=True)
class WorkedExample:
    """One question and answer that shows the format: (goal, page lines, action)."""

    goal: str
    page: str
    answer: str


EXAMPLES: dict[str, WorkedExample] = {
    "button": WorkedExample(
        'Click on the "Yes" button.',
        '"No" button 14\n"Yes" button 27\n"" textbox 29',
        "click('27')",
    ),
    "button-2": WorkedExample(
        'Click on the "Save" button.',
        '"Save" button 31\n"" textbox 33\n"Next" button 35',
        "click('31')",
    ),
    "button-3": WorkedExample(
        'Click on the "next" button.',
        '"" textbox 12\n"back" button 15\n"next" button 16\n"send" button 19',
        "click('16')",
    ),
    "field": WorkedExample(
        'Enter "sun" and press Submit.', '"" textbox 16\n"Submit" button 18', "fill('16', 'sun')"
    ),
}


@dataclass(frozen=True)
class PromptConfig:
    """What the prompt holds. ``actions``: the part of the action set that is taught (every action is still accepted);
    ``examples``: names of `EXAMPLES`, each a user and an assistant message before the page; ``page``: show the page's lines;
    ``free_text``: with the text that belongs to no element; ``url``: show the address."""

    actions: tuple[str, ...] = ("click", "fill", "press", "select_option")
    examples: tuple[str, ...] = ("button",)
    page: bool = True
    free_text: bool = True
    url: bool = False


def system_prompt(config: PromptConfig = PromptConfig()) -> str:
    """The system message: one line per taught action, generated from the action set."""
    lines = [f"{signature(name)}: {ACTIONS[name].doc}" for name in config.actions]
    return "You use a web page. Reply with one action only.\n" + "\n".join(lines)


def page_lines(axtree_txt: str, goal: str = "", free_text: bool = True) -> list[str]:
    """Reduce BrowserGym's accessibility tree to what a policy needs, one line per element or piece of free text.

    The name comes first, quoted as goals quote it, and the bid last: a small policy finds the goal's words and copies what
    follows them. Containers without a name go, so does text that only repeats the goal, or the name or value of the element
    around it.
    """
    lines: list[str] = []
    last_name = last_value = None
    flat_goal = " ".join(goal.split())
    for raw in axtree_txt.splitlines():
        match = _NODE.match(raw) or _BARE.match(raw)
        if match is None:
            continue
        role, bid, rest = match["role"], match["bid"], match["rest"] or ""
        name = " ".join((match.groupdict().get("name") or "").split())
        if role in _HIDDEN:
            continue
        if role == "StaticText":
            if free_text and name and name not in (last_name, last_value) and name not in flat_goal:
                lines.append(name)
            continue
        states = " ".join(m[3] or f"{m[1]}={m[2]}" for m in _STATES.finditer(rest) if m[2] != "''")
        if bid is None or (role in _CONTAINERS and not name and "clickable" not in rest):
            continue
        lines.append(f'"{name}" {role} {bid}' + (f" {states}" if states else ""))
        value = re.search(r"value=['\"](.*?)['\"]", rest)
        last_name, last_value = name, value and " ".join(value[1].split())
    return lines


def _message(page: str | None, goal: str | None, *notes: str) -> str:
    """One user message: notes, the page, and at the end, next to where the answer goes, the goal."""
    return "\n".join(
        [
            *notes,
            *([] if page is None else ["Page:", page]),
            *([] if goal is None else [f"Goal: {goal}"]),
        ]
    )


def observation_text(
    observation: Any, config: PromptConfig = PromptConfig(), first: bool = True
) -> str:
    """The user message for one observation. After the first turn the goal is already in the conversation, so the message
    holds the page as it is now and, where the last action failed, the reason."""
    notes = [f"URL: {observation.url}"] if config.url else []
    if not first and observation.error:
        notes.append(f"Error: {observation.error.splitlines()[0][:200]}")
    page = (
        "\n".join(page_lines(observation.axtree_txt, observation.goal, config.free_text))
        if config.page
        else None
    )
    return _message(page, observation.goal if first else None, *notes)


def build_messages(observation: Any, config: PromptConfig = PromptConfig()) -> list[dict[str, str]]:
    """The conversation before the first answer: system, worked examples, first observation."""
    messages = [{"role": "system", "content": system_prompt(config)}]
    for name in config.examples:
        example = EXAMPLES[name]
        messages.append({"role": "user", "content": _message(example.page, example.goal)})
        messages.append({"role": "assistant", "content": example.answer})
    messages.append({"role": "user", "content": observation_text(observation, config)})
    return messages


def prompt_ids(tokenizer: Any, messages: list[dict[str, str]]) -> list[int]:
    """Token ids of a conversation, ending where the policy's answer starts."""
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def continuation_ids(tokenizer: Any, message: str, ended: bool) -> list[int]:
    """Token ids that follow the policy's answer: the end of its turn (unless it wrote that itself, ``ended``), the next
    user message and the start of the next answer.

    Only these are appended: encoding the whole conversation anew would change ids that the policy has already produced.
    """
    mark, slot = "ANSWER-MARK", "MESSAGE-MARK"
    text = tokenizer.apply_chat_template(
        [
            {"role": "user", "content": "."},
            {"role": "assistant", "content": mark},
            {"role": "user", "content": slot},
        ],
        tokenize=False,
        add_generation_prompt=True,
    )
    tail = text.split(mark, 1)[1]
    if ended:
        tail = tail.removeprefix(tokenizer.eos_token)
    before, after = tail.split(slot, 1)
    return tokenizer(before + message + after, add_special_tokens=False)["input_ids"]
