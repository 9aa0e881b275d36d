"""The report of a run in one sentence: the solution of notebook 6's last exercise."""

from __future__ import annotations

from typing import Any


def report(result: dict[str, Any]) -> str:
    """Success before and after, and the change, each with its interval, and n.

    ``result``: the content of a run's ``result.json``. All rates are in whole per cent.
    """
    parts = {"before": "success", "after": "success", "difference": "change"}
    before, after, change = (
        [100 * result[part][key] for key in (value, "low", "high")] for part, value in parts.items()
    )
    sentence = (
        "{:.0f} % [{:.0f}, {:.0f}] -> {:.0f} % [{:.0f}, {:.0f}], change {:+.0f} [{:+.0f}, {:+.0f}]"
    )
    return sentence.format(*before, *after, *change) + f", n = {result['difference']['n']}"
