"""The fields of both engines, and the terms by which these find a text by a prefix or by a part of it (M3).

Short prefixes are terms of their own: one letter is a prefix of more than a tenth of all values, and a prefix query
visits each value. A longer prefix is looked up in the dictionary of the values, which are cut to CUT_LENGTH; long ones
are whole next to the short prefixes, where texts that are longer than that are looked up. A part of three characters or
more (M3 d) is a term or a phrase of runs in the embedded engine, and a prefix of a suffix in OpenSearch. A shorter part
counts only if it has a Han, kana or Hangul character.

Runs are the substrings of some fixed lengths. A part is covered by runs of the greatest of these lengths that it has,
side by side, so even a part of 200 characters is a phrase of five runs: the time of a phrase grows with the number of
its runs times the number of their positions in a document.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from index_mappings.documents import Form, Role, ShopDocument, declared_fields, fields_with
from index_mappings.text import is_ideographic
from index_mappings.tiers import INFIX_MIN

# The greatest length of prefixes that are terms of their own. A prefix query takes half a millisecond for five Han
# characters alone, and more for each value: 50,000 begin with `store` in some catalogues.
SHORT_PREFIX_MAX: Final = 8
# A prefix query visits each character of each value that it finds: thousands of values of 200 characters take 4 ms, and
# few of these differ in their first 128.
CUT_LENGTH: Final = 128
# The lengths of runs: short enough for most parts, and few times the one before, so that most parts have two runs, and
# one of 200 characters has five. Words of four to six letters are a term: many shops have `shop`, `store` or `online`.
RUN_LENGTHS: Final = (4, 5, 6, 8, 16, 48)
_BETWEEN: Final = " "
# Engines look up whole values of fields with one of these roles, of which prefix queries scan the values; and order
# hits by fields with one of those.
_INDEXED: Final = Role.EXACT | Role.PREFIX | Role.RANGE
_SORTABLE: Final = Role.SORT | Role.WALK


class EngineField(NamedTuple):
    """A field of an engine's index, whose values `values` computes from the document's field `source`.

    Values of an `indexed` field can be looked up, those of a `counted` one counted over the hits. Hits can be ordered
    by a `sortable` field, which has one value per document.
    """

    name: str
    source: str
    form: Form
    values: Callable[[Any], Any]
    indexed: bool = False
    sortable: bool = False
    counted: bool = False

    @property
    def ordered(self) -> bool:
        """Whether it also holds the positions of a document's terms."""
        return self.values is run_row


def engine_fields(
    document: type, long_field: Callable[[str], str], long_parts: Callable[[Iterable[str]], list[str]]
) -> tuple[EngineField, ...]:
    """The fields of a document class in an engine: its own, then those of prefixes and of parts.

    `long_field` and `long_parts` are the engine's name and values of the field of the long parts of an INFIX field.
    """
    prefixes, infixes = fields_with(document, Role.PREFIX), fields_with(document, Role.INFIX)
    return (
        *(
            EngineField(
                name,
                name,
                form,
                _cut if Role.PREFIX in roles else _own,
                bool(roles & _INDEXED),
                bool(roles & _SORTABLE),
                Role.COUNTED in roles,
            )
            for name, roles, form in declared_fields(document)
            if roles & (_INDEXED | _SORTABLE | Role.STORED)
        ),
        *(EngineField(short_field(name), name, Form.TERMS, short_prefixes, indexed=True) for name in prefixes),
        *(EngineField(short_field(name), name, Form.TERMS, short_parts, indexed=True) for name in infixes),
        *(EngineField(long_field(name), name, Form.TERMS, long_parts, indexed=True) for name in infixes),
    )


def engine_values(document: object, fields: Iterable[EngineField]) -> dict[str, Any]:
    """The values or lists of terms of a document by the names of an engine's fields."""
    return {field.name: field.values(getattr(document, field.source)) for field in fields}


def _own(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _cut(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text[:CUT_LENGTH] for text in texts))


def short_field(name: str) -> str:
    """The field of the short prefixes and the long texts of a PREFIX field, or of the short parts of an INFIX field."""
    return f"{name}_short"


def suffixes_field(name: str) -> str:
    """The field of the suffixes of an INFIX field in OpenSearch; a part of INFIX_MIN or more characters begins one."""
    return f"{name}_suffixes"


def runs_field(name: str) -> str:
    """The column in the embedded engine of the runs of an INFIX field."""
    return f"{name}_runs"


def is_part_evidence(word: str) -> bool:
    """Whether a word is long enough to match a part of a name (M3 d)."""
    return len(word) >= INFIX_MIN or is_ideographic(word)


def short_prefixes(texts: Iterable[str]) -> list[str]:
    """The distinct prefixes of texts that are terms, and the texts that are cut elsewhere, in no order."""
    known = list(texts)
    prefixes = {text[:length] for text in known for length in range(1, SHORT_PREFIX_MAX + 1)}
    return list(prefixes.union(text for text in known if len(text) >= CUT_LENGTH))


def prefix_lookup(name: str, prefix: str) -> tuple[str, bool]:
    """Where the texts of a PREFIX field that begin with a prefix are looked up, and whether by terms that equal it."""
    length = len(prefix)
    return name if SHORT_PREFIX_MAX < length <= CUT_LENGTH else short_field(name), length <= SHORT_PREFIX_MAX


def exact_lookup(name: str, text: str) -> str:
    """Where the values of a field of shops that equal a text are looked up."""
    return short_field(name) if len(text) >= CUT_LENGTH and name in fields_with(ShopDocument, Role.PREFIX) else name


def covering_runs(text: str) -> list[tuple[int, str]]:
    """The runs that cover a text, each with its position in it; none of a text shorter than INFIX_MIN.

    A document has the text exactly where it has these runs at these distances.
    """
    if len(text) < RUN_LENGTHS[0]:
        return [(0, text)] if len(text) == INFIX_MIN else []
    length = next(length for length in reversed(RUN_LENGTHS) if length <= len(text))
    last = len(text) - length
    return [(start, text[start : start + length]) for start in (*range(0, last, length), last)]


def run_row(texts: Iterable[str]) -> list[str]:
    """The distinct parts of INFIX_MIN characters, then the runs of each text, in the order of their positions.

    The runs of two texts are further apart than a run is long, which is the greatest distance of two runs that cover a
    part: so no phrase begins in one text and ends in the other. Runs of other lengths are between them; separators are
    added where these are too few.
    """
    known = list(texts)
    parts = (text[start : start + INFIX_MIN] for text in known for start in range(len(text) - INFIX_MIN + 1))
    row = list(dict.fromkeys(parts))
    ends: dict[int, int] = {}
    for text in known:
        for length in RUN_LENGTHS:
            if len(text) < length:
                break
            if length in ends:
                row += [_BETWEEN] * (length - len(row) + ends[length])
            row += [text[start : start + length] for start in range(len(text) - length + 1)]
            ends[length] = len(row)
    return row


def short_parts(texts: Iterable[str]) -> list[str]:
    """The distinct parts of texts that are shorter than INFIX_MIN and have an ideographic character, sorted."""
    spans = ((text, start) for text in texts if not text.isascii() for start in range(len(text)))
    parts = {text[start : start + length] for text, start in spans for length in range(1, INFIX_MIN)}
    return sorted(filter(is_ideographic, parts))
