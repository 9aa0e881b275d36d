"""What the course uses of OpenEnv, imported without two packages that it drags along.

OpenEnv imports gradio for a web page of its own, and its MCP server brings jsonschema a check of
address formats, rfc3987_syntax. Nothing here uses either, OpenEnv and jsonschema both do without a
package that is not installed, and the two take about 4 of 5 seconds of processor time, in every
notebook and every server process.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_out(*packages: str) -> Iterator[None]:
    """While this runs, importing one of ``packages`` fails as if it were not installed. One that
    is imported already stays, and afterwards each can be imported as before."""
    hidden = [name for name in packages if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's own sign for "not there"
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with left_out("gradio", "rfc3987_syntax"):
    from openenv.core.client_types import StepResult
    from openenv.core.env_client import EnvClient
    from openenv.core.env_server import ConcurrencyConfig, Environment, create_app
    from openenv.core.env_server.types import Action, Observation, State

__all__ = [
    "Action",
    "ConcurrencyConfig",
    "EnvClient",
    "Environment",
    "Observation",
    "State",
    "StepResult",
    "create_app",
]
