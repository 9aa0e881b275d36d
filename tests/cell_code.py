"""The Python in a notebook's cell."""

import re


def python_of(cell):
    """The code of a cell, with ``pass`` in the place of what only IPython understands."""
    return re.sub(r"^(\s*)[!%].*", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE)
