"""From an observation to token ids: the page's lines, the messages, a conversation that grows."""

import re
from types import SimpleNamespace

import pytest
from trl import chat_template_utils

from helpers.browser.actions import ACTIONS, parse_action, signature
from helpers.policy.loading import load_policy
from helpers.policy.prompts import (
    EXAMPLES,
    PromptConfig,
    build_messages,
    continuation_ids,
    observation_text,
    page_lines,
    prompt_ids,
    system_prompt,
)

TREE = """RootWebArea 'Click Button Task', focused, \
url='http://miniwob.localhost/miniwob/click-button.html'
\t[12] generic ''
\t\tStaticText 'lectus tristique'
\t\t\tInlineTextBox 'lectus tristique'
\t\t[13] button 'No'
\t\t\tStaticText 'No'
\t\t\t\tInlineTextBox 'No'
\t\t[14] button "it's", disabled
\t\tInlineTextBox ''
\t\t[15] textbox '' value='sun', focused
\t\tStaticText 'sun'
\t[16] checkbox 'Yb', checked='true'
\t[17] checkbox 'Zr', checked='false'
\t[18] combobox '' value='Ann', hasPopup='menu', expanded=False
\t\t[19] option 'Ann', selected=True
"""


def seen(goal='Click on the "No" button.', tree=TREE, **fields):
    usual = {"url": "http://x/y.html", "error": "", "elements": []}
    return SimpleNamespace(goal=goal, axtree_txt=tree, **(usual | fields))


@pytest.fixture(scope="module")
def tokenizer():
    return load_policy("smollm2-135m", weights=False).tokenizer


def test_a_page_is_one_line_per_element_and_free_text():
    lines = page_lines(TREE, "a goal")
    assert lines[:3] == ["lectus tristique", '"No" button 13', '"it\'s" button 14 disabled']
    assert "\"Yb\" checkbox 16 checked='true'" in lines
    [field] = [line for line in lines if line.startswith('"" textbox 15')]
    assert "value='sun'" in field
    assert "focused" in field
    for word in ("InlineTextBox", "RootWebArea", "generic", "StaticText"):
        assert word not in "\n".join(lines)
    assert lines.count("No") == 0  # the text of a button is its name


def test_text_that_repeats_the_goal_is_left_out():
    tree = "\tStaticText 'Press Submit'\n\tStaticText 'other'"
    assert page_lines(tree, "Enter sun and\nPress  Submit.") == ["other"]


@pytest.mark.parametrize(
    "tree", ["", "\n\n", "garbage", "[x", "\t[13] button 'a\nb'", "StaticText ''"]
)
def test_odd_trees_give_lines_and_no_error(tree):
    assert all(isinstance(line, str) for line in page_lines(tree))


def test_the_system_prompt_teaches_exactly_the_actions_of_the_configuration():
    for taught in (("click",), ("click", "fill"), tuple(ACTIONS)):
        lines = system_prompt(PromptConfig(actions=taught)).splitlines()[1:]
        assert [line.split(":")[0] for line in lines] == [signature(name) for name in taught]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_worked_example_is_an_action_on_its_own_page(name):
    example = EXAMPLES[name]
    bids = frozenset(re.findall(r'^".*" \w+ (\d+)', example.page, re.MULTILINE))
    assert parse_action(example.answer, bids).ok


def test_messages_alternate_and_end_with_the_page_and_the_goal():
    messages = build_messages(seen(), PromptConfig(examples=("button", "field")))
    assert [m["role"] for m in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    content = messages[-1]["content"]
    assert content.startswith("Page:\n")
    assert content.endswith('\nGoal: Click on the "No" button.')


def test_only_the_first_message_has_the_goal_and_only_a_later_one_the_error():
    failed = seen(error="there is no element '99' on the page\nmore")
    first = observation_text(failed)
    assert "Error" not in first
    assert "Goal" in first
    later = observation_text(failed, first=False)
    assert later.startswith("Error: there is no element '99' on the page\nPage:")
    assert "Goal" not in later


def test_url_and_page_can_be_chosen():
    assert "http://x/y.html" in observation_text(seen(), PromptConfig(url=True))
    assert observation_text(seen(), PromptConfig(page=False)) == 'Goal: Click on the "No" button.'


def test_the_prompt_ends_where_the_answer_starts(tokenizer):
    text = tokenizer.decode(prompt_ids(tokenizer, build_messages(seen())))
    assert text.endswith("<|im_start|>assistant\n")
    assert text.count("<|im_start|>system") == 1


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("template", ["", "lfm2_2_5_chat_template", "qwen3_chat_template"])
def test_a_conversation_that_grows_is_the_template_of_all_its_messages(
    tokenizer, template, ended, monkeypatch
):
    """With the template of the embedded policy, and with those of larger ones as TRL has them."""
    if template:
        monkeypatch.setattr(tokenizer, "chat_template", getattr(chat_template_utils, template))
    messages = build_messages(seen())
    answer = "click('13')"
    ids = prompt_ids(tokenizer, messages) + tokenizer(answer)["input_ids"]
    if ended:
        ids.append(tokenizer.eos_token_id)
    message = observation_text(seen(error="no"), first=False)
    grown = ids + continuation_ids(tokenizer, message, ended)
    whole = [
        *messages,
        {"role": "assistant", "content": answer},
        {"role": "user", "content": message},
    ]
    encoded = tokenizer.apply_chat_template(whole, tokenize=False, add_generation_prompt=True)
    assert tokenizer.decode(grown) == encoded
    assert grown[: len(ids)] == ids


def test_marks_in_a_message_do_not_confuse_it(tokenizer):
    text = tokenizer.decode(continuation_ids(tokenizer, "ANSWER-MARK and MESSAGE-MARK", ended=True))
    assert text.count("ANSWER-MARK and MESSAGE-MARK") == 1
    assert text.count("<|im_start|>") == 2
