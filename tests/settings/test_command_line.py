"""Commands: their exit codes, and what they print where something is refused."""

from typing import Annotated

import pytest
import typer

from helpers.command_line import run
from helpers.settings.errors import CourseError, ProfileError

REFUSED = "There is no task 'nope': use one of a, b."


def command(
    task: Annotated[str, typer.Option(help="The task.")],
    updates: Annotated[int, typer.Option(help="How many.")] = 3,
    lora: Annotated[bool, typer.Option("--lora", help="Adapters alone.")] = False,
) -> int | None:
    """Do as the task says."""
    if task == "nope":
        raise ProfileError(REFUSED)
    if task == "bug":
        raise ValueError("a mistake of ours")
    if task == "fails":
        return 7
    print(task, updates, lora)
    return None


def test_options_reach_the_command(capsys):
    assert run(command, ["--task", "x", "--updates", "5", "--lora"]) == 0
    assert run(command, ["--task", "y"]) == 0
    assert capsys.readouterr().out == "x 5 True\ny 3 False\n"


def test_the_command_line_is_read_where_no_arguments_are_given(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["command", "--task", "x"])
    assert run(command) == 0
    assert capsys.readouterr().out == "x 3 False\n"


def test_what_a_command_returns_is_its_exit_code():
    assert run(command, ["--task", "fails"]) == 7


def test_what_the_course_refuses_is_one_sentence_without_a_traceback(capsys):
    assert run(command, ["--task", "nope"]) == 2
    assert capsys.readouterr() == ("", f"{REFUSED}\n")


def test_a_mistake_keeps_its_traceback():
    with pytest.raises(ValueError, match="a mistake of ours"):
        run(command, ["--task", "bug"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--task'. Use --help"),
        (["--tsk", "x"], "No such option: --tsk"),
        (["--task", "x", "--updates", "many"], "Invalid value for '--updates'"),
        (["--task", "x", "more"], "unexpected extra argument"),
    ],
)
def test_an_option_that_cannot_be_read_is_one_sentence(capsys, arguments, words):
    assert run(command, arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_help_names_options_and_defaults(capsys):
    assert run(command, ["--help"]) == 0
    text = capsys.readouterr().out
    for words in ("Do as the task says.", "--updates", "How many.", "[default: 3]", "--lora"):
        assert words in text
    assert "--no-lora" not in text


def test_a_refused_setting_is_a_course_error_and_a_value_error():
    assert issubclass(ProfileError, CourseError)
    assert issubclass(ProfileError, ValueError)
