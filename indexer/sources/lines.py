"""Lines of NDJSON cut from bytes as they arrive, whatever pieces they come in.

Memory is bounded by one line: of one that is too long only the beginning is kept.
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
        text: without line feed and byte order mark; of a line that is too long its first BEGINNING bytes.
        too_long: whether it is longer than may be.
    """

    number: int
    text: bytes
    too_long: bool

    @property
    def blank(self) -> bool:
        """Whether there is nothing to read in it."""
        return not self.too_long and not self.text.strip()


class LineCutter:
    """Takes bytes in, gives whole lines out.

    Args:
        number: the lines before the first byte.
        skipping: the first bytes are the rest of a line that was already given as too long.
        longest: the bytes that a line may have, without its line feed.

    Attributes:
        number: the lines given, with those before.
        skipping: whether the rest of the last line, which was too long, has still to be passed over.
        longest: as it was given.
        consumed: the bytes gone through.
    """

    def __init__(self, number: int = 0, *, skipping: bool = False, longest: int = MAX_LINE) -> None:
        self.number = number
        self.skipping = skipping
        self.consumed = 0
        self.longest = longest
        self._bytes = b""
        self._at = 0

    def feed(self, more: bytes) -> None:
        """Take the bytes that follow."""
        self._bytes = self._bytes[self._at :] + more
        self._at = 0

    def end(self) -> None:
        """No bytes follow: what is left is the last line."""
        if self._left and not self._bytes.endswith(_END):
            self.feed(_END)

    @property
    def more(self) -> bool:
        """Whether `cut` has something to do: a whole line, or the rest of one that is too long."""
        if self.skipping:
            return self._left > 0
        return self._left > self.longest or self._bytes.find(_END, self._at) >= 0

    def cut(self) -> Line | None:
        """The next line; None when no whole one is there. One that is too long is given before its end is there."""
        if self.skipping:
            self._go_to(self._bytes.find(_END, self._at))
        end = self._bytes.find(_END, self._at)
        length = (end if end >= 0 else len(self._bytes)) - self._at
        too_long = length > self.longest
        if self.skipping or (end < 0 and not too_long):
            return None
        text = self._bytes[self._at : self._at + (min(self.longest, BEGINNING) if too_long else length)]
        self.number += 1
        self._go_to(end)
        return Line(self.number, text.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else text, too_long)

    @property
    def _left(self) -> int:
        return len(self._bytes) - self._at

    def _go_to(self, end: int) -> None:
        """Consume through the line feed at `end`, or all and what is still to come of the line."""
        after = end + 1 if end >= 0 else len(self._bytes)
        self.consumed += after - self._at
        self._at = after
        self.skipping = end < 0
