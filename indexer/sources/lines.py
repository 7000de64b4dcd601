"""Cuts lines of NDJSON from blocks of bytes of any size.

Memory is bounded by one line: only the beginning of a line that is too long is stored.
"""

from dataclasses import dataclass
from typing import Final

MAX_LINE: Final = 1024 * 1024
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
BEGINNING: Final = 1_024

_END: Final = b"\n"


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line.

    Attributes:
        number: from 1.
        text: without line feed and byte order mark; the first BEGINNING bytes of a line that is too long.
        too_long: whether the line is longer than the limit.
    """

    number: int
    text: bytes
    too_long: bool

    @property
    def blank(self) -> bool:
        """Whether the line holds nothing but white space."""
        return not self.too_long and not self.text.strip()


class LineCutter:
    """Cuts the bytes that it is fed with into whole lines.

    Args:
        number: the number of lines before the first byte.
        skipping: whether the first bytes are the rest of a line that was already returned as too long.
        longest: the bytes that a line may have, without its line feed.

    Attributes:
        number: the number of lines so far, including those before the first byte.
        skipping: whether the rest of the last line, which was too long, still has to be skipped.
        longest: as in the arguments.
        consumed: the number of bytes consumed so far.
    """

    def __init__(self, number: int = 0, *, skipping: bool = False, longest: int = MAX_LINE) -> None:
        self.number = number
        self.skipping = skipping
        self.consumed = 0
        self.longest = longest
        self._bytes = b""
        self._offset = 0

    def feed(self, more: bytes) -> None:
        """Append bytes."""
        self._bytes = self._bytes[self._offset :] + more
        self._offset = 0

    def end(self) -> None:
        """Note that no bytes follow: the remainder is the last line."""
        if self._remaining and not self._bytes.endswith(_END):
            self.feed(_END)

    @property
    def more(self) -> bool:
        """Whether `cut` would consume bytes: of a whole line, or of the rest of a line that is too long."""
        if self.skipping:
            return self._remaining > 0
        return self._remaining > self.longest or self._bytes.find(_END, self._offset) >= 0

    def cut(self) -> Line | None:
        """The next line; None if it is incomplete. A line that is too long is returned before its end was fed."""
        if self.skipping:
            self._consume_through(self._bytes.find(_END, self._offset))
        end = self._bytes.find(_END, self._offset)
        length = (end if end >= 0 else len(self._bytes)) - self._offset
        too_long = length > self.longest
        if self.skipping or (end < 0 and not too_long):
            return None
        text = self._bytes[self._offset : self._offset + (min(self.longest, BEGINNING) if too_long else length)]
        self.number += 1
        self._consume_through(end)
        return Line(self.number, text.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else text, too_long)

    @property
    def _remaining(self) -> int:
        return len(self._bytes) - self._offset

    def _consume_through(self, end: int) -> None:
        """Consume through the line feed at `end`; if that is negative, all bytes and the rest of the line later."""
        after = end + 1 if end >= 0 else len(self._bytes)
        self.consumed += after - self._offset
        self._offset = after
        self.skipping = end < 0
