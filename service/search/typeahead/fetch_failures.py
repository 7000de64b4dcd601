"""Why the files of a typeahead could not be had, in words for operators: what is wrong, and what to do about it.

/ready shows these texts, so they name no host, no path and no error text of a client.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EFBIG, ENOSPC, EPERM, EROFS, errorcode
from typing import Final

from opensearchpy.exceptions import AuthorizationException, NotFoundError, OpenSearchException

from service.search.failures import GenerationGone, TypeaheadUnavailable

FULL: Final = "the folder for its files has no room left. Give SHOP_DIRECTORY_TYPEAHEAD_DIR more"
READ_ONLY: Final = (
    "the folder for its files cannot be written by this process alone. "
    "Mount a volume or a tmpfs of its own at SHOP_DIRECTORY_TYPEAHEAD_DIR"
)
DAMAGED: Final = (
    "its files in the index are damaged. Run shop-directory index verify --repair, or build the index again"
)
MISSING: Final = "files are missing from the index. Run shop-directory index verify --repair, or build the index again"
NOT_ALLOWED: Final = "the service's user may not read the index of its files. Give its role the right"
AWAY: Final = "the search engine does not answer while its files are fetched"

_NO_INDEX: Final = "index_not_found_exception"
_NO_ROOM: Final = frozenset((ENOSPC, EDQUOT, EFBIG))
_NO_RIGHT: Final = frozenset((EACCES, EPERM, EROFS))


@contextmanager
def explained() -> Iterator[None]:
    """Raise what the disk, the cluster or a check raises as what it means.

    Raises:
        GenerationGone: the index is not there.
        TypeaheadUnavailable: anything else.
    """
    try:
        yield
    except NotFoundError as error:
        if error.error == _NO_INDEX:
            raise GenerationGone("the typeahead's index is no longer there") from error
        raise TypeaheadUnavailable(MISSING) from error
    except AuthorizationException as error:
        raise TypeaheadUnavailable(NOT_ALLOWED) from error
    except OpenSearchException as error:
        raise TypeaheadUnavailable(AWAY) from error
    except ValueError as error:
        raise TypeaheadUnavailable(DAMAGED) from error
    except OSError as error:
        raise TypeaheadUnavailable(_of_disk(error)) from error


def _of_disk(error: OSError) -> str:
    if error.errno in _NO_ROOM:
        return FULL
    if error.errno in _NO_RIGHT:
        return READ_ONLY
    return f"the folder for its files cannot be used ({errorcode.get(error.errno or 0, 'unknown')})"
