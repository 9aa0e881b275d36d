"""The slides say what the committed notebooks say, need nothing but their file, and work in a browser."""

import html
import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from tools import make_slides

NOTEBOOKS = sorted((make_slides.ROOT / "notebooks").glob("*.ipynb"))
BLOCK = re.compile(r"<(h2|h3|p|li|th|td|pre)\b[^>]*>(.*?)</\1>", re.DOTALL)
TOO_LARGE = """() => slides.flatMap((slide, i) => {
  go(i);
  const bottom = slide.querySelector('.body').getBoundingClientRect().bottom, right = slide.getBoundingClientRect().right - 55;
  return [...slide.querySelectorAll('h2, h3, p, li, td, pre, img')].filter(e => {
    const box = e.getBoundingClientRect(), inside = e.closest('.body');
    return (inside && box.bottom > bottom + 1) || box.right > right || (e.tagName == 'PRE' && e.scrollWidth > e.clientWidth);
  }).map(e => `slide ${i + 1}: ${e.tagName} ${e.textContent.slice(0, 40)}`);
})"""
TOO_SMALL = """() => slides.flatMap((slide, i) => {
  go(i);
  const size = e => parseFloat(getComputedStyle(e).fontSize);
  const text = [...slide.querySelectorAll('h2, h3, p, li, td, pre, code')].filter(e => size(e) < 16);
  const images = [...slide.querySelectorAll('img')].filter(e => !e.naturalWidth || e.getBoundingClientRect().height < 180);
  return [...text, ...images].map(e => `slide ${i + 1}: ${e.tagName} ${e.textContent.slice(0, 40)}`);
})"""


@pytest.fixture(scope="module")
def page():
    return make_slides.SLIDES.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tab():
    """The slides in a real Chromium, on a screen of 1280 x 720, and the addresses that it asked for."""
    from playwright.sync_api import sync_playwright

    from helpers.browser.chromium import find_chromium

    asked = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        tab = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(make_slides.SLIDES.as_uri())
        tab.asked = asked
        yield tab
        browser.close()


def letters(text):
    return re.sub(r"[\W_]+", "", text)


def words_of(path):
    """All that a notebook says in prose and in printed output, letters and digits only."""
    notebook = nbformat.read(path, as_version=4)
    said = [
        re.sub(r"(?<=\])\([^)]*\)", "", cell.source)
        for cell in notebook.cells
        if cell.cell_type == "markdown"
    ]
    said += [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "stream"
    ]
    return letters("\n".join(said))


def pieces(slide):
    """The texts on a slide, line by line, without formulas."""
    for _, body in BLOCK.findall(slide):
        for line in re.sub(r"<i>.*?</i>", "\n", body, flags=re.DOTALL).splitlines():
            yield html.unescape(
                re.sub(r"<[^>]+>", "\n" if "<a " in body else "", line)
            ).removesuffix("…")


def test_committed_slides_are_those_of_the_committed_notebooks(page):
    """Where this fails: make slides."""
    assert make_slides.make(NOTEBOOKS) == page
    assert len(page.encode()) < 1_500_000


def test_every_text_is_in_its_notebook(page):
    everything = {path: words_of(path) for path in NOTEBOOKS}
    contents, *slides = page.split('<section class="slide ')[1:]
    titles = [
        re.search(r"<h2>(.*?)</h2>", slide)[1] for slide in slides if slide.startswith("title")
    ]
    assert [title[0] for title in titles] == list("123456")
    assert all(title in contents for title in titles)
    checked = 0
    for slide in slides:
        title = re.search(r"<footer>(.*?)</footer>", slide)[1]
        words = everything[NOTEBOOKS[titles.index(title)]]
        for piece in pieces(slide):
            assert letters(piece) in words, piece
            checked += bool(letters(piece))
    assert checked > 400


def test_every_section_and_its_first_figure_is_there(page):
    for path in NOTEBOOKS:
        found = make_slides.read_sections(nbformat.read(path, as_version=4))
        numbered = [s for s in found if s.number and "Exercises" not in s.heading]
        assert len(numbered) >= 6
        for section in numbered:
            assert f"<h2>{make_slides.inline(section.name)}</h2>" in page, section.name
            if section.output and section.output[0]:
                assert f'alt="{html.escape(section.output[0])}"' in page, section.name


def test_a_changed_sentence_changes_the_slides(tmp_path):
    changed = Path(shutil.copy(NOTEBOOKS[3], tmp_path))
    text = changed.read_text(encoding="utf-8")
    assert "GRPO has no critic that says how good a page is." in text
    changed.write_text(
        text.replace("has no critic that says", "needs no critic to say"), encoding="utf-8"
    )
    assert "needs no critic to say" in make_slides.make([changed])


def test_no_solution_is_shown(page):
    assert "Common error" not in page
    assert "return next((e.bid for e in elements" not in html.unescape(page)


@pytest.mark.parametrize(
    "text, parts",
    [
        ("One. Two has **bold.** Three", ["One.", "Two has **bold.**", "Three"]),
        ("**A lead.** What it heads. More.", ["**A lead.** What it heads.", "More."]),
        ("1. **observe** it, 2. **write** it. End", ["1. **observe** it, 2. **write** it.", "End"]),
        ("Scaled by none (Dr. GRPO). Is it so?", ["Scaled by none (Dr. GRPO).", "Is it so?"]),
    ],
)
def test_sentences(text, parts):
    assert make_slides.sentences(text) == parts


def test_formulas_and_links_are_readable():
    assert (
        make_slides.inline("with $p^G + (1-p)^G$")
        == "with <i>p<sup>G</sup> + (1-p)<sup>G</sup></i>"
    )
    assert (
        make_slides.inline(r"$\frac{\alpha}{r} B A x$ < [here](x.md)")
        == "<i>α/r B A x</i> &lt; here"
    )
    assert make_slides.inline("2. `reset` is no list") == "2. <code>reset</code> is no list"


def test_no_formula_is_left_as_it_was_typed(page):
    assert not re.findall(
        r"\\(?:frac|mathrm|min|times|epsilon|alpha)\b",
        re.sub(r"<pre.*?</pre>", "", page, flags=re.DOTALL),
    )


def test_keys_go_through_the_slides(tab):
    shown = "() => [slides.findIndex(s => s.checkVisibility()), slides.filter(s => s.checkVisibility()).length]"
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
        number, visible = tab.evaluate(shown)
        assert visible == 1
        where.append(number)
    assert where == [0, 0, 1, 2, 3, 2, last, last]
    assert tab.evaluate("location.hash") == f"#{last + 1}"
    tab.keyboard.press("Home")
    tab.click(
        ".contents a >> nth=2"
    )  # a link: the slide changes with the event that tells of the new address
    tab.wait_for_function("slides[now].querySelector('h2').textContent.startsWith('3. ')")
    tab.click("nav button >> nth=1")
    assert tab.evaluate("slides[now].querySelector('h2').textContent") == "You will"


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
    box = tab.evaluate(
        "(() => { const b = slides[now].getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })()"
    )
    tab.set_viewport_size({"width": 1280, "height": 720})
    tab.wait_for_function(scale + "1")
    assert box == pytest.approx([0, 640, 60, 420], abs=1)


def test_print_shows_all(tab):
    tab.emulate_media(media="print")
    hidden = tab.evaluate(
        "slides.filter(s => !s.checkVisibility() || s.getBoundingClientRect().height < 700).length"
    )
    tab.emulate_media(media="screen")
    assert hidden == 0


def test_needs_no_network(tab, page):
    assert all(url.startswith(("file:", "data:")) for url in tab.asked)
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", page)
