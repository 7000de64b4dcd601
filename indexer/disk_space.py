"""Recognises a full disk, which needs space, from damage, which needs a rebuild."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
# SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: the shared-memory file of the log could not grow.
_SQLITE_FULL: Final = frozenset((13, 4_874))
# Some engines report a failure of the system as text only.
_TEXT: Final = f"os error {errno.ENOSPC}"

ADVICE: Final = "a disk is full: free space where the index and the state are stored, and try again"


class DiskFullError(Exception):
    """The disk is full; the text says what to do."""

    def __init__(self) -> None:
        super().__init__(ADVICE)


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
