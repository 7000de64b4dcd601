"""Holding a written generation against what was projected, before anybody sees it (G1).

Counts must be exact, a sample read back must be equal, and nothing that is not public may be in it.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

from index_mappings.documents import stored_part
from indexer.projection import Projected
from indexer.sinks.protocol import GenerationWriter, SinkError

_SAMPLE: Final = 200
_BATCH: Final = 1_000

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

    def verify(self, writer: GenerationWriter) -> None:
        """Check that the engine holds what was written, all of it and nothing else.

        Raises:
            SinkError: saying what differs.
        """
        kind, count = self.projected.kind, self.projected.count
        if self.written != count:
            raise SinkError(f"{self.written} {kind} were written, {count} are public")
        if (found := writer.count(kind)) != count:
            raise SinkError(f"the new generation holds {found} {kind}, {count} were written")
        if writer.read(kind, self._kept) != self._kept:
            raise SinkError(f"{kind} read back from the new generation differ from what was written")
        # It holds as many as are public. If it holds each public one, there is no room for another; and no id that is
        # not public has to be asked for, not even here.
        if sum(writer.held(kind, ids) for ids in _batches(self.projected.ids())) != count:
            raise SinkError(f"the new generation holds {kind} that may not be public")


def _batches(things: Iterable[Thing]) -> Iterator[list[Thing]]:
    iterator = iter(things)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
