"""Messages for operators about files of a typeahead that are unavailable: what is wrong, and what to do about it.

/ready shows these texts, so they name no host, no path and no error text of a client.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EFBIG, EMFILE, ENFILE, ENOSPC, EPERM, EROFS, errorcode
from typing import Final

from opensearchpy.exceptions import AuthorizationException, NotFoundError, OpenSearchException

from service.search.failures import GenerationGone, TypeaheadUnavailable

FULL: Final = "the folder for its files has no room left. Give SHOP_DIRECTORY_TYPEAHEAD_DIR more"
READ_ONLY: Final = (
    "the folder for its files cannot be written by this process alone. "
    "Mount a volume or a tmpfs of its own at SHOP_DIRECTORY_TYPEAHEAD_DIR"
)
TOO_MANY_OPEN: Final = (
    "the process may open no more files. Raise its limit of file descriptors (ulimit -Hn), or lower "
    "SHOP_DIRECTORY_MAX_CONNECTIONS"
)
DAMAGED: Final = (
    "its files in the index are damaged. Run shop-directory index verify --repair, or build the index again"
)
MISSING: Final = "files are missing from the index. Run shop-directory index verify --repair, or build the index again"
NOT_ALLOWED: Final = "the service's user may not read the index of its files. Give its role the right"
ENGINE_UNAVAILABLE: Final = "the search engine does not answer while its files are fetched"

_NO_INDEX: Final = "index_not_found_exception"
_NO_SPACE: Final = frozenset((ENOSPC, EDQUOT, EFBIG))
_NO_PERMISSION: Final = frozenset((EACCES, EPERM, EROFS))


@contextmanager
def translate_failures() -> Iterator[None]:
    """Translate errors of the disk, the cluster and the checks.

    Raises:
        GenerationGone: the index does not exist.
        TypeaheadUnavailable: any other failure, with its message.
    """
    try:
        yield
    except NotFoundError as error:
        if error.error == _NO_INDEX:
            raise GenerationGone("the typeahead's index no longer exists") from error
        raise TypeaheadUnavailable(MISSING) from error
    except AuthorizationException as error:
        raise TypeaheadUnavailable(NOT_ALLOWED) from error
    except OpenSearchException as error:
        raise TypeaheadUnavailable(ENGINE_UNAVAILABLE) from error
    except ValueError as error:
        raise TypeaheadUnavailable(DAMAGED) from error
    except OSError as error:
        raise TypeaheadUnavailable(_disk_message(error)) from error


def _disk_message(error: OSError) -> str:
    if error.errno in _NO_SPACE:
        return FULL
    if error.errno in _NO_PERMISSION:
        return READ_ONLY
    if error.errno in {EMFILE, ENFILE}:
        return TOO_MANY_OPEN
    return f"the folder for its files cannot be used ({errorcode.get(error.errno or 0, 'unknown')})"
