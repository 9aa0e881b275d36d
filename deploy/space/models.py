"""What goes over the wire."""

from helpers.browser.models import BrowserAction, BrowserObservation

__all__ = ["BrowserAction", "BrowserObservation"]
