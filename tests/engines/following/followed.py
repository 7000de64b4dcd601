"""A catalogue on disk, its file of changes, and an index that follows them: stepped, stopped and started by a test."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import ResourceAccount, Stamp
from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.jobs.defaults import MICRO_BATCH
from indexer.jobs.following import Following, FollowOptions
from indexer.jobs.update import ChangeApplier, ChangeCounts
from indexer.sinks.dead_letters import DeadLetters
from indexer.sinks.protocol import GenerationEditor, Sink, scan
from indexer.sources.ndjson import CHANGES, NdjsonCatalogue
from indexer.state.state import States
from tests.engines.following.statements import Statement, by_type, newest
from tests.support.catalogues import build_into, write_catalogue_directory
from tests.support.memory_sink import MemorySink

_BOUND_S: Final = 30.0

Scanned = dict[str, dict[str, dict[str, Any]]]


class FollowedIndex:
    """A catalogue, its changes, and the index and states that follow it."""

    def __init__(self, folder: Path, sink: Sink, catalogue: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """Write the catalogue; nothing is built yet."""
        self.sink = sink
        self.catalogue = folder / "catalogue"
        self.changes = self.catalogue / CHANGES
        self.states = States(folder / "states", sink.location)
        self._folder = folder
        self.rewrite(catalogue)

    def rewrite(self, catalogue: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """Put another catalogue in its place; the changes stay."""
        write_catalogue_directory(self.catalogue, **catalogue)

    def build(self, options: BuildOptions | None = None) -> BuildSummary:
        """Build as the command does."""
        return build(
            NdjsonCatalogue(self.catalogue),
            self.sink,
            self.states,
            options or BuildOptions(most_shrink=1.0, allow_empty=True),
        )

    def append(self, lines: Iterable[Mapping[str, Any] | str]) -> None:
        """Append changes; text is appended as it is."""
        with self.changes.open("a", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)}\n")

    def append_statements(self, statements: Iterable[Statement]) -> None:
        """Append statements."""
        self.append(one.line for one in statements)

    @contextmanager
    def follower(
        self,
        around: Callable[[GenerationEditor], GenerationEditor] = lambda editor: editor,
        check: Callable[[], None] = lambda: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> Iterator[ChangeApplier]:
        """What follows into the live generation, from its state as it is on the disk; closed at the end."""
        live = self.live
        letters = DeadLetters(self.states.dead_letters)
        changes = NdjsonCatalogue(self.catalogue).changes()
        with self.states.open(live.generation) as state:
            editor = self.sink.edit(live.generation)
            try:
                yield ChangeApplier(state, around(editor), changes, letters, check, clock)
            finally:
                editor.close()
                letters.close()

    @contextmanager
    def following(self, options: FollowOptions) -> Iterator[None]:
        """The follow job in a thread, from beginning to end of the block, in which nothing of it may fail."""
        changes, stop, failures = NdjsonCatalogue(self.catalogue).changes(), Event(), list[int]()
        job = Following(self.sink, self.states, changes, options)
        thread = Thread(target=lambda: failures.append(job.run(stop).failures))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(_BOUND_S)
        assert failures == [0]

    def step(self, most: int = MICRO_BATCH) -> ChangeCounts:
        """One micro-batch by a follower that begins and ends with it."""
        with self.follower() as follower:
            return follower.step(most)

    def drain(self) -> ChangeCounts:
        """All that is there."""
        with self.follower() as follower:
            return follower.drain()

    @property
    def live(self) -> Stamp:
        """The live generation's stamp."""
        live = self.sink.live()
        assert live is not None
        return live

    def scan(self) -> Scanned:
        """Every document of the live generation, as its engine returns it."""
        editor = self.sink.edit(self.live.generation)
        try:
            return {kind: dict(scan(editor, kind)) for kind in DOCUMENTS}
        finally:
            editor.close()

    def rebuilt(self) -> Scanned:
        """Every document that a full build of the source makes."""
        sink = MemorySink()
        build(NdjsonCatalogue(self.catalogue), sink)
        return scanned(sink)

    def accounts(self) -> tuple[ResourceAccount, ...]:
        """The outside accounts that are reported alongside the live generation."""
        editor = self.sink.edit(self.live.generation)
        try:
            operations = editor.operations()
        finally:
            editor.close()
        assert operations is not None
        return operations.accounts


def right(folder: Path, statements: Iterable[Statement]) -> MemorySink:
    """A full build of what stands at last, from nothing."""
    sink = MemorySink()
    build_into(sink, write_catalogue_directory(folder, **by_type(newest(statements).values())))
    return sink


def scanned(sink: MemorySink) -> Scanned:
    """The documents of a build in memory, as `Place.scan` gives them."""
    assert sink.stamp is not None
    editor = sink.edit(sink.stamp.generation)
    return {kind: dict(scan(editor, kind)) for kind in DOCUMENTS}
