"""Building an index that ends as one segment: the engine asks each segment for each term, so one answers fastest.

The engine can't be told to merge. By itself it merges eight segments of like size, and counts all below a floor as of
one size. So a build commits 8 or 64 times, always as many documents, fewer than memory bounds, and fills small commits
up to the floor with empty documents, which the last commit removes: then everything left merges into one. A merge's
memory grows with its documents: what is more than 64 commits hold becomes a few segments, each made in this way.
"""

import ctypes
from contextlib import suppress
from typing import Final

import tantivy

# Terms that may wait in memory between two commits: with the heap below the engine flushes no sooner.
_COMMIT_TERMS: Final = 1_100_000
# Where documents turn out larger than the first ones were, memory goes before the number of segments.
_MOST_TERMS: Final = 1_400_000
# Documents of few terms are heavy by what they carry along.
_COMMIT_DOCUMENTS: Final = 16_000
_HEAP_BYTES: Final = 64_000_000
# The engine merges this many segments of a size, and takes sizes for alike up to a factor of 2 ** 0.75 (1.68); below
# 10,000 documents all are alike. Eight filled commits are just large enough to be of another size.
_FEW_COMMITS: Final = 8
_MANY_COMMITS: Final = 64
_FILLED: Final = 2_200
# No document of a catalogue has this id.
_FILLER_ID: Final = "."


class SegmentedBuild:
    """Writes the documents of one index."""

    def __init__(self, index: tantivy.Index, expected: int, terms_each: float) -> None:
        """Plan the commits.

        Args:
            index: an empty one, with a column `id`.
            expected: how many documents will come; where it is wrong, there are more segments.
            terms_each: terms of a document, about.
        """
        self._index = index
        self._expected = expected
        each = max(1, min(_COMMIT_DOCUMENTS, int(_COMMIT_TERMS / max(1.0, terms_each))))
        sizes = (commits for commits in (1, _FEW_COMMITS) if commits * each >= expected)
        # The commits that one segment is made of, and all of them.
        self._of_segment = next(sizes, _MANY_COMMITS)
        self._commits = self._of_segment * max(1, -(-expected // (self._of_segment * each)))
        self._filled = self._of_segment == _MANY_COMMITS
        self._writer = self._open()
        self._made = self._written = self._waiting_terms = self._in_commit = 0

    def add(self, document: tantivy.Document, terms: int) -> None:
        """Write a document of so many terms.

        Raises:
            ValueError, OSError: the engine could not.
        """
        if self._waiting_terms and self._waiting_terms + terms > _MOST_TERMS:
            self._writer.commit()
            self._waiting_terms = 0
        self._writer.add_document(document)
        self._written += 1
        self._in_commit += 1
        self._waiting_terms += terms
        if self._made + 1 < self._commits and self._written >= self._expected * (self._made + 1) // self._commits:
            self._commit()

    def finish(self) -> None:
        """Commit the rest, remove what only filled, and wait until all is merged. Errors as in `add`."""
        self._remove_fillers()
        self._writer.commit()
        self._writer.wait_merging_threads()
        _give_back()

    def _commit(self) -> None:
        self._made += 1
        left = -self._made % self._of_segment
        if left:
            self._fill()
        else:
            self._remove_fillers()
        self._writer.commit()
        self._in_commit = self._waiting_terms = 0
        if left <= 1:
            # Which segments a segment's last merge takes in must not depend on how far other merges are.
            self._writer.wait_merging_threads()
            _give_back()
            self._writer = self._open()

    def _fill(self) -> None:
        if self._filled:
            for _ in range(_FILLED - self._in_commit):
                self._writer.add_document(tantivy.Document(id=_FILLER_ID))

    def _remove_fillers(self) -> None:
        if self._filled:
            self._writer.delete_documents_by_term("id", _FILLER_ID)

    def _open(self) -> tantivy.IndexWriter:
        # One thread keeps the documents in the order in which they come.
        return self._index.writer(heap_size=_HEAP_BYTES, num_threads=1)


def _give_back() -> None:
    """Give memory that threads of the engine have freed back to the system: glibc keeps it for each thread apart."""
    with suppress(OSError, AttributeError):  # another C library keeps none, or has no such function
        ctypes.CDLL(None).malloc_trim(0)
