"""Makes files and names survive a loss of power."""

import os
from pathlib import Path


def synchronise(path: Path) -> None:
    """Write a file, or the names in a directory, to the disk, so that they survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
