"""Writes a new generation from a settled state, seals it, and verifies it before readers can see it (G1).

Counts must be exact, a sample read back must be equal, and the generation must hold no document that is not public.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from index_mappings.documents import stored_part
from index_mappings.generations import Stamp, first_stamp
from indexer.disk_space import require_space
from indexer.jobs.follower_status import operations_of
from indexer.progress import Advance, in_thread, remark, stage
from indexer.projection import Projected, Projector
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationReader, GenerationWriter, LocalWriter, MergingWriter, SamplingWriter
from indexer.state.state import State

_SAMPLE: Final = 200
_BATCH: Final = 5_000
# The space in bytes from which on a build reports what it needs.
_WORTH_A_LINE: Final = 1_000_000_000

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

        `advance` is called with the number of documents that were looked up.
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
    """Check the number of documents of each kind after the last changes."""
    for projected in Projector(state).all():
        if (found := reader.count(projected.kind)) != projected.count:
            raise SinkError(f"the new generation holds {found} {projected.kind}, {projected.count} are public")


def batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` values."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def first_stamp_of(state: State, generation: str, now: datetime) -> Stamp:
    """The stamp of a generation with the current contents of the state."""
    counts = {projected.kind: projected.count for projected in Projector(state).all()}
    return first_stamp(generation, now, state.position).counted(counts)


def write_generation(
    writer: GenerationWriter, stamp: Stamp, state: State, check: Callable[[], None], tick: Callable[[], None]
) -> Stamp:
    """Write, seal and verify a generation; returns its stamp.

    `check` raises when the lease is lost. `tick`, called after each document and in waits, updates the live generation.
    """
    if isinstance(writer, LocalWriter):
        directory, needed = writer.needed_space(stamp.counts)
        line = require_space(directory, needed)
        if needed >= _WORTH_A_LINE:
            remark(line)
    samples = tuple(_write_kind(writer, projected, tick) for projected in Projector(state).all())
    check()
    writer.write_operations(operations_of(state, None))
    if isinstance(writer, MergingWriter):
        with stage("Merging") as advance:
            writer.merge(partial(_advance, advance, tick, 0))
    with stage("Writing the typeahead and sealing") as advance:
        sealed = in_thread(partial(writer.seal, stamp), partial(_advance, advance, tick, 0))
    with stage("Verifying", sum(sealed.counts.values()), "documents") as advance:
        for sample in samples:
            sample.verify(writer, partial(_advance, advance, tick))
    return sealed


def _write_kind(writer: GenerationWriter, projected: Projected, tick: Callable[[], None]) -> Sample:
    sample, kind = Sample(projected), projected.kind
    if isinstance(writer, SamplingWriter):
        writer.learn(kind, projected.sample())
    with ExitStack() as stages:
        # Each shop has a document of facts, whatever is known of it.
        unit = "shops" if kind == "facts" else kind
        advance = stages.enter_context(stage(f"Indexing {kind}", projected.count, unit))

        def documents() -> Iterator[object]:
            nonlocal advance
            for document in sample.watch(projected.documents()):
                yield document
                _advance(advance, tick, 1)
            # The engine has received all documents; it returns when they are written.
            stages.close()
            advance = stages.enter_context(stage(f"Writing out {kind}"))

        sample.written = writer.add(kind, documents(), lambda: _advance(advance, tick, 0))
    return sample


def _advance(advance: Advance, tick: Callable[[], None], done: int) -> None:
    advance(done)
    tick()
