"""Widgets for a live kernel. None carries a result alone: the cell that shows one also shows its static twin.

They stand above `helpers`: each uses several of its files, none of its files uses them, and a run without a front end never
imports them.
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
