"""The slides say what the committed notebooks say, need nothing but their file, and work."""

import html
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from a_chromium import a_chromium

from helpers.settings.paths import NOTEBOOKS
from tools import make_slides
from tools.slides_html import inline

pytestmark = pytest.mark.docs

LANGUAGES = (make_slides.ENGLISH, make_slides.CHINESE)
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
BLOCK = re.compile(r"<(h2|h3|p|li|th|td|pre)\b[^>]*>(.*?)</\1>", re.DOTALL)
# What leaves its slide, as a list of sentences.
TOO_LARGE = """() => slides.flatMap((slide, i) => {
  go(i);
  const bottom = slide.querySelector('.body').getBoundingClientRect().bottom;
  const right = slide.getBoundingClientRect().right - 55;
  const leaves = e => {
    const box = e.getBoundingClientRect();
    const below = e.closest('.body') && box.bottom > bottom + 1;
    return below || box.right > right || (e.tagName == 'PRE' && e.scrollWidth > e.clientWidth);
  };
  return [...slide.querySelectorAll('h2, h3, p, li, td, pre, img')].filter(leaves)
    .map(e => `slide ${i + 1}: ${e.tagName} ${e.textContent.slice(0, 40)}`);
})"""
# Text and pictures that nobody in the last row could read.
TOO_SMALL = """() => slides.flatMap((slide, i) => {
  go(i);
  const size = e => parseFloat(getComputedStyle(e).fontSize);
  const height = e => e.getBoundingClientRect().height;
  const tags = 'h2, h3, p, li, td, pre, code';
  const text = [...slide.querySelectorAll(tags)].filter(e => size(e) < 16);
  const images = [...slide.querySelectorAll('img')].filter(e => !e.naturalWidth || height(e) < 180);
  return [...text, ...images]
    .map(e => `slide ${i + 1}: ${e.tagName} ${e.textContent.slice(0, 40)}`);
})"""
# The number of the slide that is shown, and how many are.
SHOWN = """() => {
  const visible = slides.filter(s => s.checkVisibility());
  return [slides.indexOf(visible[0]), visible.length];
}"""
NOT_PRINTED = """slides.filter(s => {
  return !s.checkVisibility() || s.getBoundingClientRect().height < 700;
}).length"""
BOX = """(() => {
  const box = slides[now].getBoundingClientRect();
  return [box.left, box.right, box.top, box.bottom];
})()"""


@pytest.fixture(scope="module", params=LANGUAGES, ids=["English", "Chinese"])
def words(request):
    return request.param


@pytest.fixture(scope="module")
def page(words):
    return words.slides.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def paths(words):
    return sorted(words.notebooks.glob("*.ipynb"))


@pytest.fixture(scope="module")
def tab(words):
    """The slides in a real Chromium, on a screen of 1280 x 720; ``asked``: addresses it wanted."""
    asked = []
    with a_chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(words.slides.as_uri())
        tab.asked = asked
        yield tab


def letters(text):
    """A text's letters and digits, in which marks of any kind make no difference."""
    return re.sub(r"[\W_]+", "", text)


def words_of(path):
    """All that a notebook says in prose and in printed output, letters and digits only."""
    said = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            said.append(re.sub(r"(?<=\])\([^)]*\)", "", cell.source))
        outputs = cell.get("outputs", [])
        said += [output.text for output in outputs if output.output_type == "stream"]
    return letters("\n".join(said))


def pieces(slide):
    """The texts on a slide, line by line, without formulas."""
    for _, body in BLOCK.findall(slide):
        between = "\n" if "<a " in body else ""
        for line in re.sub(r"<i>.*?</i>", "\n", body, flags=re.DOTALL).splitlines():
            yield html.unescape(re.sub(r"<[^>]+>", between, line)).removesuffix("…")


def test_committed_slides_are_those_of_the_committed_notebooks(page, paths, words):
    """Where this fails: make slides."""
    assert make_slides.make(paths, words) == page
    assert f'<html lang="{words.code}">' in page
    assert len(page.encode()) < 1_500_000


def test_every_text_is_in_its_notebook(page, paths):
    everything = {path: words_of(path) for path in paths}
    contents, *slides = page.split('<section class="slide ')[1:]
    first = [slide for slide in slides if slide.startswith("title")]
    titles = [re.search(r"<h2>(.*?)</h2>", slide)[1] for slide in first]
    assert [title[0] for title in titles] == list("123456")
    for title in titles:
        assert title in contents
    checked = 0
    for slide in slides:
        title = re.search(r"<footer>(.*?)</footer>", slide)[1]
        words = everything[paths[titles.index(title)]]
        for piece in pieces(slide):
            assert letters(piece) in words, piece
            checked += bool(letters(piece))
    assert checked > 400


def test_every_section_and_its_first_figure_is_there(page, paths, words):
    for path in paths:
        found = make_slides.read_sections(nbformat.read(path, as_version=4))
        numbered = [s for s in found if s.number and words.exercises not in s.heading]
        assert len(numbered) >= 6
        for section in numbered:
            assert f"<h2>{inline(section.name)}</h2>" in page, section.name
            figures = [part for part in section.parts if isinstance(part, make_slides.Figure)]
            if figures:
                assert f'alt="{html.escape(figures[0].alt)}"' in page, section.name


def test_a_changed_sentence_changes_the_slides(tmp_path):
    changed = Path(shutil.copy(PATHS[3], tmp_path))
    text = changed.read_text(encoding="utf-8")
    assert "It lets the policy try the *same* page several times and compares." in text
    text = text.replace("lets the policy try", "makes the policy try")
    changed.write_text(text, encoding="utf-8")
    assert "makes the policy try" in make_slides.make([changed])


def test_no_solution_is_shown(page):
    assert "Common error" not in page
    assert "常见错误" not in page
    assert "return next((e.bid for e in elements" not in html.unescape(page)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("One. Two has **bold.** Three", ["One.", "Two has **bold.**", "Three"]),
        ("**A lead.** What it heads. More.", ["**A lead.** What it heads.", "More."]),
        ("1. **observe** it, 2. **write** it. End", ["1. **observe** it, 2. **write** it.", "End"]),
        ("Scaled by none (Dr. GRPO). Is it so?", ["Scaled by none (Dr. GRPO).", "Is it so?"]),
        ("第一句。第二句有**粗体。**第三句？", ["第一句。", "第二句有**粗体。**第三句？"]),
        ("**第 2 版**加上它。**第 3 版**也是。", ["**第 2 版**加上它。", "**第 3 版**也是。"]),
    ],
)
def test_sentences(text, parts):
    assert make_slides.sentences(text) == parts


@pytest.mark.parametrize(
    "markdown, shown",
    [
        ("with $p^G + (1-p)^G$", "with <i>p<sup>G</sup> + (1-p)<sup>G</sup></i>"),
        (r"$\frac{\alpha}{r} B A x$ < [here](x.md)", "<i>α/r B A x</i> &lt; here"),
        ("2. `reset` is no list", "2. <code>reset</code> is no list"),
    ],
)
def test_formulas_and_links_are_readable(markdown, shown):
    assert inline(markdown) == shown


def test_no_formula_is_left_as_it_was_typed(page):
    prose = re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert not re.findall(r"\\(?:frac|mathrm|min|times|epsilon|alpha)\b", prose)


def test_keys_go_through_the_slides(tab):
    last = tab.evaluate("slides.length") - 1
    where = []
    for key in (
        "Home",
        "ArrowLeft",
        "ArrowRight",
        "PageDown",
        " ",
        "ArrowLeft",
        "End",
        "ArrowRight",
    ):
        tab.keyboard.press(key)
        number, visible = tab.evaluate(SHOWN)
        assert visible == 1
        where.append(number)
    assert where == [0, 0, 1, 2, 3, 2, last, last]
    assert tab.evaluate("location.hash") == f"#{last + 1}"


def test_links_and_buttons_go_through_the_slides(tab, words):
    tab.keyboard.press("Home")
    tab.click(".contents a >> nth=2")
    # The slide changes with the event that tells of the new address.
    tab.wait_for_function("slides[now].querySelector('h2').textContent.startsWith('3. ')")
    tab.click("nav button >> nth=1")
    assert tab.evaluate("slides[now].querySelector('h2').textContent") == words.will


def test_d_turns_the_light_off_and_on(tab):
    colours = []
    for _ in range(3):
        colours.append(tab.evaluate("getComputedStyle(slides[now]).backgroundColor"))
        tab.keyboard.press("d")
    assert colours[0] == colours[2] != colours[1]
    tab.keyboard.press("d")


def test_nothing_leaves_its_slide_and_nothing_is_tiny(tab):
    assert tab.evaluate(TOO_LARGE) == []
    assert tab.evaluate(TOO_SMALL) == []


def test_a_smaller_screen_shows_the_whole_slide(tab):
    scale = "document.body.style.getPropertyValue('--k') == "
    tab.set_viewport_size({"width": 640, "height": 480})
    tab.wait_for_function(scale + "0.5")
    box = tab.evaluate(BOX)
    tab.set_viewport_size({"width": 1280, "height": 720})
    tab.wait_for_function(scale + "1")
    assert box == pytest.approx([0, 640, 60, 420], abs=1)


def test_print_shows_all(tab):
    tab.emulate_media(media="print")
    hidden = tab.evaluate(NOT_PRINTED)
    tab.emulate_media(media="screen")
    assert hidden == 0


def test_needs_no_network(tab, page):
    assert all(url.startswith(("file:", "data:")) for url in tab.asked)
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", page)
