"""The pages of answers hold what the notebooks hold, as `make answers` would write them."""

import pytest

from helpers.course.handed_in import exercises
from tools import make_answers

pytestmark = pytest.mark.docs


@pytest.mark.parametrize(
    "texts", [make_answers.ENGLISH, make_answers.CHINESE], ids=["English", "Chinese"]
)
def test_the_page_of_answers_is_that_of_the_notebooks(texts):
    written = texts["page"].read_text(encoding="utf-8")
    assert written == make_answers.page(texts), "run `make answers`"
    assert written.count("\n### ") == len(exercises())
    assert written.count(f"\n*{texts['error']}* ") == len(exercises())
    assert written.count("```python\n") >= len(exercises())
