"""The widgets live in the package ``widgets``; this keeps their old address."""

from widgets import advantage_lab, drive_browser, explore_prompt  # noqa: F401
