"""The guide for teachers: its minutes are those of the notebooks, its numbers those of the recordings, its code runs."""

import json
import re

import nbformat
import pytest
from test_readme import CJK, ROOT, TERMS, code_blocks, invented, links, prose, sections, tables

from helpers.course.exercises import CHECKS
from helpers.settings.profiles import PROFILES, _scaled
from tools import make_results

NOTEBOOKS = {path.name[1]: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}


@pytest.fixture(scope="module")
def english():
    return make_results.GUIDES["en"].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chinese():
    return make_results.GUIDES["zh"].read_text(encoding="utf-8")


def markdown(number):
    cells = nbformat.read(NOTEBOOKS[number], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def said(number):
    """What a notebook says and prints."""
    cells = nbformat.read(NOTEBOOKS[number], as_version=4).cells
    return markdown(number) + "\n".join(
        o.text for c in cells for o in c.get("outputs", []) if o.output_type == "stream"
    )


def minutes(number):
    """{section: minutes in its heading}."""
    found = re.findall(r"^## (\d+)\. .*\(~(\d+) min", markdown(number), re.MULTILINE)
    return {int(section): int(mark) for section, mark in found}


def section_of(text, heading):
    return next(s for s in sections(text) if s.startswith(f"## {heading}\n"))


def table_of(text, heading):
    """The cells of the first table under a heading, without its head."""
    rows = [line for line in section_of(text, heading).splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in re.sub(r"<!--.*?-->", "", row).strip("|").split("|")]
        for row in rows[2:]
    ]


def numbered(text):
    """ "2, 3, 5" and "1 to 4" as numbers."""
    found = []
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", text):
        found += range(int(first), int(last or first) + 1)
    return found


def test_both_languages_say_the_same(english, chinese):
    assert [s.split(" ")[0] for s in sections(english)] == [
        s.split(" ")[0] for s in sections(chinese)
    ]
    assert code_blocks(english) == code_blocks(chinese)
    assert tables(english) == tables(chinese)
    for one, other in zip(sections(english), sections(chinese), strict=True):
        assert links(one) == links(other), one.splitlines()[0]
        inside = [sorted(re.findall(r"`[^`\n]+`", part)) for part in (one, other)]
        assert inside[0] == inside[1]
        counts = [sorted(re.findall(r"\d+(?:\.\d+)?(?: %| GB| MB)", part)) for part in (one, other)]
        assert counts[0] == counts[1]


def test_each_is_in_its_language(english, chinese):
    assert CJK.findall(english.replace("[中文](README_zh.md)", "")) == []
    assert re.findall(r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]", prose(chinese)) == []
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


def test_links_lead_somewhere_and_the_readmes_lead_here(english, chinese):
    for text in (english, chinese):
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
            assert (ROOT / "docs" / ("zh/teaching" if text is chinese else "teaching") / link).exists(), link
    assert "](docs/teaching/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/zh/teaching/README.md)" in (ROOT / "README_zh.md").read_text(encoding="utf-8")
    assert "](../glossary.md)" in chinese and "_zh.md" not in english.replace(
        "[中文](README_zh.md)", ""
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_run_times_are_the_recorded_ones(language):
    """Where this fails: make results."""
    text = make_results.GUIDES[language].read_text(encoding="utf-8")
    assert make_results.render(text, language) == text
    assert re.findall(r"begin time:(\d\d)", text) == [f"0{number}" for number in NOTEBOOKS]


def test_the_notebooks_say_these_times(english):
    for number, row in zip(
        NOTEBOOKS, table_of(english, "How long each notebook takes"), strict=True
    ):
        assert f"\n| {row[2]} |" in markdown(number)
        assert int(row[3]) == sum(minutes(number).values())


@pytest.mark.parametrize("heading, total", [("Three hours", 180), ("One day", 480)])
def test_a_plan_adds_up(english, heading, total):
    at, free = 0, 0
    for start, length, what, _ in table_of(english, heading):
        assert start == f"{at // 60}:{at % 60:02d}", what
        at += int(length)
        if match := re.fullmatch(r"Notebook (\d), sections? (.+)", what):
            marks = minutes(match[1])
            assert int(length) == sum(marks[section] for section in numbered(match[2])), what
        elif match := re.fullmatch(r"Exercises of notebook (\d)", what):
            assert f"## Exercises (~{length} min)" in markdown(match[1])
        elif match := re.fullmatch(r"Exercises? (.+)", what):
            given = dict([row[:2] for row in table_of(english, "Exercises and solutions")])
            assert int(length) == sum(int(given[exercise]) for exercise in match[1].split(", ")), (
                what
            )
        else:
            free += 1
    assert at == total
    assert f"At {at // 60}:{at % 60:02d} it ends." in section_of(english, heading)
    assert free < 15


def test_breaks_are_long_enough_for_the_runs_in_them(english):
    seconds = {n["name"][1]: n["seconds"] for n in make_results.read_times()["notebooks"]}
    runs = [
        (length, match[1])
        for heading in ("Three hours", "One day")
        for _, length, what, how in table_of(english, heading)
        if what == "Break" and (match := re.search(r"notebook (\d), Run All", how))
    ]
    assert [number for _, number in runs] == ["5", "6", "5"]
    assert all(60 * int(length) > seconds[number] for length, number in runs)


def test_exercises_are_those_of_the_notebooks(english):
    rows = table_of(english, "Exercises and solutions")
    assert [row[0] for row in rows] == sorted(
        [*CHECKS, "6.3"]
    )  # 6.3 is played in browsers, see check_agent
    for exercise, length, _ in rows:
        text = markdown(exercise[0])
        stated = re.search(rf"\*\*{exercise}\W{{0,4}}\((\w+) minutes\)", text)
        assert (stated[1].replace("five", "5") if stated else "") == length, exercise
    assert sum(
        markdown(number).count("<summary>Solution</summary>") for number in NOTEBOOKS
    ) == len(rows)


def test_error_texts_are_real(english):
    quoted = [row[0].strip("`") for row in table_of(english, "What goes wrong in a room")]
    assert len(quoted) > 10
    assert invented(quoted) == []


def test_answers_are_backed_by_the_sections_they_name(english):
    answers = [
        p
        for p in section_of(english, "Questions that students ask").split("\n\n")
        if p.startswith("**")
    ]
    assert len(answers) >= 10
    for answer in answers:
        named = re.findall(r"\[[Nn]otebook (\d), sections? ([\d, ]+)\]", " ".join(answer.split()))
        assert named or "[README]" in answer, answer
        for number, numbers in named:
            for section in numbered(numbers):
                assert re.search(rf"^## {section}\. ", markdown(number), re.MULTILINE), answer
        text = "\n".join(said(number) for number, _ in named)
        words = re.sub(
            r"\[[^\]]*\]\([^)]*\)|\*\*.*?\*\*|\bnotebook \d", "", " ".join(answer.split())
        )
        for figure in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?(?: %)?", words):
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d|\.\d)", text), (figure, answer)


def test_numbers_are_those_of_the_recordings(english):
    runs = [run.result for run in make_results.find_runs()]
    times, memory = (
        [r["seconds"]["training"] / 60 for r in runs],
        [r["peak_memory_gb"] for r in runs],
    )
    environment = (ROOT / "recordings" / "environment" / "result.json").read_text()
    memory_mb = re.search(
        r"A server takes (\d+) MB of memory, each further session (\d+) MB",
        (ROOT / "README.md").read_text(encoding="utf-8"),
    )
    smoke, usual = _scaled(PROFILES["cpu"], "smoke"), PROFILES["cpu"]
    text = " ".join(english.split())
    assert f"{min(times):.1f} to {max(times):.1f} minutes of training" in text
    assert f"{min(memory):.2f} to {max(memory):.2f} GB of memory" in text
    assert f"server of {memory_mb[1]} MB takes {memory_mb[2]} MB more for each session" in text
    assert (
        f"plays {json.loads(environment)['episodes_per_s']['ours']['2']:.1f} episodes per second"
        in text
    )
    assert f"up to {usual.clients} sessions in notebooks 5 and 6" in text
    assert (len(runs), usual.updates, smoke.updates, smoke.eval_episodes) == (8, 20, 2, 8)


def test_what_a_notebook_is_said_to_read_is_there_and_read():
    for number, folder, file in (
        ("1", "environment", "result.json"),
        ("4", "audit", "result.json"),
    ):
        assert (ROOT / "recordings" / folder / file).exists()
        assert f'"recordings" / "{folder}" / "{file}"' in "\n".join(
            cell.source for cell in nbformat.read(NOTEBOOKS[number], as_version=4).cells
        )
    for number, path in NOTEBOOKS.items():
        code = "\n".join(
            c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"
        )
        assert ('"runs" / "notebook05"' in code) == (number in "56")
        assert ("recordings" in code) == (number in "1456")


def test_commands_exist(english):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)(?:[A-Z_]+=\S+ )*make ([a-z]+)", english, re.MULTILINE))
    assert {"slides", "setup", "train", "lab"} <= named <= targets


def test_the_room_server_of_the_guide_works(english):
    blocks = [block for block in code_blocks(english) if block.startswith("```python\n")]
    starts, uses = (block.removeprefix("```python\n").removesuffix("```") for block in blocks)
    teacher, student = {}, {}
    exec(
        starts.replace("port=8765, ", "").replace("sessions=128", "sessions=4, workers=1"), teacher
    )
    with teacher["server"] as server:
        exec(uses.replace("http://192.0.2.10:8765", server.url), student)
        one, two = student["server"].clients(2)
        page = one.reset("click-button", 0)
        assert two.reset("click-button", 0).axtree_txt == page.axtree_txt
        right = next(
            e.bid for e in page.elements if e.role == "button" and f'"{e.name}"' in page.goal
        )
        assert one.step(f"click('{right}')").ended == "solved"
        picture = student["server"].client(screenshot=True)
        assert picture.reset("click-test", 0).screenshot
        student["server"].close()
        assert two.step("noop(1)").error == ""  # a student who is done takes nobody's browsers away
