"""From an observation to the text that the policy reads, and to its token ids.

The system prompt is generated from `helpers.browser.actions`, so what it teaches exists. A
page is shown as one line per element, ``"name" role bid``, taken from BrowserGym's accessibility
tree; this works for any OpenEnv BrowserGym server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from helpers.browser.actions import EVERY_ACTION, signature
from helpers.policy.listeners import Listeners, line_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import BrowserObservation, Element

    Message = dict[str, str]  # "role" and "content"

# A line of the tree: [13] button 'Ok', clickable. The bid may be missing, and so may the name.
_REST = r"(?P<rest>(?:, .*| \w+=.*)?)$"
_NODE = re.compile(
    r"^\s*(?:\[(?P<bid>\w+)\] )?(?P<role>\w+) (?P<quote>['\"])(?P<name>.*?)(?P=quote)" + _REST,
    re.DOTALL,
)
_NAMELESS_NODE = re.compile(r"^\s*\[(?P<bid>\w+)\] (?P<role>\w+)" + _REST, re.DOTALL)
# What is said of an element beside its name: value='sun', or just: focused.
_STATE = re.compile(
    r"(?:(?P<key>value|checked|selected|expanded|pressed)="
    r"(?P<value>'[^']*'|\"[^\"]*\"|True|true|mixed)|\b(?P<flag>focused|disabled)\b)"
)
_VALUE = re.compile(r"value=['\"](.*?)['\"]")

# Roles that only hold other elements.
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
# Pieces of a StaticText that newer versions of Chromium list again.
_PIECES_OF_TEXT = {"InlineTextBox", "ListMarker", "LineBreak"}


@dataclass(frozen=True)
class WorkedExample:
    """One question and answer that shows the format."""

    goal: str
    page: str
    """Its lines, with line breaks between."""
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
    """What the prompt holds."""

    actions: tuple[str, ...] = ("click", "fill", "press", "select_option")
    """The part of the action set that is taught; every action is still accepted, those on places
    where one of them is taught."""
    examples: tuple[str, ...] = ("button",)
    """Names of `EXAMPLES`: each is a user and an assistant message before the page."""
    page: bool = True
    """Show the page's lines."""
    free_text: bool = True
    """With the text that belongs to no element."""
    url: bool = False
    """Show the page's address."""
    listeners: bool = False
    """Show elements that only listen to clicks, which have no line in the tree."""
    note: str = ""
    """What the system message says at its end."""
    thoughts: bool = False
    """An answer begins with a line of thought, and the action is its last line, as in ReAct (Yao et
    al., 2022, https://arxiv.org/abs/2210.03629)."""


def system_prompt(config: PromptConfig = PromptConfig()) -> str:
    """The system message: one line per taught action, generated from the action set."""
    lines = [f"{signature(name)}: {EVERY_ACTION[name].doc}" for name in config.actions]
    if config.note:
        lines.append(config.note)
    form = "a line of thought, then one action on a line of its own"
    asked = form if config.thoughts else "one action only"
    return f"You use a web page. Reply with {asked}.\n" + "\n".join(lines)


@dataclass(frozen=True)
class _Node:
    """One line of the accessibility tree. ``rest``: all that follows the name."""

    role: str
    bid: str | None
    name: str
    rest: str

    @property
    def is_shown(self) -> bool:
        """Whether it is an element that a policy may need: not those that only hold others."""
        if self.bid is None:
            return False
        return self.role not in _CONTAINERS or bool(self.name) or "clickable" in self.rest

    @property
    def value(self) -> str | None:
        """What the element holds, such as the text of a field."""
        match = _VALUE.search(self.rest)
        return match and _one_line(match[1])

    def line_with(self, name: str) -> str:
        """The element as the policy reads it: a name, its role, bid and states."""
        states = [
            match["flag"] or f"{match['key']}={match['value']}"
            for match in _STATE.finditer(self.rest)
            if match["value"] != "''"
        ]
        return " ".join([line_of(name, self.role, str(self.bid)), *states])


def _nodes(axtree_txt: str) -> Iterator[_Node]:
    """The nodes of a tree; lines that are none, such as the rest of a name with a break, go."""
    for line in axtree_txt.splitlines():
        match = _NODE.match(line) or _NAMELESS_NODE.match(line)
        if match is None or match["role"] in _PIECES_OF_TEXT:
            continue
        name = match.groupdict().get("name") or ""
        yield _Node(match["role"], match["bid"], _one_line(name), match["rest"] or "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def page_lines(
    axtree_txt: str,
    goal: str = "",
    free_text: bool = True,
    elements: Sequence[Element] = (),
) -> list[str]:
    """Reduce BrowserGym's accessibility tree to what a policy needs.

    One line per element or piece of free text. The name comes first, quoted as goals quote it, and
    the bid last: a small policy finds the goal's words and copies what follows them. Containers
    without a name go, so does text that only repeats the goal, or the name or value of the element
    around it. ``elements``: those of the observation, to show also what only listens to clicks
    (`helpers.policy.listeners`). Then a text stays that is a part of the goal: it may be the one
    name that is looked for.
    """
    nodes = list(_nodes(axtree_txt))
    listed = {node.bid for node in nodes if node.is_shown and node.bid}
    listeners = Listeners(elements, listed)
    lines: list[tuple[str | None, str]] = []
    repeated: tuple[str | None, ...] = ()  # name and value of the element before
    flat_goal = _one_line(goal)

    def repeats_goal(text: str) -> bool:
        return text == flat_goal if elements else text in flat_goal

    for node in nodes:
        if node.role == "StaticText":
            said = bool(node.name) and node.name not in repeated
            if said and (element := listeners.take(node.name)) is not None:
                lines.append((element.bid, line_of(node.name, element.role, element.bid)))
            elif free_text and said and not repeats_goal(node.name):
                lines.append((None, node.name))
        elif node.is_shown and not listeners.can_do_without(node.bid):
            name = node.name or _one_line(listeners.text_in(node.bid))
            lines.append((node.bid, node.line_with(name)))
            repeated = (name, node.value)
    listeners.insert_others(lines, [element for element in elements if element.bid in listed])
    return [line for _, line in lines]


def shown_lines(observation: BrowserObservation, config: PromptConfig) -> list[str]:
    """The page's lines as a policy with this prompt reads them."""
    elements = observation.elements if config.listeners else ()
    return page_lines(observation.axtree_txt, observation.goal, config.free_text, elements)


def _user_message(page: Sequence[str] | None, goal: str | None, notes: Sequence[str] = ()) -> str:
    """One user message: notes, the page, and at the end, next to the answer's place, the goal."""
    lines = list(notes)
    if page is not None:
        lines += ["Page:", "\n".join(page)]
    if goal is not None:
        lines.append(f"Goal: {goal}")
    return "\n".join(lines)


def observation_text(
    observation: BrowserObservation, config: PromptConfig = PromptConfig(), first: bool = True
) -> str:
    """The user message for one observation.

    After the first turn the goal is already in the conversation, so the message holds the page as
    it is now and, where the last action failed, the reason.
    """
    notes = []
    if config.url:
        notes.append(f"URL: {observation.url}")
    if not first and observation.error:
        notes.append(f"Error: {observation.error.splitlines()[0][:200]}")
    page = shown_lines(observation, config) if config.page else None
    return _user_message(page, observation.goal if first else None, notes)


def build_messages(
    observation: BrowserObservation, config: PromptConfig = PromptConfig()
) -> list[Message]:
    """The conversation before the first answer: system, worked examples, first observation."""
    messages = [{"role": "system", "content": system_prompt(config)}]
    for name in config.examples:
        example = EXAMPLES[name]
        question = _user_message([example.page], example.goal)
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": example.answer})
    messages.append({"role": "user", "content": observation_text(observation, config)})
    return messages


def prompt_ids(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]) -> list[int]:
    """Token ids of a conversation, ending where the policy's answer starts."""
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return _ids(tokenizer, cast(str, text))


def continuation_ids(tokenizer: PreTrainedTokenizerBase, message: str, ended: bool) -> list[int]:
    """Token ids that follow the policy's answer.

    They are the end of its turn (unless it wrote that itself, ``ended``), the next user message and
    the start of the next answer. Only these are appended: encoding the whole conversation anew
    would change ids that the policy has already produced.
    """
    answer_mark, message_mark = "ANSWER-MARK", "MESSAGE-MARK"
    chat = [
        {"role": "user", "content": "."},
        {"role": "assistant", "content": answer_mark},
        {"role": "user", "content": message_mark},
    ]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    after_answer = cast(str, text).split(answer_mark, 1)[1]
    if ended:
        after_answer = after_answer.removeprefix(cast(str, tokenizer.eos_token))
    before, after = after_answer.split(message_mark, 1)
    return _ids(tokenizer, before + message + after)


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Token ids of a text that has its special tokens already."""
    return cast("list[int]", tokenizer(text, add_special_tokens=False)["input_ids"])


def answer_text(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """The text of an answer, without the tokens that end it."""
    return cast(str, tokenizer.decode(list(ids), skip_special_tokens=True))
