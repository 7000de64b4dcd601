"""Checks that a build has disk space, and tells a full disk, which needs space, from damage, which needs a rebuild."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
# SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: the shared-memory file of the log could not grow.
_SQLITE_FULL: Final = frozenset((13, 4_874))
# Some engines report a failure of the system as text only.
_TEXT: Final = f"os error {errno.ENOSPC}"

_GIGABYTE: Final = 1_000_000_000

ADVICE: Final = "a disk is full: free space where the index and the state are stored, and try again"


class DiskFullError(Exception):
    """The disk is full, or too full for a build; the text says what to do."""

    def __init__(self, text: str = ADVICE) -> None:
        super().__init__(text)


def require_space(directory: Path, needed: int) -> str:
    """Raise DiskFullError if the disk of a folder has fewer than `needed` bytes free; else returns a line on both."""
    free = shutil.disk_usage(directory).free
    needs, has = (f"{size / _GIGABYTE:,.1f} GB" for size in (needed, free))
    text = f"the build needs some {needs} in {directory} at its peak, of {has} free"
    if free < needed:
        raise DiskFullError(f"{text}: free space, or move the folder to a larger disk, and try again")
    return text


@contextmanager
def full_disk_as_error() -> Iterator[None]:
    """Raise any error that a full disk caused as DiskFullError."""
    try:
        yield
    except Exception as error:
        raise_if_full(error)
        raise


def raise_if_full(error: Exception) -> None:
    """Raise DiskFullError if an error, or one of its causes, reports a full disk.

    Otherwise a full disk would look like damage, and the advice for damage is to give up a state that is sound.
    """
    cause: BaseException | None = error
    while cause is not None:
        number = cause.errno if isinstance(cause, OSError) else None
        if number in _FULL or getattr(cause, "sqlite_errorcode", None) in _SQLITE_FULL or _TEXT in str(cause):
            raise DiskFullError from error
        cause = cause.__cause__ or cause.__context__
