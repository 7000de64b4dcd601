"""An indexer that crashes at a point that the test names, as if its process had ended there."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from index_mappings.generations import Stamp
from index_mappings.operations import Operations
from index_mappings.typeahead.segment import Shown
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
        self._editor = editor
        self._point = point
        self._writes = writes

    @property
    def stamp(self) -> Stamp:
        return self._editor.stamp

    def typeahead_shown(self, after: str, end: str | None) -> Mapping[str, Shown]:
        return self._editor.typeahead_shown(after, end)

    def typeahead_damaged(self) -> tuple[str, ...]:
        return self._editor.typeahead_damaged()

    def files_damaged(self) -> tuple[tuple[str, str], ...]:
        return self._editor.files_damaged()

    def rebuild_typeahead(self) -> None:
        self._editor.rebuild_typeahead()

    def write(self, kind: str, documents: Iterable[object], removed: Collection[str]) -> int:
        if self._point is CrashPoint.WRITING and self._writes == 0:
            raise CrashedError
        self._writes -= 1
        return self._editor.write(kind, documents, removed)

    def remove_of_shops(self, kind: str, shop_ids: Collection[str]) -> None:
        self._editor.remove_of_shops(kind, shop_ids)

    def write_operations(self, operations: Operations, *, wait_for_engine: bool = True) -> None:
        self._editor.write_operations(operations, wait_for_engine=wait_for_engine)

    def operations(self) -> Operations | None:
        return self._editor.operations()

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

    def close(self) -> None:
        self._editor.close()

    def count(self, kind: str) -> int:
        return self._editor.count(kind)

    def read(self, kind: str, ids: Collection[str]) -> Mapping[str, dict[str, Any]]:
        return self._editor.read(kind, ids)

    def count_ids(self, kind: str, ids: Collection[str]) -> int:
        return self._editor.count_ids(kind, ids)

    def scan(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        return self._editor.scan(kind)

    def page(self, kind: str, after: str, most: int) -> list[tuple[str, dict[str, Any]]]:
        return self._editor.page(kind, after, most)
