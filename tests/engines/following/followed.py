"""A catalogue on disk, and an index that follows its changes: stepped, stopped, started, or crashed by a test."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import Operations, ResourceAccount, Stamp
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
        self.append(one.line for one in statements)

    @contextmanager
    def follower(
        self,
        around: Callable[[GenerationEditor], GenerationEditor] = lambda editor: editor,
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[ChangeApplier]:
        """What follows into the live generation, from its state as it is on the disk; closed at the end."""
        live = self.live
        letters = DeadLetters(self.states.dead_letters)
        changes = NdjsonCatalogue(self.catalogue).changes()
        with self.states.open(live.generation) as state:
            editor = self.sink.edit(live.generation)
            try:
                yield ChangeApplier(state, around(editor), changes, letters, check)
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
        with self.follower() as follower:
            return follower.drain()

    @property
    def live(self) -> Stamp:
        live = self.sink.live()
        assert live is not None
        return live

    def scan(self) -> Scanned:
        editor = self.sink.edit(self.live.generation)
        try:
            return {kind: dict(scan(editor, kind)) for kind in DOCUMENTS}
        finally:
            editor.close()

    def rebuilt(self) -> Scanned:
        sink = MemorySink()
        build(NdjsonCatalogue(self.catalogue), sink)
        return scanned(sink)

    def accounts(self) -> tuple[ResourceAccount, ...]:
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


class CrashPoint(Enum):
    TAKEN = "taken"  # the state has the changes, the engine nothing
    WRITING = "writing"  # the engine has some of the documents
    WRITTEN = "written"  # it has all, and shows none
    SHOWN = "shown"  # it shows them, and the stamp has not risen
    COMMITTED = "committed"  # the stamp has risen, and the documents are still pending


class CrashedError(Exception):
    """It crashed."""


def crashing_check(point: CrashPoint) -> Callable[[], None]:
    def check() -> None:
        if point is CrashPoint.TAKEN:
            raise CrashedError

    return check


class BreakingEditor:
    """A real editor up to the point of the crash."""

    def __init__(self, editor: GenerationEditor, point: CrashPoint | None = None, writes: int = 0) -> None:
        """Note when to fall, if at all: of CrashPoint.WRITING after so many writes of a kind."""
        self._editor, self._point, self._writes = editor, point, writes
        self.count, self.count_ids, self.read = editor.count, editor.count_ids, editor.read
        self.page, self.operations = editor.page, editor.operations
        self.remove_of_shops, self.files_damaged = editor.remove_of_shops, editor.files_damaged
        self.typeahead, self.close = editor.typeahead, editor.close

    @property
    def stamp(self) -> Stamp:
        return self._editor.stamp

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        if self._point is CrashPoint.WRITING and self._writes == 0:
            raise CrashedError
        self._writes -= 1
        return self._editor.write(kind, documents, removed)

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        self._editor.write_operations(operations, wait_for_engine=wait_for_engine)

    def show(self) -> None:
        if self._point is CrashPoint.WRITTEN:
            raise CrashedError
        self._editor.show()

    def commit(self, stamp: Stamp) -> None:
        if self._point is CrashPoint.SHOWN:
            raise CrashedError
        self._editor.commit(stamp)
        if self._point is CrashPoint.COMMITTED:
            raise CrashedError
