"""The outcome of each operation of a bulk request: done, refused for good, or to be sent again.

Only statuses and types of errors are read, as their messages hold documents (V1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

# The requested parts of an answer, without messages of errors. The statuses preserve the positions of the items.
ANSWER_PARTS: Final = "errors,items.*.status,items.*.error.type"

_NO_INDEX: Final = "index_not_found_exception"
# Its status is 400, but it is not the document's fault.
_CLOSED: Final = "index_closed_exception"
_UNFIT: Final = "action_request_validation_exception"
_TRANSIENT: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
_DOCUMENT_AT_FAULT: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class UnreadableAnswerError(Exception):
    """The answer does not fit the request."""


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why a request or an operation failed: the HTTP status, None without an answer, and the type of the error."""

    status: int | None
    kind: str

    def __str__(self) -> str:
        return self.kind if self.status is None else f"{self.status} {self.kind}"

    @property
    def is_transient(self) -> bool:
        """Whether the same may succeed later."""
        return (
            self.status is None
            or self.status in _TRANSIENT
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            or self.is_missing_index
        )

    @property
    def is_overload(self) -> bool:
        """Whether the engine is overloaded."""
        return self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def is_missing_index(self) -> bool:
        """Whether a node does not know the index, perhaps not yet, which has to be verified."""
        return self.kind == _NO_INDEX

    @property
    def may_concern_index(self) -> bool:
        """Whether the index may be unavailable: there was no answer, or a server error."""
        return self.status is None or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    @property
    def concerns_request(self) -> bool:
        """Whether the whole request was refused for its content: it is too long, or one operation is invalid."""
        return self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or self.kind == _UNFIT

    @property
    def concerns_document(self) -> bool:
        """Whether the engine refused the document itself."""
        return self.status in _DOCUMENT_AT_FAULT and self.kind != _CLOSED


UNREADABLE: Final = RequestFailure(None, "an answer that can't be read")


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """The outcome of one request, whose operations are identified by their positions.

    Attributes:
        done: the number of operations that were done.
        refused: the operations that were refused for good.
        again: the operations that may succeed later.
        failures: why the latter failed.
        fatal: the first failure that is neither due to an operation nor transient; None if there is none.
    """

    done: int
    refused: tuple[tuple[int, RequestFailure], ...] = ()
    again: tuple[int, ...] = ()
    failures: frozenset[RequestFailure] = frozenset()
    fatal: RequestFailure | None = None


def bulk_outcome(answer: Mapping[str, Any], count: int) -> BulkOutcome:
    """Read the engine's answer to a request of `count` operations; it has the parts in ANSWER_PARTS.

    Raises:
        UnreadableAnswerError: it has not one item for each operation.
    """
    try:
        results = [next(iter(item.values())) for item in answer["items"]]
        failures = {position: _failure(result) for position, result in enumerate(results) if "error" in result}
    except (LookupError, TypeError, AttributeError, StopIteration) as error:
        raise UnreadableAnswerError from error
    if len(results) != count:
        raise UnreadableAnswerError
    again = tuple(position for position, failure in failures.items() if failure.is_transient)
    refused = tuple((position, failure) for position, failure in failures.items() if failure.concerns_document)
    others = (failure for failure in failures.values() if not failure.is_transient and not failure.concerns_document)
    return BulkOutcome(
        done=count - len(failures),
        refused=refused,
        again=again,
        failures=frozenset(failures[position] for position in again),
        fatal=next(others, None),
    )


def _failure(result: Mapping[str, Any]) -> RequestFailure:
    return RequestFailure(int(result["status"]), str(result["error"]["type"]))
