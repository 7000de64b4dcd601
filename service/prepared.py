"""Answers of /suggest that are ready in memory: of one stamp, bounded in bytes, the longest unused leave first (C1).

What is found depends on the folded text, the country and the limit; what is sent also on how it was typed. So shops and
categories are kept once by the former, as the bytes that they are sent as, and whole answers by the raw query string.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from service.wire import JSON

V = TypeVar("V")

# What an entry costs beside its bytes: the key's and the value's objects and their place in the table.
_ENTRY_BYTES: Final = 500
# Of the whole, what answers by raw query string may take: most look-ups end there.
_RAW_SHARE: Final = 0.5
# A query string longer than this is nobody's key press.
_LONGEST_RAW: Final = 512


@dataclass(frozen=True, slots=True)
class Prepared:
    """A whole answer.

    Attributes:
        tag: its entity tag, with quotes.
        lead: the beginning of its body, which tells the query.
        tail: the rest of it, shared by answers that found the same.
        head: what of its head is its own, as HTTP/1.1 sends it, to the blank line; and `lead` behind that.
    """

    tag: bytes
    lead: bytes
    tail: bytes
    head: bytes


def prepared(tag: bytes, lead: bytes, tail: bytes) -> Prepared:
    """An answer of these parts, its head made once for all who are sent it."""
    size = len(lead) + len(tail)
    head = b"etag: %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (tag, JSON, size, lead)
    return Prepared(tag, lead, tail, head)


class BoundedCache(Generic[V]):
    """A least-recently-used cache with a bound in bytes."""

    def __init__(self, most_bytes: int) -> None:
        """Begin empty; with a bound of 0 nothing is kept."""
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._kept)

    def get(self, key: Hashable) -> V | None:
        """A kept value, which is then the last to leave."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep a value of so many bytes; one that alone is over the bound is not kept."""
        size += _ENTRY_BYTES
        if size > self._most:
            return
        self.size += size - (self._kept.pop(key)[1] if key in self._kept else 0)
        self._kept[key] = (value, size)
        while self.size > self._most:
            _, (_, gone) = self._kept.popitem(last=False)
            self.size -= gone

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self.size = 0


class PreparedAnswers:
    """The answers of the newest stamp that was asked for."""

    def __init__(self, most_bytes: int) -> None:
        """Begin empty.

        Args:
            most_bytes: the bound on all of it; 0 keeps nothing.
        """
        self._whole = BoundedCache[Prepared](int(most_bytes * _RAW_SHARE))
        self._found = BoundedCache[bytes](most_bytes - int(most_bytes * _RAW_SHARE))
        self._stamp: tuple[str, int] | None = None
        self.on = most_bytes > 0

    @property
    def size(self) -> int:
        """What is kept, in bytes."""
        return self._whole.size + self._found.size

    def whole(self, stamp: tuple[str, int], raw: bytes) -> Prepared | None:
        """The answer to a raw query string."""
        return self._whole.get(raw) if stamp == self._stamp else None

    def keep_whole(self, stamp: tuple[str, int], raw: bytes, answer: Prepared) -> None:
        """Keep an answer."""
        if self.on and len(raw) <= _LONGEST_RAW:
            self._of(stamp)
            # The tail may be shared, or kept by this answer alone: counted here, the bound holds in any case.
            own = (raw, answer.lead, answer.tail, answer.tag, answer.head)
            self._whole.put(raw, answer, sum(map(len, own)))

    def found(self, stamp: tuple[str, int], asked: Hashable) -> bytes | None:
        """What was found for a folded query."""
        return self._found.get(asked) if stamp == self._stamp else None

    def keep_found(self, stamp: tuple[str, int], asked: Hashable, tail: bytes) -> None:
        """Keep what was found."""
        if self.on:
            self._of(stamp)
            self._found.put(asked, tail, len(tail))

    def _of(self, stamp: tuple[str, int]) -> None:
        if stamp != self._stamp:
            # What an older stamp said is never asked for again.
            self._whole.clear()
            self._found.clear()
            self._stamp = stamp
