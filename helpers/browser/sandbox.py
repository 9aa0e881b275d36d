"""Chromium's own sandbox: kept wherever the system allows it."""

import os
from collections.abc import Callable

from playwright.sync_api import Browser
from playwright.sync_api import Error as PlaywrightError

WITHOUT_SANDBOX = (
    "Chromium runs without its sandbox, for this system gives an ordinary user no namespaces; allow"
    " them (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns) where"
    " pages are not to be trusted."
)


def launch_sandboxed(launch: Callable[[bool], Browser]) -> tuple[Browser, str]:
    """Start Chromium by ``launch(sandbox)``. Returns it, and a warning where it had to be started
    without its sandbox. As root there is none, and no warning: Chromium refuses to have one."""
    if os.geteuid() == 0:
        return launch(False), ""
    try:
        return launch(True), ""
    except PlaywrightError:  # it says why in many ways; without is tried whatever it says
        return launch(False), WITHOUT_SANDBOX
