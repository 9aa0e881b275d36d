"""How long a test waits for what never comes, before it gives up."""

PATIENCE = 300
"""Seconds. A limit, never a measure: what a quiet machine does in one second may take a busy one a
minute, and a test that passes does not wait for it."""

LONG_PATIENCE = 1_200
"""Seconds for a process that trains or starts an engine, whose imports alone take a busy machine
minutes; less than pytest gives a whole test (faulthandler_timeout)."""
