"""The one base class of what the course refuses: each message is one sentence with the next step."""


class CourseError(Exception):
    """Something the reader can mend. The message names the cause and what to do, and is shown alone,
    without a traceback, by every command (`helpers.command_line.run`)."""
