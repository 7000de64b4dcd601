"""The wire form of bulk requests, and the outcome of each operation: done, refused for good, or to be sent again.

Each operation is serialised once, and stored separately in its chunk, so that only failed ones are sent again. Of an
error only status and type are read, as its message holds documents (V1).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import orjson

from index_mappings.opensearch import wire_document

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
    """Read the engine's answer to a request of `count` operations; it has the parts in ANSWER_PARTS."""
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


class Operation(NamedTuple):
    """One operation of a bulk request.

    Attributes:
        id: the document's id.
        lines: the action's line and, if there is one, the document's, each with its line feed.
    """

    id: str
    lines: bytes

    @property
    def document(self) -> object:
        """The document in its wire form; None for a delete."""
        source = self.lines.split(b"\n", 1)[1]
        return orjson.loads(source) if source else None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Operations for one request."""

    operations: tuple[Operation, ...]

    def __len__(self) -> int:
        return len(self.operations)

    def body(self) -> bytes:
        """The body of the request."""
        return b"".join([operation.lines for operation in self.operations])

    def only(self, positions: Iterable[int]) -> "Chunk":
        """The operations at these positions."""
        return Chunk(tuple(self.operations[position] for position in positions))

    def halves(self) -> tuple["Chunk", "Chunk"]:
        """Two smaller chunks; the chunk must have more than one operation."""
        middle = len(self.operations) // 2
        return Chunk(self.operations[:middle]), Chunk(self.operations[middle:])


def index_operations(documents: Iterable[object]) -> Iterator[Operation]:
    """Operations that write documents of the contract's classes."""
    for document in documents:
        values = wire_document(document)
        source = orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
        yield Operation(values["id"], b'{"index":{"_id":%b}}\n%b' % (orjson.dumps(values["id"]), source))


def delete_operations(ids: Iterable[str]) -> Iterator[Operation]:
    """Operations that remove documents."""
    for document_id in ids:
        yield Operation(document_id, b'{"delete":{"_id":%b}}\n' % orjson.dumps(document_id))


def chunks(operations: Iterable[Operation], max_operations: int, max_bytes: int) -> Iterator[Chunk]:
    """Group operations into chunks of at most `max_bytes`, unless a single operation is larger."""
    gathered: list[Operation] = []
    size = 0
    for operation in operations:
        if gathered and (len(gathered) >= max_operations or size + len(operation.lines) > max_bytes):
            yield Chunk(tuple(gathered))
            gathered, size = [], 0
        gathered.append(operation)
        size += len(operation.lines)
    if gathered:
        yield Chunk(tuple(gathered))
