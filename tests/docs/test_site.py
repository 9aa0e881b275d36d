"""The course's site, built as `make site` builds it and opened from its folder, without a network.

Every page at the width of a desktop and of a telephone; search, the switch of languages and the
player in a real Chromium.
"""

import importlib.util
import json
import math
import os
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from a_chromium import a_chromium
from documents import read
from patience import PATIENCE

from helpers.settings.paths import RECORDINGS, ROOT
from tools.site.build import SiteError, build
from tools.site.documents import main_documents, place_of, twin_of

pytestmark = [pytest.mark.docs, pytest.mark.slow]

WIDTHS = (1280, 400)
LANGUAGES = ("en", "zh")
FORMULA = re.compile(r"\$[^$\s][^$\n]*\$|\\(?:frac|min|mathrm|alpha|epsilon|times)\b")
# The words of a page, without code and without what notebooks print.
PROSE = """() => {
  const copy = document.querySelector("article").cloneNode(true);
  copy.querySelectorAll("pre, code, script, math").forEach((part) => part.remove());
  return copy.textContent;
}"""


def place(language, name):
    """A page of the site in a language."""
    return name if language == "en" else f"zh/{name}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site."""
    if importlib.util.find_spec("mkdocs") is None:
        why = "MkDocs is not here: `make site` installs it"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("site")
    build(folder / "site", folder / "work")
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    """A Chromium."""
    with a_chromium() as started:
        yield started


@pytest.fixture
def tab(browser, site):
    """A page of the browser without a network; ``asked``: what it wanted from one, and
    ``visit(name)`` opens a page of the site."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    opened = context.new_page()
    opened.asked = []
    opened.errors = []
    opened.on("request", lambda request: note(opened.asked, request.url))
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.visit = lambda name: opened.goto((site / name).as_uri(), wait_until="load")
    yield opened
    assert opened.asked == []
    assert opened.errors == []
    context.close()


def note(asked, url):
    """Keep an address that is not of this machine's files."""
    if not url.startswith(("file:", "data:", "blob:", "about:")):
        asked.append(url)


class Links(HTMLParser):
    """The addresses of a page, its anchors, and the names of its elements."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.anchors = set()
        self.counts = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src"):
            if values.get(name):
                self.addresses.append((tag, values[name]))


@pytest.fixture(scope="module")
def pages(site):
    """What each page of the site links to, by its path."""
    return {
        path.relative_to(site).as_posix(): Links(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if path.name not in ("404.html", "slides.html")
    }


# What is there


def test_every_text_and_every_notebook_is_a_page_in_both_languages(site, pages):
    documents = main_documents()
    assert len(documents) > 30
    assert {document.place for document in documents} <= set(pages)
    for document in documents:
        assert (site / place_of(twin_of(document.source))).is_file(), document.source
    assert {"player.html", "zh/player.html", "index.html", "zh/index.html"} <= set(pages)
    assert len([name for name in pages if re.search(r"notebooks/0\d_", name)]) == 12
    assert {"notebooks/more/side_ways.html", "zh/notebooks/more/side_ways.html"} <= set(pages)


def test_every_link_leads_to_a_page_and_a_heading(site, pages):
    broken = []
    for name, page in pages.items():
        for tag, address in page.addresses:
            if address.startswith("data:"):  # a picture that is part of the page
                continue
            if re.match(r"\w+:", address):
                assert tag == "a", (name, address)  # nothing is loaded from elsewhere
                continue
            path, _, anchor = unquote(address).partition("#")
            there = (site / name).parent / path if path else site / name
            key = there.resolve().relative_to(site.resolve()).as_posix()
            known = pages.get(key)
            if not there.is_file():
                broken.append(f"{name}: {address}")
            elif anchor and known and not anchor.startswith("__") and anchor not in known.anchors:
                broken.append(f"{name}: {address} (no such heading)")
    assert broken == []


def test_links_under_chinese_titles_lead_to_chinese_pages(site, pages):
    main = {document.place for document in main_documents()}
    for name in sorted(main):
        if not name.startswith("zh/"):
            continue
        html = (site / name).read_text(encoding="utf-8")
        article = html.partition("<article")[2].partition("</article>")[0]
        for _, address in Links(article).addresses:
            there = os.path.normpath(os.path.join(os.path.dirname(name), address.partition("#")[0]))
            # What says that it is in English may lead there.
            in_english = (name, there) == ("zh/index.html", "index.html")
            assert there not in main or there.startswith("zh/") or in_english, (name, address)


def test_readme_leads_to_notebooks_docs_and_pictures(pages):
    addresses = {address for _, address in pages["index.html"].addresses}
    assert "notebooks/05_grpo_training.html" in addresses
    assert "docs/results.html" in addresses
    assert "media/the_loop.png" in addresses
    assert "../notebooks/04_rewards_and_advantages.html" in {
        address for _, address in pages["docs/glossary.html"].addresses
    } | {address for _, address in pages["docs/troubleshooting.html"].addresses}


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(SiteError, match="something else"):
        build(tmp_path, tmp_path / "work")
    assert (tmp_path / "thesis.txt").read_text() == "mine"


# In a browser


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_page_is_wider_than_the_window_and_formulas_are_drawn(tab, language, width):
    tab.set_viewport_size({"width": width, "height": 900})
    wide, raw, formulas = [], [], 0
    documents = [document for document in main_documents() if document.language == language]
    for name in [place(language, "player.html"), *(document.place for document in documents)]:
        tab.visit(name)
        if tab.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(name)
        raw += [f"{name}: {found}" for found in FORMULA.findall(tab.evaluate(PROSE))]
        formulas += tab.locator("article math").count()
    assert wide == []
    assert raw == []
    assert formulas >= 20


def test_a_fraction_stands_on_two_lines(tab):
    tab.visit("notebooks/06_lora_training.html")
    over, under = (
        tab.locator("math mfrac").first.locator("> *").nth(number).bounding_box()
        for number in (0, 1)
    )
    assert over["y"] + over["height"] <= under["y"] + 1
    assert over["width"] > 3


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "language, word",
    [("en", "advantage"), ("en", "troubleshooting"), ("zh", "优势"), ("zh", "浏览器")],
)
def test_search_finds_a_word(tab, site, language, word, width):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.visit(place(language, "docs/glossary.html"))
    if width < 900:
        tab.locator("label.md-header__button[for=__search]").click()
    field = tab.locator("input[name=query]")
    field.click()
    field.fill(word)
    field.press("End")  # the theme listens to keys, and Chinese is not typed by single ones
    tab.wait_for_selector(".md-search-result__item", timeout=1_000 * PATIENCE)
    found = tab.locator(".md-search-result__link").first
    assert word in tab.locator(".md-search-result__list").inner_text().lower()
    leads_to = unquote(found.get_attribute("href")).partition("?")[0].partition("#")[0]
    assert leads_to.startswith(site.as_uri() + ("/zh/" if language == "zh" else "/"))
    found.click()
    tab.wait_for_load_state()
    assert word in tab.locator("article").inner_text().lower()


@pytest.mark.parametrize(
    "name", ["docs/training.html", "notebooks/03_vllm_rollout_loop.html", "player.html"]
)
def test_one_click_leads_to_the_twin_and_back(tab, site, name):
    tab.visit(name)
    tab.locator("a.course-language").click()
    tab.wait_for_url((site / "zh" / name).as_uri())
    assert tab.evaluate("document.documentElement.lang").startswith("zh")
    tab.locator("a.course-language").click()
    tab.wait_for_url((site / name).as_uri())
    assert tab.evaluate("document.documentElement.lang") == "en"


# The player


@pytest.fixture(scope="module")
def recording():
    """What the player was given."""
    return json.loads(read("recordings/player/episodes.json"))


def shown_probabilities(tab, side):
    """The probabilities that a side of the player shows, between 0 and 1."""
    texts = tab.locator(f"[data-side={side}] .player-probability").all_inner_texts()
    return [float(text.removesuffix("%")) / 100 for text in texts]


def is_solved(said):
    return "solved" in said and "not solved" not in said


# One script plays in both languages and at both widths: each of the four is met once.
@pytest.mark.parametrize(("language", "width"), zip(LANGUAGES, WIDTHS, strict=True))
def test_the_player_shows_each_turn_of_each_episode(tab, recording, language, width):
    tab.set_viewport_size({"width": width, "height": 900})
    tab.visit(place(language, "player.html"))
    on = tab.locator("#player-on")
    for number, episode in enumerate(recording["episodes"]):
        tab.locator("#player-episode").select_option(index=[number])  # Playwright takes 0 for none
        assert tab.locator("#player-goal").inner_text().split() == episode["goal"].split()
        longest = max(len(episode[side]["turns"]) for side in ("untrained", "trained"))
        for turn in range(longest):
            for side in ("untrained", "trained"):
                check_side(tab, side, episode[side], turn)
            on.click()
        assert on.is_disabled()
        for side in ("untrained", "trained"):
            check_side(tab, side, episode[side], longest)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


def check_side(tab, side, played, turn):
    """What one side of the player shows at a turn is what was recorded."""
    column = tab.locator(f"[data-side={side}]")
    if turn < len(played["turns"]):
        recorded = played["turns"][turn]
        wanted = [math.exp(logprob) for _, _, logprob in recorded["answer"]]
        assert shown_probabilities(tab, side) == pytest.approx(wanted, abs=0.0006)
        assert column.locator(".player-prompt").text_content() == recorded["read"]
        picture = recorded["picture"]
    else:
        assert str(played["reward"]).removesuffix(".0") in column.inner_text()
        assert played["ended"] in column.inner_text()
        picture = played["last_picture"]
    image = column.locator("img")
    assert image.get_attribute("src").endswith(picture)
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


def test_the_player_is_played_by_keys_alone(tab, recording):
    tab.visit("player.html")
    tab.locator("#player-area").focus()
    place_of_player = tab.locator("#player-place")
    login = [episode["task"] for episode in recording["episodes"]].index("login-user")
    for _ in range(login):
        tab.keyboard.press("PageDown")
    assert tab.locator("#player-episode").evaluate("list => list.selectedIndex") == login
    tab.keyboard.press("ArrowRight")
    assert place_of_player.inner_text().startswith("turn 2")
    tab.keyboard.press("ArrowLeft")
    assert place_of_player.inner_text().startswith("turn 1")
    tab.keyboard.press("End")
    assert place_of_player.inner_text().startswith("after the last turn")
    # By Tab to a button, which is switched off at the end: the keys go on working.
    tab.keyboard.press("Home")
    tab.locator("#player-on").focus()
    for _ in range(8):
        tab.keyboard.press("Enter")
    assert place_of_player.inner_text().startswith("after the last turn")
    tab.keyboard.press("ArrowLeft")
    assert place_of_player.inner_text().startswith("turn 4")
    assert tab.locator("img[alt='']").count() == 0


def test_the_recording_is_one_of_the_published_policies(recording):
    """Its tokens and probabilities are those of recordings/suite, and no success is invented."""
    for side in ("untrained", "trained"):
        lines = (ROOT / recording[side]).read_text(encoding="utf-8").splitlines()
        recorded = {(one["task"], one["seed"]): one for one in map(json.loads, lines)}
        for episode in recording["episodes"]:
            source = recorded[episode["task"], episode["seed"]]
            ledger = source["ledger"]
            answers = [token for turn in episode[side]["turns"] for token in turn["answer"]]
            rows = zip(ledger["ids"], ledger["owner"], ledger["logprobs"], strict=True)
            policys = [(token, logprob) for token, owner, logprob in rows if owner == 1]
            assert [token for _, token, _ in answers] == [token for token, _ in policys]
            shown = [logprob for _, _, logprob in answers]
            assert shown == pytest.approx([logprob for _, logprob in policys], abs=1e-6)
            assert episode[side]["reward"] == source["reward"]
            said = [
                "".join(text for text, _, _ in turn["answer"]) for turn in episode[side]["turns"]
            ]
            for text, turn in zip(said, source["turns"], strict=True):
                assert turn["answer"] in text


def test_the_recording_is_small_and_shows_failures_of_the_trained_policy(recording):
    files = list((RECORDINGS / "player").iterdir())
    assert sum(path.stat().st_size for path in files) < 2_000_000
    assert recording["command"].startswith("python -m tools.record_player")
    rewards = [
        (one["untrained"]["reward"], one["trained"]["reward"]) for one in recording["episodes"]
    ]
    assert {(0.0, 1.0), (0.0, 0.0)} <= set(rewards)
    assert len({one["task"] for one in recording["episodes"]}) > 5
    assert any(len(one["trained"]["turns"]) > 1 for one in recording["episodes"])
