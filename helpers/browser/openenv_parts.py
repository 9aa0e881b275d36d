"""What the course uses of OpenEnv, imported without packages that it drags along.

OpenEnv imports gradio for a web page of its own, and its MCP server brings jsonschema a check of
address formats, rfc3987_syntax: OpenEnv and jsonschema both do without a package that is not
installed. It also imports fastmcp and mcp, for environments whose actions are the tools of an MCP
server, which ours are not. Together they take 7 of 8 seconds of processor time, in every notebook
and every server process.
"""

from helpers.settings.imports import imported_when_called, left_out

with left_out("gradio", "rfc3987_syntax"), imported_when_called("fastmcp", "mcp"):
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
