"""Widgets for a live kernel. None carries a result alone: its cell also shows a static twin.

They stand above all other rooms: each uses several of them, and no room imports a widget, so a run
without a front end loads none.
"""

from helpers.course.widgets.advantages import advantage_lab
from helpers.course.widgets.ledger import browse_ledger, ledger_html
from helpers.course.widgets.page import drive_browser
from helpers.course.widgets.prompt import explore_prompt
from helpers.course.widgets.rollouts import read_rollouts, rollout_group, view_rollouts

__all__ = [
    "advantage_lab",
    "browse_ledger",
    "drive_browser",
    "explore_prompt",
    "ledger_html",
    "read_rollouts",
    "rollout_group",
    "view_rollouts",
]
