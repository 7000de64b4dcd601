"""Writes a new generation from a settled state, seals it, and verifies it before readers can see it (G1)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from index_mappings.generations import Stamp, first_stamp
from index_mappings.operations import Operations
from indexer.jobs.follower_status import accounts_of
from indexer.jobs.verification import Sample
from indexer.progress import Advance, stage
from indexer.projection.generation import Projected, Projector
from indexer.sinks.protocol import GenerationWriter, Sink
from indexer.state.state import State


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
            with stage("Writing the typeahead and sealing"):
                stamp = writer.seal(stamp)
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

    def _advance(self, advance: Advance, done: int) -> None:
        advance(done)
        self.tick()
