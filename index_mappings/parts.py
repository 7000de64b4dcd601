"""How the embedded engine finds a text by a part of it (M3 d): by runs of three characters, in their order.

A part of three characters or more occurs in a text exactly where its runs follow one another, which is a phrase query.
A shorter part says something only with a Han, kana or Hangul character in it; such parts are terms of their own.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from index_mappings.text import is_ideographic
from index_mappings.tiers import INFIX_MIN

# Stands between the runs of two texts, so that no part is found that begins in one of them and ends in the other.
_BETWEEN: Final = " "


def runs(text: str) -> list[str]:
    """The runs of INFIX_MIN characters of a text, in order; none of a shorter one."""
    return [text[start : start + INFIX_MIN] for start in range(len(text) - INFIX_MIN + 1)]


def rows_of_runs(texts: Iterable[str]) -> list[str]:
    """The runs of all texts, one text behind the other."""
    row: list[str] = []
    for text in texts:
        if row:
            row.append(_BETWEEN)
        row += runs(text)
    return row


def short_parts(texts: Iterable[str]) -> list[str]:
    """The parts of texts that are shorter than a run and say something, sorted, each once."""
    return sorted({part for text in texts if not text.isascii() for part in _short_parts(text)})


def _short_parts(text: str) -> Iterator[str]:
    for length in range(1, INFIX_MIN):
        for start in range(len(text) - length + 1):
            part = text[start : start + length]
            if is_ideographic(part):
                yield part
