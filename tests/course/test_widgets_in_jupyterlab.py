"""The widgets in a real JupyterLab: a headless Chromium runs a small notebook, and clicks."""

import re

import pytest
from a_chromium import a_chromium
from a_jupyterlab import jupyterlab, wait_for, write_notebook
from small_run import write_run

pytestmark = pytest.mark.slow

CELLS = [
    """
from helpers.browser import start_browser_server
server = start_browser_server(workers=1, timeout=120)
client = server.client()
print("browser ready")""",
    """
from helpers.course.widgets import drive_browser
def policy(seen):
    return "click('99')"
drive_browser(server.client(), ["click-test", "enter-text"], 0, policy)""",
    """
from helpers.course.widgets import explore_prompt
from helpers.policy.loading import load_policy
tokenizer = load_policy(weights=False).tokenizer
explore_prompt(client.reset("click-button", 0), tokenizer)""",
    """
from helpers.course.widgets import browse_ledger
from helpers.episodes.ledger import POLICY, PROMPT, Ledger
ledger = Ledger()
ledger.append(tokenizer("Click it.")["input_ids"], PROMPT)
answer = tokenizer("click('13')")["input_ids"]
ledger.append(answer, POLICY, [-0.25] * len(answer))
browse_ledger(ledger, tokenizer)""",
    """
from helpers.course.widgets import advantage_lab
advantage_lab()""",
    """
from helpers.course.widgets import view_rollouts
view_rollouts("run", 2, client)""",
    """
import time
from pathlib import Path
class Held:  # a browser that takes its time
    def reset(self, *asked, **how):
        return client.reset(*asked, **how)
    def step(self, *asked, **how):
        while not Path("go").exists():
            time.sleep(0.05)
        return client.step(*asked, **how)
drive_browser(Held(), ["enter-text"], 0)""",
]


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    """The folder in which JupyterLab has its files, and the notebook its folder work/."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def lab(top):
    """The small notebook in JupyterLab, all its cells run: the page of a headless Chromium."""
    write_run(top / "work" / "run")
    write_notebook(top / "work" / "widgets.ipynb", CELLS)
    with jupyterlab(top) as port, a_chromium() as browser:
        # The window is so high that no cell is left undrawn.
        page = browser.new_page(viewport={"width": 1100, "height": 6000})
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{port}/doc/tree/widgets.ipynb?token=secret")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell >> nth=-1")
        page.wait_for_selector("text=/Python 3.*Idle/i")
        page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
        page.wait_for_selector(".jp-OutputArea-output >> text=browser ready")
        yield page


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
    place = drive.locator("img").bounding_box()
    # A point of the picture, in the middle of the button, whose box is (46, 136, 35, 35).
    across = 2.5 * (46 + 17)
    down = 2.5 * (136 + 17 - 50)
    lab.mouse.click(place["x"] + across, place["y"] + down)
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


def test_the_enter_key_acts_and_another_task_shows_its_page(lab):
    drive = output(lab, 1)
    drive.locator("select").select_option("click-test")
    drive.get_by_text("Click the button.").wait_for()  # without Reset
    drive.locator("select").select_option("enter-text")
    drive.get_by_text("into the text field").wait_for()
    assert drive.get_by_text("Click the button.").count() == 0
    before = picture(drive)
    field = drive.locator("input[type=text]")
    field.fill("")
    field.press_sequentially("fill('14', 'hello')")
    field.press("Enter")
    drive.get_by_text("step 1 fill('14', 'hello')").wait_for()
    assert picture(drive) != before  # the new page stood there when this was said


def test_while_the_browser_works_the_old_page_is_faded(lab, top):
    drive = output(lab, 6)
    drive.get_by_role("button", name="Reset").click()
    drive.get_by_text("into the text field").wait_for()
    act = drive.get_by_role("button", name="Act")
    drive.locator("input[type=text]").fill("fill('14', 'hello')")
    act.click()
    drive.get_by_text("fill('14', 'hello') ...").wait_for()
    faded = drive.locator(".course-page-before")
    faded.wait_for()
    assert faded.evaluate("page => getComputedStyle(page).opacity") == "0.35"
    assert act.is_disabled()
    (top / "work" / "go").touch()
    drive.get_by_text("step 1 fill('14', 'hello')").wait_for()
    faded.wait_for(state="detached")
    wait_for(act.is_enabled)


def test_ticks_change_the_prompt(lab):
    controls = output(lab, 2)
    prompt = controls.locator("pre").first
    prompt.wait_for()

    def tokens():
        return int(re.match(r"(\d+) tokens", prompt.inner_text())[1])

    whole = tokens()
    controls.get_by_label("page", exact=True).uncheck()
    wait_for(lambda: tokens() != whole)
    assert 0 < tokens() < whole
    assert "Page:" in prompt.inner_text()  # the worked example's
    controls.get_by_label("page", exact=True).check()
    wait_for(lambda: tokens() == whole)


def test_next_page_of_the_ledger(lab):
    ledger = output(lab, 3)
    ledger.get_by_text("page 1 of 2: tokens 1 to 3, written by the prompt").wait_for()
    assert ledger.locator("small").count() == 3
    ledger.get_by_role("button", name="next").click()
    ledger.get_by_text("written by the policy").wait_for()
    logprobs = {facts.split("\n")[1] for facts in ledger.locator("small").all_inner_texts()}
    assert logprobs == {"-0.25"}
    ledger.get_by_role("button", name="next").click()  # there is none: it stays
    ledger.get_by_role("button", name="previous").click()
    ledger.get_by_text("page 1 of 2").wait_for()


def test_the_figure_of_the_lab_follows_its_sliders(lab):
    advantages = output(lab, 4)
    advantages.get_by_text("group size 8, success rate 0.20").wait_for()
    before = picture(advantages)
    slider = advantages.locator("[role=slider]").first
    for _ in range(5):
        slider.press("ArrowRight")
    advantages.get_by_text("group size 13, success rate 0.20").wait_for()  # the last value wins
    assert picture(advantages) != before


def test_a_point_of_the_curve_shows_its_rollouts(lab):
    view = output(lab, 5)
    view.get_by_text("seed 41: 1 of 2 solved").wait_for(state="attached")  # an option of a list
    rollouts = view.locator("img").last
    before = rollouts.get_attribute("src")
    view.get_by_title("update 2").click()
    view.get_by_text("seed 42: 2 of 2 solved").wait_for(state="attached")
    wait_for(lambda: rollouts.get_attribute("src") != before)
    assert view.locator(".widget-readout").first.inner_text() == "2"
