"""The wire form of bulk requests: each operation is serialised once, and grouped into chunks of a bounded size.

A chunk stores its operations separately, so that only failed ones are sent again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from index_mappings.opensearch import wire_document


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
