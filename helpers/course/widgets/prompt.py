"""Compose a prompt from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as w

from helpers.browser.actions import ACTIONS
from helpers.course.widgets.live import show_live
from helpers.policy.prompts import EXAMPLES, PromptConfig, build_messages, prompt_ids
from helpers.settings.language import say

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import BrowserObservation


def explore_prompt(observation: BrowserObservation, tokenizer: PreTrainedTokenizerBase) -> None:
    """Choose what the prompt holds; see it and its length in tokens."""

    def draw(
        actions: tuple[str, ...],
        examples: tuple[str, ...],
        page: bool,
        free_text: bool,
        url: bool,
    ) -> None:
        config = PromptConfig(
            actions=actions, examples=examples, page=page, free_text=free_text, url=url
        )
        ids = prompt_ids(tokenizer, build_messages(observation, config))
        print(f"{say('{n} tokens', n=len(ids))}\n\n{tokenizer.decode(ids)}")

    lists = {
        "actions": _choice(say("actions"), list(ACTIONS), "click"),
        "examples": _choice(say("examples"), list(EXAMPLES), "button"),
    }
    ticks = {
        "page": w.Checkbox(True, description=say("page")),
        "free_text": w.Checkbox(True, description=say("free text")),
        "url": w.Checkbox(False, description=say("URL")),
    }
    controls = w.HBox([*lists.values(), w.VBox(list(ticks.values()))])
    prompt = w.interactive_output(draw, {**lists, **ticks})
    show_live(
        w.VBox([controls, prompt]),
        say("Run this notebook to choose what the prompt holds here, and to see it change."),
    )


def _choice(name: str, options: list[str], chosen: str) -> w.SelectMultiple:
    return w.SelectMultiple(options=options, value=(chosen,), rows=7, description=name)
