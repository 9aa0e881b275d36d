"""BrowserGym's MiniWoB++ tasks behind an OpenEnv server."""
