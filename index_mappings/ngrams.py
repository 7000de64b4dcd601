"""The terms by which both engines find a text by a prefix or by a part of it (M3).

Short prefixes and short parts are terms of their own: one letter is a prefix of more than a tenth of all values, and a
prefix query visits each of these. Longer prefixes are looked up in the dictionary of whole values. A part of three
characters or more (M3 d) is a phrase of trigrams in the embedded engine, and a prefix of a suffix in OpenSearch. A
shorter part counts only if it has a Han, kana or Hangul character.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from index_mappings.roles import EngineField, Role, fields_with
from index_mappings.text import is_ideographic
from index_mappings.tiers import INFIX_MIN

# The maximum length of prefixes that are terms of their own. The dictionary of whole values has few enough values for a
# prefix of four characters that a prefix query takes a millisecond or two.
SHORT_MAX: Final = 3
_SHORT_LENGTHS: Final = tuple(range(1, SHORT_MAX + 1))
# Separates the trigrams of two texts, so that no phrase begins in one text and ends in the other.
_BETWEEN: Final = " "


class IndexedFields(NamedTuple):
    """The fields of an engine that the fields of a document class become.

    Attributes:
        own: names of fields whose values are indexed as they are.
        prefixes: of each PREFIX field its name, and the name of the field of its short prefixes.
        infixes: of each INFIX field its name, and the names of the fields of its short and of its long parts.
    """

    own: tuple[str, ...]
    prefixes: tuple[tuple[str, str], ...]
    infixes: tuple[tuple[str, str, str], ...]


def indexed_fields(document: type, own: Iterable[EngineField], long_field: Callable[[str], str]) -> IndexedFields:
    """Derive the fields of an engine.

    Args:
        document: a document class.
        own: its fields whose values are indexed as they are.
        long_field: the name of the field of the long parts of an INFIX field.
    """
    return IndexedFields(
        tuple(field.name for field in own),
        tuple((name, short_field(name)) for name in fields_with(document, Role.PREFIX)),
        tuple((name, short_field(name), long_field(name)) for name in fields_with(document, Role.INFIX)),
    )


def indexed_values(
    document: object, fields: IndexedFields, long_parts: Callable[[Iterable[str]], list[str]]
) -> dict[str, Any]:
    """The values or lists of terms of a document by the names of an engine's fields.

    Args:
        document: the document.
        fields: the engine's fields.
        long_parts: makes the terms of the long parts of texts.
    """
    values: dict[str, Any] = {}
    for name in fields.own:
        value = getattr(document, name)
        values[name] = list(value) if isinstance(value, tuple) else value
    for name, short in fields.prefixes:
        values[short] = short_prefixes(getattr(document, name))
    for name, short, long in fields.infixes:
        texts = getattr(document, name)
        values[short] = short_parts(texts)
        values[long] = long_parts(texts)
    return values


def short_field(name: str) -> str:
    """The field of the short prefixes of a PREFIX field, or of the short parts of an INFIX field."""
    return f"{name}_short"


def suffixes_field(name: str) -> str:
    """The field of the suffixes of an INFIX field in OpenSearch; a part of INFIX_MIN or more characters begins one."""
    return f"{name}_suffixes"


def trigrams_field(name: str) -> str:
    """The column in the embedded engine of the trigrams of an INFIX field."""
    return f"{name}_runs"


def is_part_evidence(word: str) -> bool:
    """Whether a word is long enough to match a part of a name (M3 d)."""
    return len(word) >= INFIX_MIN or is_ideographic(word)


def short_prefixes(texts: Iterable[str]) -> list[str]:
    """The distinct prefixes of texts of up to SHORT_MAX characters, in no order."""
    return list({text[:length] for text in texts for length in _SHORT_LENGTHS})


def trigrams(text: str) -> list[str]:
    """The substrings of INFIX_MIN characters of a text, in order; none of a shorter text."""
    return [text[start : start + INFIX_MIN] for start in range(len(text) - INFIX_MIN + 1)]


def trigram_row(texts: Iterable[str]) -> list[str]:
    """The trigrams of all texts, concatenated with separators."""
    row: list[str] = []
    for text in texts:
        if row:
            row.append(_BETWEEN)
        row += trigrams(text)
    return row


def short_parts(texts: Iterable[str]) -> list[str]:
    """The distinct parts of texts that are shorter than a trigram and have an ideographic character, sorted."""
    return sorted({part for text in texts if not text.isascii() for part in _short_parts(text)})


def _short_parts(text: str) -> Iterator[str]:
    for length in range(1, INFIX_MIN):
        for start in range(len(text) - length + 1):
            part = text[start : start + length]
            if is_ideographic(part):
                yield part
