"""The course speaks one of two languages, and has a Chinese text for each English one."""

import ast
import json
import string
import subprocess
import sys
import warnings

import pytest

from helpers.settings.errors import ProfileError
from helpers.settings.language import TEXTS_ZH, VARIABLE, language, say
from helpers.settings.paths import ROOT

TEXTS = json.loads(TEXTS_ZH.read_text(encoding="utf-8"))


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv(VARIABLE, "zh")


def said():
    """(place, template) of each call of `say` in helpers; None where it is not written there."""
    for path in sorted((ROOT / "helpers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say":
                first = node.args[0]
                template = first.value if isinstance(first, ast.Constant) else None
                yield f"{path.relative_to(ROOT)}:{node.lineno}", template


def placeholders(template):
    """The names in braces, each with its format; a translation may need one twice."""
    return {(name, form) for _, name, form, _ in string.Formatter().parse(template) if name}


def test_every_text_stands_where_it_is_said():
    assert [place for place, template in said() if template is None] == []


def test_every_text_has_a_translation_and_no_other_is_kept():
    assert sorted({template for _, template in said()}) == sorted(TEXTS)


@pytest.mark.parametrize("english", TEXTS)
def test_a_translation_has_the_same_placeholders(english):
    assert placeholders(TEXTS[english]) == placeholders(english)
    assert TEXTS[english].strip()


def test_english_is_spoken_without_a_word(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert language() == "en"
    assert say("{time} left", time="0:05") == "0:05 left"
    monkeypatch.setenv(VARIABLE, "")
    assert language() == "en"


def test_chinese_is_spoken_on_demand(chinese):
    assert say("{time} left", time="0:05") == "还需 0:05"
    assert say("no text of the table: {n}", n=3) == "no text of the table: 3"


def test_any_other_language_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setenv(VARIABLE, "fr")
    with pytest.raises(ProfileError, match="^COURSE_LANGUAGE=fr is unknown: use en or zh.$"):
        say("{time} left", time="0:05")


def test_what_speaks_before_any_package_is_there_needs_none():
    code = "from helpers.settings.language import say; print(say('{time} left', time='0:05'))"
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env={VARIABLE: "zh", "PYTHONUTF8": "1"}, capture_output=True
    )
    assert done.stdout.decode() == "还需 0:05\n", done.stderr.decode()


def test_a_figure_in_chinese_has_every_letter(chinese):
    from helpers.course.figures import as_png, rates

    figure = rates({"任务（task）": {"训练后": (9, 10)}}, "从 30 % 到 90 %：优势")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a glyph that no font has
        as_png(figure)
    assert figure.axes[0].get_xlabel() == "解决的回合 (%)"


def test_a_figure_in_english_has_matplotlibs_own_font(monkeypatch):
    import matplotlib.pyplot as plt

    from helpers.course.figures import new_figure

    monkeypatch.delenv(VARIABLE, raising=False)
    plt.close(new_figure(1, 1)[0])
    assert plt.rcParams["font.family"] == ["sans-serif"]
