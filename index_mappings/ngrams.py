"""The fields of both engines, and the terms by which these find a text by a prefix or by a part of it (M3).

Prefixes are separate terms: one letter is a prefix of more than a tenth of all values, and a prefix query visits
each value. OpenSearch looks up those of more than CHUNK characters in the dictionary of the values, because there all
prefixes of a hostile shop are megabytes to send. In the embedded engine such a prefix of a TAILS field is a phrase: its
first chunk where a value starts, and the chunks behind it. Values that are ends of one name share the chunks of that
name, so its terms grow with its characters, not with its characters times its words.

A part of three characters or more (M3 d) is a term or a phrase of runs in the embedded engine, and a prefix of a suffix
in OpenSearch. A shorter part counts only if it has a Han, kana or Hangul character.

Runs are the substrings of some fixed lengths. A part is covered by runs of the greatest of these lengths that it has,
side by side, so even a part of 200 characters is a phrase of five runs: the time of a phrase grows with the number of
its runs times the number of their positions in a document.
"""

from collections.abc import Callable, Container, Iterable
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from index_mappings.documents import Form, Role, declared_fields, fields_with
from index_mappings.text import is_ideographic
from index_mappings.tiers import INFIX_MIN

# The lengths of runs: short enough for most parts, and few times the one before, so that most parts have two runs, and
# one of 200 characters has five. Words of four to six letters are a term: many shops have `shop`, `store` or `online`.
RUN_LENGTHS: Final = (4, 5, 6, 8, 16, 48)
_BETWEEN: Final = " "
# The length of chunks, and of the longest prefixes of tails that are terms. Many names of companies and branches have
# the same first characters.
CHUNK: Final = 24
# Before a chunk with which a text starts: no other chunk has this length.
_START: Final = "^"
# Engines order hits by fields with one of these roles.
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
        return self.values in (run_row, start_row)


def engine_fields(
    document: type,
    long_field: Callable[[str], str],
    long_parts: Callable[[Iterable[str]], list[str]],
    looked_up: Role,
    longest_prefix: int,
) -> tuple[EngineField, ...]:
    """The fields of a document class in an engine: its own, then those of prefixes and of parts.

    `long_field` and `long_parts` are the engine's name and values of the field of the long parts of an INFIX field. The
    engine looks up whole values of fields with one of the roles `looked_up`, and prefixes of at most `longest_prefix`
    characters, or CHUNK of tails, as terms.
    """
    tails = fields_with(document, Role.TAILS)
    prefixes_of = {True: partial(prefix_terms, longest=CHUNK), False: partial(prefix_terms, longest=longest_prefix)}
    prefixes, infixes = fields_with(document, Role.PREFIX), fields_with(document, Role.INFIX)
    return (
        *(
            EngineField(name, name, form, _own, bool(roles & looked_up), bool(roles & _SORTABLE), Role.COUNTED in roles)
            for name, roles, form in declared_fields(document)
            if roles & (looked_up | _SORTABLE | Role.STORED)
        ),
        *(
            EngineField(prefixes_field(name), name, Form.TERMS, prefixes_of[name in tails], indexed=True)
            for name in prefixes
        ),
        *(EngineField(short_field(name), name, Form.TERMS, short_parts, indexed=True) for name in infixes),
        *(EngineField(long_field(name), name, Form.TERMS, long_parts, indexed=True) for name in infixes),
    )


def engine_values(document: object, fields: Iterable[EngineField]) -> dict[str, Any]:
    """The values or lists of terms of a document by the names of an engine's fields."""
    return {field.name: field.values(getattr(document, field.source)) for field in fields}


def _own(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def prefixes_field(name: str) -> str:
    """The field of the prefixes of a PREFIX field that are terms."""
    return f"{name}_prefixes"


def starts_field(name: str) -> str:
    """The column in the embedded engine by which long prefixes of a TAILS field are found."""
    return f"{name}_starts"


def short_field(name: str) -> str:
    """The field of the short parts of an INFIX field."""
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


def prefix_terms(texts: Iterable[str], longest: int) -> list[str]:
    """The distinct prefixes of texts that have at most so many characters, in no order."""
    return list({text[: end + 1] for text in texts for end in range(min(len(text), longest))})


def start_chunks(prefix: str) -> list[tuple[int, str]]:
    """The chunks that cover a prefix of more than CHUNK characters, each with its place in a `start_row`.

    A document has a text that begins with the prefix exactly where it has these chunks at these distances.
    """
    last = len(prefix) - CHUNK
    rest = ((2 * start + 1, prefix[start : start + CHUNK]) for start in (*range(CHUNK, last, CHUNK), last))
    return [(0, _START + prefix[:CHUNK]), *rest]


def start_row(texts: Iterable[str]) -> list[str]:
    """The chunks of the texts that are longer than CHUNK, in the order of their places.

    Each place of a text has two values: the chunk that begins there, marked, if a text starts there, and the chunk.
    A text that is the end of another one starts inside of it.
    """
    row: list[str] = []
    whole, starts = "", set[int]()
    # In this order a text comes directly after one of which it is the end, if there is any.
    for backwards in sorted((text[::-1] for text in texts if len(text) > CHUNK), reverse=True):
        if not whole.startswith(backwards):
            row += _marked(whole[::-1], starts)
            whole, starts = backwards, set()
        starts.add(len(whole) - len(backwards))
    return row + _marked(whole[::-1], starts)


def _marked(text: str, starts: Container[int]) -> list[str]:
    """The part of a `start_row` that is one text's; the end of it keeps chunks of two texts apart."""
    chunks = [text[start : start + CHUNK] for start in range(len(text) - CHUNK + 1)]
    pairs = ((_START + chunk if start in starts else _BETWEEN, chunk) for start, chunk in enumerate(chunks))
    return [*chain.from_iterable(pairs), *[_BETWEEN] * (2 * CHUNK)] if chunks else []


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
