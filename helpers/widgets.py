"""Widgets for a live kernel. None carries a result alone: the cell that shows one also shows its static twin."""

from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import display


def show_live(widget: Any, note: str) -> None:
    """Display a widget; where no front end listens (GitHub, an export), the sentence ``note`` stands in its place."""
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**data, "text/plain": note, "text/markdown": f"*{note}*"}, raw=True)


def drive_browser(client: Any, tasks: Sequence[str], seed: int = 0) -> None:
    """Choose a task and a seed, type an action, see the page with its bids and what the action earned."""
    import ipywidgets as w

    from helpers.browser import BrowserServerError
    from helpers.figures import PAGE, annotate, show

    task, number = w.Dropdown(options=tasks, description="task"), w.IntText(seed, description="seed")
    action, out = w.Text(placeholder="click('13')", description="action"), w.Output()
    reset, act = w.Button(description="Reset"), w.Button(description="Act", button_style="primary")

    def run(call: Callable[[], Any]) -> None:
        out.clear_output(wait=True)
        with out:
            try:
                seen = call()
                display(show(annotate(seen, seen.goal, PAGE), f"page of {seen.task} with a bid at each element"))
                print(f"reward {seen.reward}  raw {seen.raw_reward}  ended: {seen.ended or '-'}  error: {seen.error or '-'}")
            except BrowserServerError as error:  # the episode is over, or the server is closed: a sentence, no traceback
                print(error)

    reset.on_click(lambda _: run(lambda: client.reset(task.value, number.value, screenshot=True)))
    act.on_click(lambda _: run(lambda: client.step(action.value, screenshot=True)))
    show_live(w.VBox([w.HBox([task, number, reset]), w.HBox([action, act]), out]),
              "Run this notebook to drive the browser here: choose a task, press Reset, type an action, press Act.")


def explore_prompt(observation: Any, tokenizer: Any) -> None:
    """Choose what the prompt holds; see it and its length in tokens."""
    import ipywidgets as w

    from helpers.actions import ACTIONS
    from helpers.prompts import EXAMPLES, PromptConfig, build_messages, prompt_ids

    def update(actions: tuple, examples: tuple, page: bool, url: bool) -> None:
        ids = prompt_ids(tokenizer, build_messages(observation, PromptConfig(tuple(actions), tuple(examples), page, url)))
        print(f"{len(ids)} tokens\n\n{tokenizer.decode(ids)}")

    controls = {"actions": w.SelectMultiple(options=list(ACTIONS), value=("click",), description="actions"),
                "examples": w.SelectMultiple(options=list(EXAMPLES), value=("button",), description="examples"),
                "page": w.Checkbox(True, description="page"), "url": w.Checkbox(False, description="url")}
    show_live(w.VBox([w.HBox(list(controls.values())), w.interactive_output(update, controls)]),
              "Run this notebook to choose what the prompt holds here, and to see it change.")


def advantage_lab() -> None:
    """Slide group size, success rate and scaling; see what a solved and a failed rollout are worth."""
    import ipywidgets as w

    from helpers.figures import advantage_curves, show

    def update(size: int, rate: float, scale: str) -> None:
        display(show(advantage_curves([(size, rate, scale)], "green: solved, red: failed"),
                     "advantage of a solved and of a failed rollout by the number solved in the group"))

    controls = {"size": w.IntSlider(8, 2, 32, description="group size"),
                "rate": w.FloatSlider(value=0.2, min=0.02, max=0.98, step=0.02, description="success rate"),
                "scale": w.ToggleButtons(options=["group", "batch", "none"], description="scaling")}
    show_live(w.VBox([*controls.values(), w.interactive_output(update, controls)]),
              "Run this notebook to move group size, success rate and scaling here; the figure below shows three settings.")
