"""The widgets in a real JupyterLab: a headless Chromium runs a small notebook, clicks, and sees what changes.

Colab's front end cannot be had here: that it is asked to show widgets is tested with a fake ``google.colab``.
"""

import json
import os
import re
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace

import ipywidgets
import nbformat
import psutil
import pytest

from helpers.browser.actions import parse_action
from helpers.browser.chromium import find_chromium
from helpers.course.widgets import ledger_html, live, read_rollouts, rollout_group, view_rollouts
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT, Ledger
from helpers.settings.paths import ROOT

CELLS = [
    """
from helpers.browser import start_browser_server
server = start_browser_server(workers=1, timeout=120)
client = server.client()
print("browser ready")""",
    """
from widgets import drive_browser
drive_browser(server.client(), ["click-test", "enter-text"], 0, policy=lambda seen: "click('99')")""",
    """
from helpers.policy.loading import load_policy
from widgets import explore_prompt
tokenizer = load_policy(weights=False).tokenizer
explore_prompt(client.reset("click-button", 0), tokenizer)""",
    """
from helpers.episodes.episode import ENVIRONMENT, POLICY, PROMPT, Ledger
from widgets import browse_ledger
ledger = Ledger()
ledger.append(tokenizer("Click it.")["input_ids"], PROMPT)
answer = tokenizer("click('13')")["input_ids"]
ledger.append(answer, POLICY, [-0.25] * len(answer))
browse_ledger(ledger, tokenizer)""",
    """
from widgets import advantage_lab
advantage_lab()""",
    """
from widgets import view_rollouts
view_rollouts("run", 2, client)""",
]


def wait_for(condition, seconds=40):
    """The first true value of ``condition()``; for what is not in the page, which Playwright waits for by itself."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"nothing after {seconds} s"
        time.sleep(0.1)
    return value


def episode(task, seed, answer, reward, box=None):
    turn = Turn(['"Click Me!" button 13'], answer, parse_action(answer), reward, box=box)
    return Episode(
        task,
        seed,
        "Click the button.",
        [turn],
        reward=reward,
        ended="solved" if reward else "failed",
    )


def write_run(folder):
    """The episodes of two updates, one group each, as `helpers.learning.recorder.Recorder` writes them."""
    folder.mkdir(parents=True)
    with (folder / "episodes.jsonl").open("w") as file:
        for update, rewards in ((1, (0.0, 1.0)), (2, (1.0, 1.0))):
            for reward in rewards:
                played = episode(
                    "click-test",
                    40 + update,
                    "click('13')" if reward else "tap(13)",
                    reward,
                    (46, 136, 35, 35),
                )
                file.write(json.dumps({"update": update, **played.to_json()}) + "\n")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The small notebook in JupyterLab, all its cells run: the page of a headless Chromium."""
    from playwright.sync_api import sync_playwright

    top = tmp_path_factory.mktemp("lab")
    write_run(top / "work" / "run")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source.strip()) for source in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, top / "work" / "widgets.ipynb")
    env = os.environ | {
        "JUPYTER_RUNTIME_DIR": str(top / "runtime"),
        "JUPYTER_CONFIG_DIR": str(top / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(top / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(top / "workspaces"),
        "PYTHONPATH": str(ROOT),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    options = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.port=0",
        "--IdentityProvider.token=secret",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.news_url=None",
        "--ServerApp.root_dir=.",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with (top / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options],
            cwd=top / "work",
            env=env,
            stdout=log,
            stderr=log,
        )
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox"]
            )
            page = browser.new_page(
                viewport={"width": 1100, "height": 6000}
            )  # so high that no cell is left undrawn
            page.set_default_timeout(40_000)
            file = wait_for(
                lambda: (
                    server.poll() is not None
                    or next((top / "runtime").glob("jpserver-*.json"), None)
                )
            )
            assert file is not True, (top / "log").read_text()
            port = wait_for(lambda: file.read_text() and json.loads(file.read_text())["port"])
            page.goto(f"http://127.0.0.1:{port}/doc/tree/widgets.ipynb?token=secret")
            page.wait_for_selector(".jp-Notebook .jp-CodeCell >> nth=-1")
            page.wait_for_selector("text=/Python 3.*Idle/i")
            page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
            page.wait_for_selector(".jp-OutputArea-output >> text=browser ready")
            yield page
            browser.close()
    finally:
        tree = psutil.Process(server.pid).children(recursive=True)
        server.terminate()  # it ends its kernel; with that the browser server ends
        server.wait(30)
        left = psutil.wait_procs(tree, 20)[1]
        for process in left:
            process.kill()
    assert not left


def output(lab, number):
    """The output of a cell, with a widget in it."""
    cell = lab.locator(".jp-Notebook .jp-CodeCell").nth(number).locator(".jp-OutputArea-output")
    cell.locator(".jupyter-widgets").first.wait_for()
    return cell.first


def picture(widget):
    """The address of the picture that a widget shows; another picture has another address."""
    return widget.locator("img").first.get_attribute("src")


def test_click_in_the_page_solves_it(lab):
    drive = output(lab, 1)
    drive.get_by_role("button", name="Reset").click()
    drive.get_by_text("Click the button.").wait_for()
    drive.get_by_role("button", name="Ask the policy").click()
    drive.get_by_text("the policy answers click('99')").wait_for()
    drive.get_by_text("kind unknown_bid").wait_for()
    assert drive.get_by_text("reward").count() == 0  # asked, not done
    left, top = (lambda box: (box["x"], box["y"]))(drive.locator("img").bounding_box())
    lab.mouse.click(
        left + 2.5 * (46 + 17), top + 2.5 * (136 + 17 - 50)
    )  # a point of the picture, in the middle of the button
    drive.get_by_text("reward 1.0").wait_for()
    drive.get_by_text("ended solved").wait_for()
    assert drive.locator("input[type=text]").input_value() == "click('13')"
    drive.get_by_role("button", name="Act").click()
    drive.get_by_text("the episode is over").wait_for()


def test_a_typed_action_changes_the_page(lab):
    drive = output(lab, 1)
    drive.locator("select").select_option("enter-text")
    drive.get_by_role("button", name="Reset").click()
    drive.get_by_text("into the text field").wait_for()
    before = picture(drive)
    drive.locator("input[type=text]").fill("fill('14', 'hello')")
    drive.get_by_role("button", name="Act").click()
    drive.get_by_text("step 1 fill('14', 'hello')").wait_for()
    wait_for(lambda: picture(drive) != before)


def test_ticks_change_the_prompt(lab):
    prompt = output(lab, 2)

    def tokens():
        return int(re.match(r"(\d+) tokens", prompt.locator("pre").first.inner_text())[1])

    prompt.locator("pre").first.wait_for()
    whole = tokens()
    prompt.get_by_label("page", exact=True).uncheck()
    without = wait_for(lambda: (n := tokens()) != whole and n)
    assert (
        0 < without < whole and "Page:" in prompt.locator("pre").first.inner_text()
    )  # the worked example's
    prompt.get_by_label("page", exact=True).check()
    wait_for(lambda: tokens() == whole)


def test_next_page_of_the_ledger(lab):
    ledger = output(lab, 3)
    ledger.get_by_text("page 1 of 2: tokens 1 to 3, written by the prompt").wait_for()
    assert ledger.locator("small").count() == 3
    ledger.get_by_role("button", name="next").click()
    ledger.get_by_text("written by the policy").wait_for()
    assert {text.split("\n")[1] for text in ledger.locator("small").all_inner_texts()} == {"-0.25"}
    ledger.get_by_role("button", name="next").click()  # there is none: it stays
    ledger.get_by_role("button", name="previous").click()
    ledger.get_by_text("page 1 of 2").wait_for()


def test_the_lab_draws_again(lab):
    advantages = output(lab, 4)
    before = picture(advantages)
    advantages.locator("[role=slider]").first.press("ArrowRight")
    wait_for(lambda: advantages.locator("img").count() and picture(advantages) != before)


def test_a_point_of_the_curve_shows_its_rollouts(lab):
    view = output(lab, 5)
    view.get_by_text("seed 41: 1 of 2 solved").wait_for(state="attached")  # an option of a list
    before = view.locator("img").last.get_attribute("src")
    view.get_by_title("update 2").click()
    view.get_by_text("seed 42: 2 of 2 solved").wait_for(state="attached")
    wait_for(lambda: view.locator("img").last.get_attribute("src") != before)
    assert view.locator(".widget-readout").first.inner_text() == "2"


def test_without_a_front_end_a_sentence_stands_there(monkeypatch):
    shown = []
    monkeypatch.setattr(live, "display", lambda data, raw: shown.append(data))
    live.show_live(ipywidgets.Box(), "Run this.")
    assert shown[0]["text/plain"] == "Run this." and shown[0]["text/markdown"] == "*Run this.*"
    assert "application/vnd.jupyter.widget-view+json" in shown[0]


def test_colab_is_asked_to_show_widgets_before_one_is_displayed(monkeypatch):
    calls = []
    for name in ("google", "google.colab", "google.colab.output"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["google.colab.output"].enable_custom_widget_manager = lambda: calls.append(
        "enabled"
    )
    monkeypatch.setattr(live, "display", lambda data, raw: calls.append("displayed"))
    live.show_live(ipywidgets.Box(), "Run this.")
    assert calls == ["enabled", "displayed"]


def test_a_point_belongs_to_the_smallest_spot_around_it():
    pressed = []
    spots = {"inner": (10, 10, 5, 5), "outer": (0, 0, 50, 50), "middle": (5, 5, 20, 20)}
    picture, *buttons = live.clickable_picture(b"", spots, pressed.append).children
    assert [button.tooltip for button in buttons] == [
        "outer",
        "middle",
        "inner",
    ]  # a later one lies above
    assert {layer.layout.grid_area for layer in (picture, *buttons)} == {"1 / 1"}
    assert (buttons[2].layout.margin, buttons[2].layout.width) == ("10px 0 0 10px", "5px")
    for button in buttons:
        button.click()
    assert pressed == ["outer", "middle", "inner"]


def test_ledger_html_names_each_author_and_shows_text_as_text():
    ledger = Ledger()
    ledger.append([0, 1], PROMPT)
    ledger.append([2], POLICY, [-1.5])
    ledger.append([3], ENVIRONMENT)
    tokenizer = SimpleNamespace(decode=lambda ids: ["a", "<b>", "c\n", ""][ids[0]])
    html = ledger_html(ledger, tokenizer)
    assert "prompt: 2 tokens" in html and "environment: 1 tokens" in html
    assert "&lt;b&gt;" in html and "<b>" not in html and "∅" in html
    assert 'title="id 2, logprob -1.50"' in html and html.count("logprob") == 1  # a prompt has none
    assert "4 tokens" not in ledger_html(ledger, tokenizer, 3) and "… 3 tokens …" in ledger_html(
        ledger, tokenizer, 3
    )


def words(figure):
    return [text.get_text() for axes in figure.axes for text in (axes.title, axes.xaxis.label)]


def test_a_group_shows_reward_advantage_and_answer_of_each_rollout(tmp_path):
    write_run(tmp_path / "run")
    rollouts = read_rollouts(tmp_path / "run")
    assert {update: [e.reward for e in episodes] for update, episodes in rollouts.items()} == {
        1: [0, 1],
        2: [1, 1],
    }
    lost = episode("click-test", 41, "click('13')", None)
    said = words(rollout_group([*rollouts[1], lost]))
    assert (
        "reward 0, advantage -0.71" in said
        and "reward 1, advantage +0.71" in said
        and "lost, advantage +0.00" in said
    )
    assert any("click('13')" in text for text in said) and any("tap(13)" in text for text in said)
    assert "reward 1, advantage +0.00" in words(rollout_group(rollouts[2]))


def test_recorded_episodes_are_played_again_for_their_pictures(browsers):
    client = browsers[0]
    seen = client.reset("enter-text", 7)
    field, button = (
        next(e.bid for e in seen.elements if e.role == role) for role in ("textbox", "button")
    )
    word = re.search('"(.+?)"', seen.goal)[1]
    answers = [f"fill('{field}', '{word}')", f"click('{button}')"]
    turns = [Turn([], answer, parse_action(answer)) for answer in answers]
    two = Episode("enter-text", 7, seen.goal, turns, reward=1.0, ended="solved")
    rollout_group([two], client)
    expected = [
        client.reset("enter-text", 7, screenshot=True).screenshot,
        client.step(answers[0], screenshot=True).screenshot,
    ]
    assert [turn.screenshot for turn in two.turns] == expected and expected[0] != expected[1]


def test_without_episodes_the_viewer_says_why(tmp_path, capsys):
    view_rollouts(tmp_path, 4)
    assert "There is no episodes.jsonl" in capsys.readouterr().out
