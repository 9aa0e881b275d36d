"""The language in which the course speaks to its reader: ``COURSE_LANGUAGE``, English without it.

``say`` is for what is printed as a result, for verdicts, labels and lines of progress. What a
policy reads stays English, and so do errors, which docs/troubleshooting.md has word by word.
Standard library only: the first cell of a notebook speaks before any package is there.
"""

import functools
import json
import os
from pathlib import Path

from helpers.settings.errors import ProfileError

VARIABLE = "COURSE_LANGUAGE"
LANGUAGES = ("en", "zh")
TEXTS_ZH = Path(__file__).with_name("texts_zh.json")  # English template -> Chinese template


def language() -> str:
    """ "en" or "zh", as ``COURSE_LANGUAGE`` says now. Raises `ProfileError`."""
    chosen = os.environ.get(VARIABLE) or "en"
    if chosen not in LANGUAGES:
        raise ProfileError(f"{VARIABLE}={chosen} is unknown: use {' or '.join(LANGUAGES)}.")
    return chosen


def say(template: str, **values: object) -> str:
    """A text in the language in force.

    ``template``: the English text, with the names of ``values`` in braces, as `str.format` reads
    it. A text of which the table has no translation stays English.
    """
    if language() == "zh":
        template = _texts().get(template, template)
    return template.format(**values)


@functools.cache
def _texts() -> dict[str, str]:
    return json.loads(TEXTS_ZH.read_text(encoding="utf-8"))
