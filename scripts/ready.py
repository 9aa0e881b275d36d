"""Whether this machine can take part in a class: ``make ready``, the evening before.

What `make doctor` checks, and then one real update of the training at its smallest. Where the
browsers are a room's (``COURSE_SERVERS``, as it stands on the seat's card), the room's teacher
reads the last line in the table of `make room`.
"""

import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from helpers.browser.remote import servers_elsewhere
from helpers.command_line import run
from helpers.output import clock
from scripts import doctor


def check_training() -> str:
    """Whether an update of GRPO goes through, with the policy and the browsers of the class."""
    from helpers.learning.run import train
    from helpers.policy.at_hand import with_policy_at_hand
    from helpers.settings.profiles import get_profile

    profile = with_policy_at_hand(get_profile(scale="smoke"))
    profile = replace(profile, updates=1, eval_episodes=4)
    started = time.monotonic()
    # Its own lines are for one who watches a run.
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        result = train(profile, Path(folder) / "ready", before=False)
    memory = result["peak_memory_gb"]
    return f"one update of {profile.policy} in {clock(time.monotonic() - started)}, {memory:.1f} GB"


CHECKS: dict[str, Callable[[], str]] = {**doctor.CHECKS, "training": check_training}


def main() -> int:
    """Check that this machine can take part in a class; the exit status says whether it can."""
    started = time.monotonic()
    failed = [name for name, check in CHECKS.items() if not doctor.report(name, check)]
    verdict = f"ready, checked in {clock(time.monotonic() - started)}"
    if failed:
        verdict = f"NOT ready: {', '.join(failed)} (the lines above say what to do)"
    print(f"This machine is {verdict}.")
    room = servers_elsewhere()
    if room is not None:
        room.say(verdict.partition(" (")[0])
        print(f"The room at {room.url} has been told.")
    return 1 if failed else 0


if __name__ == "__main__":
    status = run(main)
    sys.stdout.flush()
    # At once: vLLM's libraries end with a long list of their own, below which nobody finds the
    # verdict.
    os._exit(status)
