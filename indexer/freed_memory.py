"""Returns memory that was freed to the system.

The C library of Linux retains it for each thread that used it, and each index of a build is written by another thread:
without this a build of 200,000 shops holds 425 MiB instead of 303.
"""

import ctypes
from typing import Final

# Of glibc only; other C libraries return memory by themselves, or never.
_TRIM: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)


def return_freed_memory() -> None:
    """Return as much as the C library can; does nothing if it has no call for that."""
    if _TRIM is not None:
        _TRIM(0)
