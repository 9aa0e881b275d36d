"""How every command is run: typer reads its options, one place prints what the course refuses."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

import typer

from helpers.settings.errors import CourseError
from helpers.settings.imports import left_out


def run(command: Callable[..., int | None], arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    ``command``: a function whose parameters are its options, as typer reads them. ``arguments``:
    those of the command line where None; a command that records them finds them in the ``obj`` of
    its `typer.Context`. The exit code is what the command returns (None: 0), and 2
    where the course refuses something or an option cannot be read; the sentence that says why goes
    to standard error.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(command)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch reads it when it is imported
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with left_out(*_not_used_here()):
            return app(args=words, standalone_mode=False, obj=words) or 0
    except CourseError as error:
        print(error, file=sys.stderr)
    except typer.TyperException as error:
        problem = error.format_message().rstrip(".")
        print(f"{problem}. Use --help to see the options.", file=sys.stderr)
    return 2


def _not_used_here() -> list[str]:
    """Packages that torch and vLLM import and do not use with a torch that is built for CPUs.

    Triton writes programs for GPUs. Where a process has also had an engine of vLLM, it ends with 30
    lines about what Triton has not tidied up.
    """
    return ["triton"] if version("torch").endswith("+cpu") else []
