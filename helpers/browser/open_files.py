"""How many files a process may have open. Sockets and pipes count as well, so each session of a
browser server takes some."""

import errno
import resource

ENOUGH = 65_536
# Of the largest process, which is Chromium's network service where one worker has all sessions: 24
# and 6 more for each were counted.
FILES = 64
FILES_PER_SESSION = 6
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)


def limit() -> int:
    """How many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> None:
    """Let this process, and those that it starts, open as many files as it may give itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def why_too_few(sessions: int) -> str:
    """A sentence where this process, or Chromium below it, may not open enough files for so many
    sessions; else an empty string."""
    needed = FILES + FILES_PER_SESSION * sessions
    if limit() == resource.RLIM_INFINITY or limit() >= needed:
        return ""
    return (
        f"A browser server with {sessions} sessions needs up to {needed} open files in one process,"
        f" and the system allows {limit()}; raise that with `ulimit -n {max(4_096, needed)}`, or"
        " start it with fewer sessions."
    )


def is_out_of_files(error: BaseException | None) -> bool:
    """Whether the error, or what it comes from, is that no more files may be opened."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in OUT_OF_FILES:
            return True
        error = error.__cause__ or error.__context__
    return False
