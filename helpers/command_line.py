"""How every command of the repository is run: typer reads its options, one place prints what it
refuses."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from helpers.settings.errors import CourseError


def run(command: Callable[..., Any], arguments: Sequence[str] | None = None) -> int:
    """Run ``command`` with the options of the command line (or ``arguments``) and return the exit
    code: what it returns (None: 0), 2 after a `CourseError` or options that cannot be read."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(command)
    try:
        return app(args=None if arguments is None else list(arguments), standalone_mode=False) or 0
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    except typer.Exit as end:
        return end.exit_code
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's own: an option that cannot be read
            raise
        error.show()
        return 2
