"""Compares a written generation with its projection, before it is published (G1).

Counts must be exact, a sample read back must be equal, and the generation must hold no document that is not public.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from index_mappings.documents import stored_part
from indexer.progress import Advance
from indexer.projection import Projected, Projector
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationReader
from indexer.state.state import State

_SAMPLE: Final = 200
_BATCH: Final = 5_000

T = TypeVar("T")


class Sample:
    """A sample of the documents of one kind, taken while they are written."""

    def __init__(self, projected: Projected) -> None:
        self.projected = projected
        self.written = 0
        self._step = max(1, projected.count // _SAMPLE)
        self._expected: dict[str, dict[str, Any]] = {}

    def watch(self, documents: Iterable[Any]) -> Iterator[Any]:
        """Pass the documents on, and remember some of them."""
        for number, document in enumerate(documents):
            if number % self._step == 0:
                self._expected[document.id] = stored_part(document)
            yield document

    def verify(self, reader: GenerationReader, advance: Advance = lambda _: None) -> None:
        """Check that the engine holds all that was written, and nothing else.

        Args:
            reader: of the new generation.
            advance: called with the number of documents that were looked up.

        Raises:
            SinkError: something differs; the text says what.
        """
        kind, count = self.projected.kind, self.projected.count
        if self.written != count:
            raise SinkError(
                f"{self.written} {kind} were written, {count} are public: the dead-letter file may have more"
            )
        if (found := reader.count(kind)) != count:
            raise SinkError(f"the new generation holds {found} {kind}, {count} were written")
        if reader.read(kind, self._expected) != self._expected:
            raise SinkError(f"{kind} read back from the new generation differ from what was written")
        # Its count is that of the public documents. If it holds each of these, it holds no other one; no query has to
        # name the id of a document that is not public.
        held = 0
        for ids in batches(self.projected.ids(), _BATCH):
            held += reader.count_ids(kind, ids)
            advance(len(ids))
        if held != count:
            raise SinkError(f"the new generation holds {kind} that may not be public")


def verify_counts(state: State, reader: GenerationReader) -> None:
    """Check the number of documents of each kind after the last changes.

    Raises:
        SinkError: a number differs; the text says which.
    """
    for projected in Projector(state).all():
        if (found := reader.count(projected.kind)) != projected.count:
            raise SinkError(f"the new generation holds {found} {projected.kind}, {projected.count} are public")


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` values."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch
