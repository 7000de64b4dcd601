"""An indexer that crashes at a point that the test names, as if its process had ended there."""

from collections.abc import Callable, Collection, Iterable
from enum import Enum

from index_mappings.generations import Operations, Stamp
from indexer.sinks.protocol import GenerationEditor


class CrashPoint(Enum):
    """Where it crashes."""

    TAKEN = "taken"  # the state has the changes, the engine nothing
    WRITING = "writing"  # the engine has some of the documents
    WRITTEN = "written"  # it has all, and shows none
    SHOWN = "shown"  # it shows them, and the stamp has not risen
    COMMITTED = "committed"  # the stamp has risen, and the documents are still pending


class CrashedError(Exception):
    """It crashed."""


def crashing_check(point: CrashPoint) -> Callable[[], None]:
    """A check of the lease that falls before the first write, or never."""

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
        self.typeahead_shown, self.typeahead_damaged = editor.typeahead_shown, editor.typeahead_damaged
        self.rebuild_typeahead, self.close = editor.rebuild_typeahead, editor.close

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
