"""The guide for teachers: its minutes, numbers, error texts and code are those of the course."""

import re

import nbformat
import pytest
from documents import (
    CJK,
    HALF_WIDTH,
    TERMS,
    invented,
    links,
    prose,
    read,
    sections,
)

from helpers.course.exercises import CHECKS
from helpers.settings.paths import NOTEBOOKS, RECORDINGS
from helpers.settings.profiles import PROFILES, scaled
from scripts import room
from tools import make_results
from tools.recorded import find_runs, read_times, recorded_result

pytestmark = pytest.mark.docs

ENGLISH = "docs/teaching/README.md"
CHINESE = "docs/zh/teaching/README.md"
PATHS = {path.name[1]: path for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
MORE = {"Side ways": NOTEBOOKS / "more" / "side_ways.ipynb"}
IN_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@pytest.fixture(scope="module")
def english():
    return read(ENGLISH)


@pytest.fixture(scope="module")
def chinese():
    return read(CHINESE)


def cells(number, kind):
    """The cells of one kind of the notebook with a number, or with a name."""
    notebook = nbformat.read((PATHS | MORE)[number], as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def markdown(number):
    """What a notebook says."""
    return "\n".join(cell.source for cell in cells(number, "markdown"))


def code(number):
    """The code of a notebook."""
    return "\n".join(cell.source for cell in cells(number, "code"))


def printed(number):
    """What a notebook prints."""
    outputs = [output for cell in cells(number, "code") for output in cell.outputs]
    return "\n".join(output.text for output in outputs if output.output_type == "stream")


def minutes(number):
    """{section: minutes in its heading}."""
    found = re.findall(r"^## (\d+)\. .*\(~(\d+) min", markdown(number), re.MULTILINE)
    return {int(section): int(mark) for section, mark in found}


def section_of(text, heading):
    """What stands under a heading of level two."""
    return next(s for s in sections(text) if s.startswith(f"## {heading}\n"))


def table_of(text, heading):
    """The cells of the first table under a heading, without its head."""
    rows = [line for line in section_of(text, heading).splitlines() if line.startswith("|")]
    plain = [re.sub(r"<!--.*?-->", "", row).strip("|") for row in rows[2:]]
    return [[cell.strip() for cell in row.split("|")] for row in plain]


def numbered(text):
    """ "2, 3, 5" and "1 to 4" as numbers."""
    found = []
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", text):
        found += range(int(first), int(last or first) + 1)
    return found


def in_words(number):
    """A number as the guide writes it."""
    return {20: "twenty"}.get(number) or IN_WORDS[number]


def test_both_languages_quote_and_measure_the_same(english, chinese):
    """Beside what test_pages demands of every page: headings, tables, links, blocks of code."""
    for one, other in zip(sections(english), sections(chinese), strict=True):
        heading = one.splitlines()[0]
        quoted = [sorted(re.findall(r"`[^`\n]+`", part)) for part in (one, other)]
        assert quoted[0] == quoted[1], heading
        measured = r"\d+(?:\.\d+)?(?: %| GB| MB)"
        counts = [sorted(re.findall(measured, part)) for part in (one, other)]
        assert counts[0] == counts[1], heading


def test_each_is_in_its_language(english, chinese):
    assert CJK.findall(english.replace("[中文](", "")) == []
    assert HALF_WIDTH.findall(prose(chinese)) == []
    words = (
        "action",
        "reward",
        "group",
        "token",
        "policy",
        "episode",
        "advantage",
        "environment",
        "seed",
    )
    assert not [term for term in TERMS if term[:-1].endswith(words) and term not in chinese]


def test_the_readmes_lead_here_and_each_guide_to_the_glossary_of_its_language(english, chinese):
    assert f"]({ENGLISH})" in read("README.md")
    assert f"]({CHINESE})" in read("README_zh.md")
    assert set(links(chinese, "docs/zh/teaching")) == set(links(english, "docs/teaching"))
    for text in (english, chinese):
        assert "](../glossary.md)" in text  # docs/glossary.md, docs/zh/glossary.md
    assert "](../../../README_zh.md)" in chinese
    assert "_zh.md" not in english


@pytest.mark.parametrize("language", ["en", "zh"])
def test_run_times_are_the_recorded_ones(language):
    """Where this fails: make results."""
    text = read({"en": ENGLISH, "zh": CHINESE}[language])
    assert make_results.render(text, language) == text
    assert re.findall(r"begin time:(\d\d)", text) == [f"0{number}" for number in PATHS]


def test_the_notebooks_say_these_times(english):
    rows = table_of(english, "How long each notebook takes")
    for number, row in zip(PATHS, rows, strict=True):
        assert f"\n| {row[2]} |" in markdown(number)
        assert int(row[3]) == sum(minutes(number).values())


def minutes_of(what, english):
    """The minutes that the course itself gives to an entry of a plan; None where it gives none."""
    if match := re.fullmatch(r"Notebook (\d), sections? (.+)", what):
        marks = minutes(match[1])
        return sum(marks[section] for section in numbered(match[2]))
    if match := re.fullmatch(r"Exercises of notebook (\d)", what):
        return int(re.search(r"## Exercises \(~(\d+) min\)", markdown(match[1]))[1])
    if match := re.fullmatch(r"Exercises? (.+)", what):
        given = {row[0]: row[1] for row in table_of(english, "Exercises and solutions")}
        return sum(int(given[exercise]) for exercise in match[1].split(", "))
    return None


@pytest.mark.parametrize("heading, total", [("Three hours", 180), ("One day", 480)])
def test_a_plan_adds_up(english, heading, total):
    at = 0
    proposed = 0  # entries whose length is the guide's own
    for start, length, what, _ in table_of(english, heading):
        assert start == f"{at // 60}:{at % 60:02d}", what
        at += int(length)
        given = minutes_of(what, english)
        if given is None:
            proposed += 1
        else:
            assert int(length) == given, what
    assert at == total
    assert f"At {at // 60}:{at % 60:02d} it ends." in section_of(english, heading)
    assert proposed < 15


def test_breaks_are_long_enough_for_the_runs_in_them(english):
    seconds = {notebook["name"][1]: notebook["seconds"] for notebook in read_times()["notebooks"]}
    runs = []
    for heading in ("Three hours", "One day"):
        for _, length, what, how in table_of(english, heading):
            match = re.search(r"notebook (\d), Run All", how)
            if what == "Break" and match:
                runs.append(match[1])
                assert 60 * int(length) > seconds[match[1]]
    assert runs == ["5", "6", "5"]


def test_exercises_are_those_of_the_notebooks(english):
    rows = table_of(english, "Exercises and solutions")
    played_in_browsers = "6.3"  # see check_agent
    assert [row[0] for row in rows] == sorted([*CHECKS, played_in_browsers])
    for exercise, length, _ in rows:
        text = markdown(exercise[0])
        stated = re.search(rf"\*\*{exercise}\W{{0,4}}\((\w+) minutes\)", text)
        said = stated[1].replace("five", "5") if stated else ""
        assert said == length, exercise
    folds = [markdown(number).count("<summary>Solution</summary>") for number in PATHS]
    assert sum(folds) == len(rows)


def test_error_texts_are_real(english):
    quoted = [row[0].strip("`") for row in table_of(english, "What goes wrong in a room")]
    assert len(quoted) > 10
    assert invented(quoted) == []


def test_answers_are_backed_by_the_sections_they_name(english):
    paragraphs = section_of(english, "Questions that students ask").split("\n\n")
    answers = [" ".join(p.split()) for p in paragraphs if p.startswith("**")]
    assert len(answers) >= 10
    for answer in answers:
        named = re.findall(
            r"\[(?:[Nn]otebook (?=\d))?(\d|Side ways), sections? ([\d, ]+)\]", answer
        )
        assert named or "](../results.md#" in answer, answer
        for number, numbers in named:
            for section in numbered(numbers):
                assert re.search(rf"^## {section}\. ", markdown(number), re.MULTILINE), answer
        source = "\n".join(markdown(number) + printed(number) for number, _ in named)
        words = re.sub(r"\[[^\]]*\]\([^)]*\)|\*\*.*?\*\*|\bnotebook \d", "", answer)
        for figure in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?(?: %)?", words):
            whole = rf"(?<![\d.]){re.escape(figure)}(?!\d|\.\d)"
            assert re.search(whole, source), (figure, answer)


def test_numbers_are_those_of_the_recordings(english):
    text = " ".join(english.split())
    runs = [run.result for run in find_runs()]
    times = [result["seconds"]["training"] / 60 for result in runs]
    memory = [result["peak_memory_gb"] for result in runs]
    took = f"took {min(times):.1f} to {max(times):.1f} minutes of training"
    assert f"The {in_words(len(runs))} recorded runs {took}" in text
    assert f"{min(memory):.2f} to {max(memory):.2f} GB of memory" in text


def test_the_rooms_numbers_are_those_of_the_recordings():
    text = " ".join(read("docs/teaching/room.md").split())
    environment = recorded_result("environment")
    megabytes = environment["memory_mb"]
    assert f"{megabytes['server']:.0f}" == f"{room.SERVER_MB}"
    assert f"{megabytes['per_session']:.0f}" == f"{room.SESSION_MB}"
    assert f"server takes {room.SERVER_MB} MB, and {room.SESSION_MB} MB for each session" in text
    needed = (room.SERVER_MB + 20 * 8 * room.SESSION_MB) / 1e3
    assert f"20 seats with 8 sessions each are {needed:.1f} GB" in text
    per_second = environment["episodes_per_s"]["ours"]["2"]
    assert f"plays {per_second:.1f} episodes a second" in text
    minutes = 20 * 900 / per_second / 60
    assert f"the browsers of twenty runs at once need {minutes:.0f} minutes" in text


def test_settings_are_those_of_the_profiles(english):
    text = " ".join(english.split())
    usual = PROFILES["cpu"]
    smoke = scaled(usual, "smoke")
    assert f"trains six updates instead of {in_words(usual.updates)}" in text
    pages = f"plays {in_words(smoke.eval_episodes)} test pages"
    assert f"makes {in_words(smoke.updates)} updates and {pages}" in text


def test_what_a_notebook_is_said_to_read_is_there_and_read():
    for number, folder, file in (
        ("Side ways", "environment", "result.json"),
        ("4", "audit", "result.json"),
    ):
        assert (RECORDINGS / folder / file).exists()
        assert f'"recordings" / "{folder}" / "{file}"' in code(number)
    for number in PATHS:
        assert ('runs_folder("notebook05")' in code(number)) == (number in "56")
        assert ("recordings" in code(number)) == (number in "456")


def test_commands_exist(english):
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)(?:[A-Z_]+=\S+ )*make ([a-z]+)", english, re.MULTILINE))
    assert {"slides", "setup", "train", "lab"} <= named
    assert named <= targets
