"""Options of the commands: every number has its range; what lies outside is one sentence."""

import pytest

from helpers import command_line
from helpers.episodes.tasks import TEST_SEEDS
from scripts import evaluate, harness, serve, train, train_tools, warm_up

WHOLE = ("nan", "inf", "-1", "9" * 40, "many", "1.5", "")
COMMANDS = {
    evaluate.main: {
        "--n": (*WHOLE, "0", str(len(TEST_SEEDS) + 1)),
        "--temperature": ("nan", "inf", "-inf", "-1", "1e999", "hot", ""),
    },
    harness.main: {"--n": (*WHOLE, "0", str(len(TEST_SEEDS) + 1))},
    warm_up.main: {
        "--demos": (*WHOLE[:3], *WHOLE[4:], "0"),
        "--epochs": ("nan", "inf", "-1", "0", "1e999", "many"),
        "--learning-rate": ("nan", "inf", "-1", "0", "2", "fast"),
        "--rank": (*WHOLE, "1025"),
        "--seed": WHOLE,
    },
    train.main: {"--updates": (*WHOLE, "0"), "--seed": WHOLE},
    train_tools.main: {"--updates": (*WHOLE, "0"), "--seed": WHOLE},
    serve.main: {"--port": (*WHOLE, "0", "65536")},
}


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        pytest.param(command, option, value, id=f"{command.__module__} {option}={value[:9]}")
        for command, options in COMMANDS.items()
        for option, values in options.items()
        for value in values
    ],
)
def test_a_number_out_of_range_is_refused_before_anything_is_done(
    tmp_path, capsys, monkeypatch, command, option, value
):
    monkeypatch.chdir(tmp_path)
    assert command_line.run(command, [f"{option}={value}"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert option in printed.err or f"COURSE_{option[2:].upper()}" in printed.err
    assert list(tmp_path.iterdir()) == []
