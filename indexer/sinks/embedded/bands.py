"""Bands: integers that order documents coarsely by rank, and stay valid while documents change (M1).

A band begins at an anchor, the rank of some document. Anchors never change, so a document's band depends on its rank
alone.
"""

from bisect import bisect_right
from pathlib import Path
from typing import Final, Self

from index_mappings.integrity import from_checked_json, to_checked_json
from indexer.sinks.embedded.files import write_whole
from indexer.sinks.failures import SinkError

# Documents of a band in a build: few enough to sort quickly.
BAND_WIDTH: Final = 16


class Bands:
    """The bands of one index."""

    def __init__(self, width: int = BAND_WIDTH, anchors: list[str] | None = None) -> None:
        """Begin with these ascending anchors; without any, there is one band."""
        self._width = width
        self._anchors = anchors if anchors is not None else []
        self._in_last = 0
        self._highest = ""

    def of(self, rank: str) -> int:
        """The band of a document."""
        return bisect_right(self._anchors, rank)

    def assign(self, rank: str) -> int:
        """The band of the next document of a build, which may begin a new band.

        Bands are of equal size if documents are added in the order of their ranks, and correct in any order.
        """
        if rank > self._highest:
            # All documents so far rank lower, so a new band may begin here.
            if self._in_last >= self._width:
                self._anchors.append(rank)
                self._in_last = 0
            self._highest = rank
        band = self.of(rank)
        self._in_last += band == len(self._anchors)
        return band

    def write(self, path: Path) -> None:
        """Write the anchors to a file atomically.

        Raises:
            SinkError: the file cannot be written.
        """
        write_whole(path, to_checked_json({"anchors": self._anchors}))

    @classmethod
    def are_whole(cls, path: Path) -> bool:
        """Whether the bands of an index can be read."""
        try:
            cls.read(path)
        except SinkError:
            return False
        return True

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the bands of an index.

        Raises:
            SinkError: the file is missing or damaged; no document may be added without it.
        """
        try:
            stored = from_checked_json(path.read_text(encoding="utf-8"))
            return cls(anchors=[str(anchor) for anchor in stored["anchors"]])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SinkError(f"the order of the index, {path}, cannot be read: build a new generation") from error
