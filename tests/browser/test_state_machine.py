"""What must hold whatever is reset, stepped, killed, interrupted, closed and opened again, in
whichever order: hypothesis draws it."""

import pytest

from benchmarks.state_machine import KILLS, run_machine


@pytest.mark.slow
def test_no_order_of_calls_and_faults_breaks_the_model(server):
    counts = run_machine(server, examples=12, steps=20, repeatable=True)
    done = {"resets", "steps", "interrupts", "reconnects", *(kill.__name__ for kill in KILLS)}
    assert done <= counts.keys()
