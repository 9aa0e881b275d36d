"""What the course refuses: one base class, and each message one sentence with the next step."""


class CourseError(Exception):
    """Something the reader can mend.

    The message names the cause and what to do. Every command shows it alone, without a traceback
    (`helpers.command_line.run`).
    """


class ProfileError(CourseError, ValueError):
    """A setting is unknown or cannot be used on this machine."""


def first_line(error: BaseException) -> str:
    """What an error says, in one line: its name where it says nothing."""
    said = str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__
