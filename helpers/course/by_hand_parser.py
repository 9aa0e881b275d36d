"""The pieces of notebook 2 that its reader writes: what the notebook goes on with otherwise."""

import re
from collections.abc import Sequence

from helpers.browser.actions import Param, Value


def split_call(answer: str) -> tuple[str, str] | None:
    """The name of a call, and what stands in its parentheses; None where an answer is no call.

    The whole answer has to be one: before it only ``Action:`` may stand.
    """
    pattern = r"(?:Action:\s*)?([A-Za-z_]\w*)\((.*)\)"
    match = re.fullmatch(pattern, answer.strip(), re.DOTALL | re.ASCII)
    return (match[1], match[2]) if match else None


def fits(params: Sequence[Param], values: Sequence[Value]) -> bool:
    """Whether values can be the arguments of an action: their number, and the type of each."""
    required = [param for param in params if param.default is None]
    if not len(required) <= len(values) <= len(params):
        return False
    return all(_is_of(param.type, value) for param, value in zip(params, values, strict=False))


def _is_of(wanted: str, value: Value) -> bool:
    """Whether a value is of the type of a parameter."""
    if wanted == "number":
        return isinstance(value, int | float)
    if wanted == "strs" and isinstance(value, list):
        return len(value) > 0
    if wanted == "bid":
        return isinstance(value, str) and bool(re.fullmatch("[A-Za-z0-9]{1,16}", value))
    return isinstance(value, str)


def worked_example() -> tuple[str, str, str]:
    """Goal, page and answer of a worked example that chooses from a list."""
    page = '"Country" combobox 31\n"Submit" button 36'
    return 'Select "Peru" from the list.', page, "select_option('31', 'Peru')"
