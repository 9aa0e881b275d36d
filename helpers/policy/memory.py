"""What becomes of a CPU's memory that tensors no longer need."""

import ctypes
import sys
from collections.abc import Callable

__all__ = ["hand_back_freed_memory", "keep_freed_memory"]

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_KEPT = 2**31 - 1  # bytes, the most that mallopt takes


def keep_freed_memory() -> None:
    """From now on, this process keeps memory that is freed, up to 2 GB of it, for what it needs
    next.

    Otherwise glibc takes the memory of each large tensor from the system and hands it back when the
    tensor is gone. The system has to clear each page of it anew: a quarter of the time of a forward
    and a backward pass on a CPU. Nothing is done where the C library is not glibc (see mallopt(3)).
    """
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)


def hand_back_freed_memory() -> None:
    """Hand memory that `keep_freed_memory` has kept back to the system, for other processes."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library, None where it has no such function."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), name, None)
