"""A disk that refuses: one that is full, and a folder in which nobody may write.

Both hold for root as well, so that the tests say the same for whoever runs them.
"""

import os
import resource
import tempfile
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def largest_file(size):
    """Let no file of this process grow beyond ``size`` bytes: the write fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def no_rights():
    """A folder that this process may read and not write, within the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        is_root = os.geteuid() == 0  # it may write everywhere: be somebody else meanwhile
        if is_root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o755)
