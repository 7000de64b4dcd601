"""How both engines find a text by its beginning or by a part of it (M3).

Short beginnings and short parts are terms of their own: one letter begins a tenth of all values and more, and a prefix
query visits each of them. A longer beginning is found in the dictionary of whole values. A part of three characters or
more (M3 d) occurs in a text exactly where its runs of three characters follow one another, which is a phrase query in
the embedded engine; OpenSearch has the endings of texts. A shorter part counts only if it holds a Han, kana or Hangul
character.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from index_mappings.text import is_ideographic
from index_mappings.tiers import INFIX_MIN

# Beginnings of up to so many characters are terms of their own. By four characters the dictionary of whole values holds
# few enough of them for a prefix query of a millisecond or two.
SHORT_MAX: Final = 3
# Stands between the runs of two texts, so that no part is found that begins in one of them and ends in the other.
_BETWEEN: Final = " "


def short_field(name: str) -> str:
    """Where the short beginnings of a PREFIX field are, or the short parts of an INFIX field."""
    return f"{name}_short"


def short_beginnings(texts: Iterable[str]) -> list[str]:
    """The beginnings of texts of up to SHORT_MAX characters, each once, in no order."""
    return list({text[:length] for text in texts for length in range(1, min(len(text), SHORT_MAX) + 1)})


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
