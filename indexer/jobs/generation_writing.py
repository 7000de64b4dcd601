"""Writes a new generation from a settled state, seals it, and verifies it before readers can see it (G1).

Counts must be exact, a sample read back must be equal, and the generation must hold no document that is not public.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from index_mappings.documents import stored_part
from index_mappings.generations import Stamp, first_stamp
from index_mappings.operations import Operations
from indexer.jobs.follower_status import accounts_of
from indexer.progress import Advance, stage
from indexer.projection.generation import Projected, Projector
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import GenerationReader, GenerationWriter, Sink
from indexer.state.state import State

_SAMPLE: Final = 200
_BATCH: Final = 5_000
_TICK_S: Final = 0.5

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


@dataclass(frozen=True, slots=True)
class GenerationWriting:
    """What it takes to write the generation of a build.

    Attributes:
        sink: where the generation goes.
        state: the records, settled.
        check: raises when the lease is lost.
        tick: called after each document and in each wait, to keep the live generation up to date.
        clock: for the stamp.
        acceptance: asks the acceptance queries of the sealed generation, and raises SinkError when one fails.
    """

    sink: Sink
    state: State
    check: Callable[[], None]
    tick: Callable[[], None]
    clock: Callable[[], datetime]
    acceptance: Callable[[Stamp], None] | None

    def stamp(self, generation: str) -> Stamp:
        """The stamp of a generation that holds what the state holds now."""
        counts = {projected.kind: projected.count for projected in Projector(self.state).all()}
        return first_stamp(generation, self.clock(), self.state.position).counted(counts)

    def write(self, generation: str) -> GenerationWriter:
        """Write, seal and verify a generation; if any of that fails, what was written is removed.

        Raises:
            SinkError: the engine failed, does not hold what was written, or failed an acceptance query.
        """
        writer = self.sink.begin(generation)
        try:
            samples = [self._write_kind(writer, projected) for projected in Projector(self.state).all()]
            stamp = self.stamp(generation)
            self.check()
            writer.write_operations(Operations(accounts_of(self.state), None))
            with stage("Merging") as advance:
                writer.merge(partial(self._advance, advance, 0))
            with stage("Writing the typeahead and sealing") as advance:
                stamp = self._seal(writer, stamp, advance)
            with stage("Verifying", sum(stamp.counts.values()), "documents") as advance:
                for sample in samples:
                    sample.verify(writer, partial(self._advance, advance))
            if self.acceptance is not None:
                self.acceptance(stamp)
        except BaseException:
            self.sink.drop(generation)
            raise
        return writer

    def _write_kind(self, writer: GenerationWriter, projected: Projected) -> Sample:
        sample, kind = Sample(projected), projected.kind
        with ExitStack() as stages:
            advance = stages.enter_context(stage(f"Indexing {kind}", projected.count, kind))

            def documents() -> Iterator[object]:
                for document in sample.watch(projected.documents()):
                    yield document
                    self._advance(advance, 1)
                # The engine has received all documents; it returns when they are written.
                stages.close()
                stages.enter_context(stage(f"Writing out {kind}"))

            sample.written = writer.add(kind, documents())
        return sample

    def _seal(self, writer: GenerationWriter, stamp: Stamp, advance: Advance) -> Stamp:
        """Seal in a thread: it takes a minute for a million shops, in which the live generation is followed."""
        with ThreadPoolExecutor(1) as thread:
            sealing = thread.submit(writer.seal, stamp)
            while not wait((sealing,), _TICK_S).done:
                self._advance(advance, 0)
            return sealing.result()

    def _advance(self, advance: Advance, done: int) -> None:
        advance(done)
        self.tick()
