"""Writes a new generation from a settled state, seals it, and verifies it before readers can see it (G1)."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from index_mappings.generations import Operations, Stamp, first_stamp
from indexer.jobs.follower_status import accounts_of
from indexer.jobs.verification import Sample
from indexer.progress import Advance, stage
from indexer.projection import Projected, Projector
from indexer.sinks.protocol import GenerationWriter, Sink
from indexer.state.state import State

_TICK_S: Final = 0.5


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
