"""Cuts lines of NDJSON from blocks of bytes of any size.

Memory is bounded by one line: only the beginning of a line that is too long is stored. Blank lines are skipped many at
a time, as a few kilobytes of gzip can hold millions of them.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.records.faults import RefusedRecordError

MAX_LINE: Final = 1024 * 1024
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
BEGINNING: Final = 1_024

_END: Final = b"\n"
_BLANK: Final = re.compile(rb"\s*\n")


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line that is not blank, without its line feed; of one that is too long, the first BEGINNING bytes."""

    number: int
    text: bytes
    too_long: bool


def parsed(line: Line) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a line; RefusedRecordError if it is none, or too long."""
    if line.too_long:
        raise RefusedRecordError((None, f"the line is longer than {MAX_LINE} bytes"))
    try:
        return strict_loads(line.text)
    except NotStrictJsonError as error:
        raise RefusedRecordError((None, f"the line {error}")) from None


def parsed_or_bytes(line: Line) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value of a line, or its bytes where `parsed` refuses it."""
    try:
        return parsed(line)
    except RefusedRecordError:
        return line.text


class LineCutter:
    """Cuts the bytes that it is fed with into whole lines.

    `number` counts the lines, those before the first byte included; `skipping` says whether the rest of a line that was
    returned as too long is still to come; `consumed` bytes are counted from the first one on. A line has at most
    `longest` bytes without its line feed.
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
        """The next line that is not blank; None if it is incomplete.

        A line that is too long is returned before its end was fed, even if it holds nothing but white space.
        """
        while True:
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
            text = text.removeprefix(BYTE_ORDER_MARK) if self.number == 1 else text
            if too_long or not (text.isspace() or not text):
                return Line(self.number, text, too_long)
            self._skip_blank()

    @property
    def _remaining(self) -> int:
        return len(self._bytes) - self._offset

    def _consume_through(self, end: int) -> None:
        """Consume through the line feed at `end`; if that is negative, all bytes and the rest of the line later."""
        after = end + 1 if end >= 0 else len(self._bytes)
        self.consumed += after - self._offset
        self._offset = after
        self.skipping = end < 0

    def _skip_blank(self) -> None:
        """Consume blank lines that follow and are whole, of which none is longer than a line may be."""
        if blank := _BLANK.match(self._bytes, self._offset, self._offset + self.longest):
            self.number += blank[0].count(_END)
            self._consume_through(blank.end() - 1)
