"""A full disk, told apart from damage: it needs space, and nothing that is on it has to be built again."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
# SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: the file beside the log could not grow.
_SQLITE_FULL: Final = frozenset((13, 4_874))
# Of engines that report a failure of the system as text only.
_TEXT: Final = f"os error {errno.ENOSPC}"

ADVICE: Final = "a disk is full: free space where the index and the state are kept, and try again"


class DiskFullError(Exception):
    """There is no space left to write to; the text says what to do."""

    def __init__(self) -> None:
        super().__init__(ADVICE)


@contextmanager
def full_disk_as_error() -> Iterator[None]:
    """Raise what comes of a full disk, whatever it was made into on its way, as DiskFullError."""
    try:
        yield
    except DiskFullError:
        raise
    except Exception as error:
        raise_if_full(error)
        raise


def raise_if_full(error: Exception) -> None:
    """Raise DiskFullError where an error comes of a full disk.

    A full disk is no damage: the advice to forget a state would lose what it remembers for nothing.
    """
    if is_disk_full(error):
        raise DiskFullError from error


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that a disk is full."""
    while error is not None:
        number = error.errno if isinstance(error, OSError) else None
        if number in _FULL or getattr(error, "sqlite_errorcode", None) in _SQLITE_FULL or _TEXT in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
