"""How long a test waits for what never comes, before it gives up."""

PATIENCE = 300
"""Seconds. A limit, never a measure: what a quiet machine does in one second may take a busy one a
minute, and a test that passes does not wait for it."""
