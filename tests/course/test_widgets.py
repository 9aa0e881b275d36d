"""The widgets without a front end: what they would show, and what stands there instead.

Colab cannot be had here: a fake ``google.colab`` says that it is asked to show widgets.
"""

import asyncio
import re
import sys
from types import ModuleType, SimpleNamespace

import ipywidgets
from small_run import episode, write_run

from helpers.browser.actions import parse_action
from helpers.browser.models import BrowserObservation
from helpers.course.widgets import (
    advantages,
    ledger_html,
    live,
    page,
    read_rollouts,
    rollout_group,
    view_rollouts,
)
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT, Ledger


def test_without_a_front_end_a_sentence_stands_there(monkeypatch):
    shown = []
    monkeypatch.setattr(live, "display", lambda data, raw: shown.append(data))
    live.show_live(ipywidgets.Box(), "Run this.")
    assert shown[0]["text/plain"] == "Run this."
    assert shown[0]["text/markdown"] == "*Run this.*"
    assert "application/vnd.jupyter.widget-view+json" in shown[0]


def test_colab_is_asked_to_show_widgets_before_one_is_displayed(monkeypatch):
    calls = []
    for name in ("google", "google.colab", "google.colab.output"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    colab = sys.modules["google.colab.output"]
    colab.enable_custom_widget_manager = lambda: calls.append("enabled")
    monkeypatch.setattr(live, "display", lambda data, raw: calls.append("displayed"))
    live.show_live(ipywidgets.Box(), "Run this.")
    assert calls == ["enabled", "displayed"]


def test_a_point_belongs_to_the_smallest_spot_around_it():
    pressed = []
    spots = {"inner": (10, 10, 5, 5), "outer": (0, 0, 50, 50), "middle": (5, 5, 20, 20)}
    picture, *buttons = live.clickable_picture(b"", spots, pressed.append).children
    names = [button.tooltip for button in buttons]
    assert names == ["outer", "middle", "inner"]  # a later one lies above
    assert {layer.layout.grid_area for layer in (picture, *buttons)} == {"1 / 1"}
    assert buttons[2].layout.margin == "10px 0 0 10px"
    assert buttons[2].layout.width == "5px"
    for button in buttons:
        button.click()
    assert pressed == ["outer", "middle", "inner"]


def test_the_lab_says_that_it_draws_and_draws_the_last_value(monkeypatch):
    drawn = []
    draw = advantages.advantage_curves
    monkeypatch.setattr(
        advantages,
        "advantage_curves",
        lambda settings, _: drawn.append(settings) or draw(settings, _),
    )

    async def slide():
        lab = advantages._Lab()
        size, *_, state, figure = lab.widget.children
        before = figure.value
        for value in (9, 10, 11):
            size.value = value
        assert state.value == "drawing ..."
        assert figure.value == before
        while figure.value == before:
            await asyncio.sleep(0.01)
        assert state.value == "group size 11, success rate 0.20"

    asyncio.run(slide())
    assert drawn == [[(8, 0.2, "group")], [(11, 0.2, "group")]]


def test_what_drives_the_browser_shows_no_page_that_is_not_the_new_one(monkeypatch):
    """A fake client, as a real one cannot lose its browser at a chosen moment."""
    monkeypatch.setattr(page, "_clickable_page", lambda seen, press: ipywidgets.Label(seen.goal))

    class Client:
        def reset(self, task, seed, **_):
            assert not driver._page.children
            return BrowserObservation(task=task, seed=seed, goal=task, screenshot=b"png")

        def step(self, action, **_):
            assert page.OLD in driver._page._dom_classes
            assert "&lt;i&gt; ..." in driver._said.value.replace("</b>", "")
            return BrowserObservation(task="a", seed=0, infrastructure_error="it died")

    driver = page._Driver(Client(), ["a", "other"], 0, None)
    driver._task.value = "other"
    assert [label.value for label in driver._page.children] == ["other"]
    driver._action.value = "<i>"
    driver._action._handle_custom_msg({"event": "submit"}, [])  # the Enter key
    assert driver._page.children == ()
    assert "it died" in driver._said.value
    assert page.OLD not in driver._page._dom_classes


def test_ledger_html_names_each_author_and_shows_text_as_text():
    ledger = Ledger()
    ledger.append([0, 1], PROMPT)
    ledger.append([2], POLICY, [-1.5])
    ledger.append([3], ENVIRONMENT)
    texts = ["a", "<b>", "c\n", ""]
    tokenizer = SimpleNamespace(decode=lambda ids: texts[ids[0]])
    html = ledger_html(ledger, tokenizer)
    assert "prompt: 2 tokens" in html
    assert "environment: 1 tokens" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "∅" in html
    assert 'title="id 2, logprob -1.50"' in html
    assert html.count("logprob") == 1  # a prompt has none
    end = ledger_html(ledger, tokenizer, 3)
    assert "4 tokens" not in end
    assert "… 3 tokens …" in end


def texts_of(figure):
    """What stands above and below the pages of a figure."""
    return [text.get_text() for axes in figure.axes for text in (axes.title, axes.xaxis.label)]


def test_the_rollouts_of_a_run_are_read_by_update(tmp_path):
    write_run(tmp_path / "run")
    rewards = {}
    for update, episodes in read_rollouts(tmp_path / "run").items():
        rewards[update] = [episode.reward for episode in episodes]
    assert rewards == {1: [0, 1], 2: [1, 1]}
    assert read_rollouts(tmp_path) == {}


def test_a_group_shows_reward_advantage_and_answer_of_each_rollout(tmp_path):
    write_run(tmp_path / "run")
    rollouts = read_rollouts(tmp_path / "run")
    lost = episode("click-test", 41, "click('13')", None)
    texts = texts_of(rollout_group([*rollouts[1], lost]))
    assert "reward 0, advantage -0.71" in texts
    assert "reward 1, advantage +0.71" in texts
    assert "lost, advantage +0.00" in texts
    assert any("click('13')" in text for text in texts)
    assert any("tap(13)" in text for text in texts)
    assert "reward 1, advantage +0.00" in texts_of(rollout_group(rollouts[2]))


def test_rollouts_of_several_turns_get_a_row_each():
    short = episode("click-test", 41, "click('13')", 1.0)
    long = episode("click-test", 41, "tap(13)", 0.0)
    long.turns *= 3
    figure = rollout_group([short, long])
    assert [axes.get_visible() for axes in figure.axes] == [True, False, False, True, True, True]
    above = [axes.get_title() for axes in figure.axes]
    assert above[3:] == ["reward 0, advantage -0.71", "turn 2", "turn 3"]


def test_recorded_episodes_are_played_again_for_their_pictures(browsers):
    client = browsers[0]
    seen = client.reset("enter-text", 7)
    bids = {element.role: element.bid for element in seen.elements}
    word = re.search('"(.+?)"', seen.goal)[1]
    answers = [f"fill('{bids['textbox']}', '{word}')", f"click('{bids['button']}')"]
    turns = [Turn([], answer, parse_action(answer)) for answer in answers]
    recorded = Episode("enter-text", 7, seen.goal, turns, reward=1.0, ended="solved")
    rollout_group([recorded], client)
    first = client.reset("enter-text", 7, screenshot=True).screenshot
    second = client.step(answers[0], screenshot=True).screenshot
    assert first != second
    assert [turn.screenshot for turn in recorded.turns] == [first, second]


def test_without_episodes_the_viewer_says_why(tmp_path, capsys):
    view_rollouts(tmp_path, 4)
    assert "There is no episodes.jsonl" in capsys.readouterr().out
