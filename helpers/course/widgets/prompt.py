"""Compose a prompt from its parts."""

from typing import Any

import ipywidgets as w

from helpers.browser.actions import ACTIONS
from helpers.course.widgets.live import show_live
from helpers.policy.prompts import EXAMPLES, PromptConfig, build_messages, prompt_ids


def explore_prompt(observation: Any, tokenizer: Any) -> None:
    """Choose what the prompt holds; see it and its length in tokens."""

    def update(**parts: Any) -> None:
        ids = prompt_ids(tokenizer, build_messages(observation, PromptConfig(**parts)))
        print(f"{len(ids)} tokens\n\n{tokenizer.decode(ids)}")

    lists = {
        "actions": w.SelectMultiple(
            options=list(ACTIONS), value=("click",), rows=7, description="actions"
        ),
        "examples": w.SelectMultiple(
            options=list(EXAMPLES), value=("button",), rows=7, description="examples"
        ),
    }
    ticks = {
        "page": w.Checkbox(True, description="page"),
        "free_text": w.Checkbox(True, description="free text"),
        "url": w.Checkbox(False, description="URL"),
    }
    show_live(
        w.VBox(
            [
                w.HBox([*lists.values(), w.VBox(list(ticks.values()))]),
                w.interactive_output(update, {**lists, **ticks}),
            ]
        ),
        "Run this notebook to choose what the prompt holds here, and to see it change.",
    )
