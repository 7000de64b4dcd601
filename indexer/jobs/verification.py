"""Holding a written generation against what was projected, before anybody sees it (G1).

Counts must be exact, a sample read back must be equal, and nothing that is not public may be in it.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from index_mappings.documents import stored_part
from indexer.progress import Advance
from indexer.projection.generation import Projected, Projector
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationReader
from indexer.state.state import State

_SAMPLE: Final = 200
_BATCH: Final = 5_000

Thing = TypeVar("Thing")


class Sample:
    """Some documents of one kind, taken as they pass on their way to the engine."""

    def __init__(self, projected: Projected) -> None:
        self.projected = projected
        self.written = 0
        self._step = max(1, projected.count // _SAMPLE)
        self._kept: dict[str, dict[str, Any]] = {}

    def watch(self, documents: Iterable[Any]) -> Iterator[Any]:
        """The same documents."""
        for place, document in enumerate(documents):
            if place % self._step == 0:
                self._kept[document.id] = stored_part(document)
            yield document

    def verify(self, reader: GenerationReader, advance: Advance = lambda _: None) -> None:
        """Check that the engine holds what was written, all of it and nothing else.

        Args:
            reader: of the new generation.
            advance: is told how many documents were looked for.

        Raises:
            SinkError: saying what differs.
        """
        kind, count = self.projected.kind, self.projected.count
        if self.written != count:
            raise SinkError(
                f"{self.written} {kind} were written, {count} are public: the dead-letter file may have more"
            )
        if (found := reader.count(kind)) != count:
            raise SinkError(f"the new generation holds {found} {kind}, {count} were written")
        if reader.read(kind, self._kept) != self._kept:
            raise SinkError(f"{kind} read back from the new generation differ from what was written")
        # It holds as many as are public. If it holds each public one, there is no room for another; and no id that is
        # not public has to be asked for, not even here.
        held = 0
        for ids in batches(self.projected.ids(), _BATCH):
            held += reader.count_ids(kind, ids)
            advance(len(ids))
        if held != count:
            raise SinkError(f"the new generation holds {kind} that may not be public")


def verify_counts(state: State, reader: GenerationReader) -> None:
    """Check after the last changes that as many documents are there as there must be.

    Raises:
        SinkError: saying what differs.
    """
    for projected in Projector(state).all():
        if (found := reader.count(projected.kind)) != projected.count:
            raise SinkError(f"the new generation holds {found} {projected.kind}, {projected.count} are public")


def batches(things: Iterable[Thing], size: int) -> Iterator[list[Thing]]:
    """Some at a time."""
    iterator = iter(things)
    while batch := list(islice(iterator, size)):
        yield batch
