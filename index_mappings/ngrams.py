"""The fields of both engines, and the terms by which these find a text by a prefix or by a part of it (M3).

Prefixes are separate terms where many texts begin so: one letter is a prefix of more than a tenth of all values, and a
prefix query visits each value. Both engines have all short prefixes. The embedded engine also has those that are
frequent in a sample of the catalogue. Any other one is looked up in the dictionary of the values, few of which begin
so. In the embedded engine a very long prefix of a TAILS field is a phrase: its first chunk where a value starts, and
the chunks behind it. Values that are ends of one name share the chunks of that name, so its terms grow with its
characters, not with its characters times its words.

A part of three characters or more (M3 d) is a prefix of a suffix in OpenSearch. In the embedded engine it is a term if
it is frequent in the sample, else a phrase of runs. A shorter part counts only if it has a Han, kana or Hangul
character.

Runs are the substrings of some fixed lengths. A part is covered by runs of the greatest of these lengths that it has,
side by side. Texts of ordinary shops have runs of one length. The time of a phrase grows with the number of its runs
times the number of their positions in a document. So where a shop's texts repeat a run, which a hostile feed may do
thousands of times, runs have four lengths, and even a part of 200 characters is a phrase of five runs.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from index_mappings.documents import Form, Role, declared_fields, fields_with
from index_mappings.text import is_ideographic
from index_mappings.tiers import INFIX_MIN

# The lengths of runs, and those where the texts of a shop repeat the shortest one more than _REPEATED times.
PLAIN_RUNS: Final = (INFIX_MIN,)
REPETITIVE_RUNS: Final = (INFIX_MIN, 6, 16, 48)
_REPEATED: Final = 16
_BETWEEN: Final = " "
# The length of chunks.
CHUNK: Final = 24
# The length to which the embedded engine cuts tails, and of the longest prefix that is not looked up as a phrase.
TAIL_MAX: Final = 200
# The lengths of the prefixes that are terms of each text in the embedded engine, and of the longest frequent parts.
SHORT_PREFIX: Final = 5
_FREQUENT_PART_MAX: Final = 8
# The texts of a hostile shop can share beginnings of thousands of characters, which nobody types.
_FREQUENT_PREFIX_MAX: Final = 48
# How many texts of a sample have a frequent prefix, and a part; others are looked up, or a phrase.
_FREQUENT_PREFIX_FROM: Final = 3
_FREQUENT_PART_FROM: Final = 6
# The names of fields that engines derive from a document's end so: of a PREFIX field the prefixes that are terms, of an
# INFIX field its short parts and, in OpenSearch, its suffixes, of which one begins with a longer part.
PREFIXES: Final = "_prefixes"
SHORT: Final = "_short"
SUFFIXES: Final = "_suffixes"
# In the embedded engine: what finds long prefixes of a TAILS field, the frequent parts of an INFIX field, and its runs,
# by whether its texts are repetitive.
STARTS: Final = "_starts"
PARTS: Final = "_parts"
RUNS: Final = "_runs"
REPETITIVE: Final = "_repetitive_runs"
# Before a chunk with which a text starts: no other chunk has this length.
_START: Final = "^"
# Engines look up whole values of fields with one of these roles, and order hits by those with one of the others.
_INDEXED: Final = Role.EXACT | Role.PREFIX | Role.RANGE
_SORTABLE: Final = Role.SORT | Role.WALK


class EngineField(NamedTuple):
    """A field of an engine's index, whose values `values` computes from the document's field `source`.

    Values of an `indexed` field can be looked up, those of a `counted` one counted over the hits. Hits can be ordered
    by a `sortable` field, which has one value per document. An `ordered` field has the positions of its terms.
    """

    name: str
    source: str
    form: Form
    values: Callable[[Any], Any]
    indexed: bool = False
    sortable: bool = False
    counted: bool = False
    ordered: bool = False


# The frequent prefixes and parts of a generation by the columns that have them as terms. Each document that is written
# to it has those of its texts, so which of them are known changes the time of searches, and no answer.
FrequentTerms = Mapping[str, frozenset[str]]
NONE_FREQUENT: Final[FrequentTerms] = MappingProxyType({})


def engine_fields(document: type, longest_prefix: int) -> tuple[EngineField, ...]:
    """The fields of a class that both engines have: its own, short parts, and prefixes, up to a length, as terms."""
    prefixes = partial(prefix_terms, longest=longest_prefix)
    return (
        *(
            EngineField(name, name, form, _own, bool(roles & _INDEXED), bool(roles & _SORTABLE), Role.COUNTED in roles)
            for name, roles, form in declared_fields(document)
            if roles & (_INDEXED | _SORTABLE | Role.STORED)
        ),
        *(
            EngineField(name + PREFIXES, name, Form.TERMS, prefixes, indexed=True)
            for name in fields_with(document, Role.PREFIX)
        ),
        *(
            EngineField(name + SHORT, name, Form.TERMS, short_parts, indexed=True)
            for name in fields_with(document, Role.INFIX)
        ),
    )


def engine_values(document: object, fields: Iterable[EngineField]) -> dict[str, Any]:
    """The values or lists of terms of a document by the names of an engine's fields."""
    return {field.name: field.values(getattr(document, field.source)) for field in fields}


def _own(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def is_part_evidence(word: str) -> bool:
    """Whether a word is long enough to match a part of a name (M3 d)."""
    return len(word) >= INFIX_MIN or is_ideographic(word)


def prefix_terms(texts: Iterable[str], longest: int) -> list[str]:
    """The distinct prefixes of texts that have at most so many characters, in no order."""
    ends = range(1, longest + 1)
    return list({text[:end] for text in texts if text for end in ends})


def frequent_terms(document: type, sample: Iterable[object]) -> FrequentTerms:
    """The frequent terms of a class by a sample of its documents, by column."""
    sources = _frequent_sources(document)
    texts: dict[str, list[str]] = {column: [] for column in sources}
    for each in sample:
        for column, (source, _, _) in sources.items():
            texts[column] += getattr(each, source)
    return {
        column: frozenset(_frequent(texts[column], shortest, anywhere=anywhere))
        for column, (_, shortest, anywhere) in sources.items()
    }


def frequent_values(document: object, frequent: FrequentTerms) -> Iterator[tuple[str, set[str]]]:
    """The columns of frequent terms of a document, each with the document's."""
    document_class: type = type(document)
    for column, (source, shortest, anywhere) in _frequent_sources(document_class).items():
        if known := frequent.get(column):
            yield column, _of_frequent(getattr(document, source), known, shortest, anywhere=anywhere)


@cache
def _frequent_sources(document: type) -> dict[str, tuple[str, int, bool]]:
    """By column of frequent terms, the document's field, the length of the shortest, and whether they are parts."""
    prefixes = {name + PREFIXES: (name, SHORT_PREFIX + 1, False) for name in fields_with(document, Role.PREFIX)}
    parts = {name + PARTS: (name, INFIX_MIN + 1, True) for name in fields_with(document, Role.INFIX)}
    return prefixes | parts


def _frequent(texts: Sequence[str], shortest: int, *, anywhere: bool) -> Iterator[str]:
    """The prefixes of this length and more that several texts have, or the parts, which may occur anywhere.

    What is one character longer is frequent only if it is so without that, so few are counted.
    """
    least, longest = (
        (_FREQUENT_PART_FROM, _FREQUENT_PART_MAX) if anywhere else (_FREQUENT_PREFIX_FROM, _FREQUENT_PREFIX_MAX)
    )
    starts = [(text, start) for text in texts for start in range(len(text) if anywhere else 1)]
    length = shortest
    while starts and length <= longest:
        starts = [(text, start) for text, start in starts if start + length <= len(text)]
        counts = Counter(text[start : start + length] for text, start in starts)
        yield from (part for part, count in counts.items() if count >= least)
        starts = [(text, start) for text, start in starts if counts[text[start : start + length]] >= least]
        length += 1


def _of_frequent(texts: Iterable[str], known: frozenset[str], shortest: int, *, anywhere: bool) -> set[str]:
    found: set[str] = set()
    for text in texts:
        for start in range(len(text) - shortest + 1) if anywhere else (0,):
            end = start + shortest
            while (part := text[start:end]) in known and end <= len(text):
                found.add(part)
                end += 1
    return found


def cut_tails(texts: Iterable[str]) -> list[str]:
    """The distinct texts without what is behind TAIL_MAX, sorted."""
    return sorted({text[:TAIL_MAX] for text in texts})


def start_chunks(prefix: str) -> list[tuple[int, str]]:
    """The chunks that cover a prefix of more than CHUNK characters, each with its place in a `start_row`.

    A document has a text that begins with the prefix exactly where it has these chunks at these distances.
    """
    last = len(prefix) - CHUNK
    rest = ((2 * start + 1, prefix[start : start + CHUNK]) for start in (*range(CHUNK, last, CHUNK), last))
    return [(0, _START + prefix[:CHUNK]), *rest]


def start_row(texts: Iterable[str]) -> list[str]:
    """The chunks of the texts that are longer than TAIL_MAX, in the order of their places.

    Each place of a text has two values: the chunk that begins there, marked, if a text starts there, and the chunk.
    A text that is the end of another one starts inside of it.
    """
    row: list[str] = []
    if not (reversed_texts := [text[::-1] for text in texts if len(text) > TAIL_MAX]):
        return row
    whole, starts = "", set[int]()
    # In this order a text comes directly after one of which it is the end, if there is any.
    for backwards in sorted(reversed_texts, reverse=True):
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


def covering_runs(text: str, lengths: Sequence[int]) -> list[tuple[int, str]]:
    """The runs that cover a text of at least the shortest of the lengths, each with its position in it.

    A document has the text exactly where it has these runs at these distances.
    """
    length = next(length for length in reversed(lengths) if length <= len(text))
    last = len(text) - length
    return [(start, text[start : start + length]) for start in (*range(0, last, length), last)]


def plain_run_row(texts: tuple[str, ...]) -> list[str]:
    """The runs of texts that are not repetitive; none of others."""
    return [] if _is_repetitive(texts) else _run_row(texts, PLAIN_RUNS)


def repetitive_run_row(texts: tuple[str, ...]) -> list[str]:
    """The runs of texts that are repetitive; none of others."""
    return _run_row(texts, REPETITIVE_RUNS) if _is_repetitive(texts) else []


# Both rows of runs ask it of the same texts.
@lru_cache(maxsize=1)
def _is_repetitive(texts: tuple[str, ...]) -> bool:
    runs = [text[start : start + INFIX_MIN] for text in texts for start in range(len(text) - INFIX_MIN + 1)]
    # All runs together repeat at least as often as the most frequent one: nearly all shops are decided by that.
    return len(runs) - len(set(runs)) >= _REPEATED and max(Counter(runs).values()) > _REPEATED


def _run_row(texts: Iterable[str], lengths: Sequence[int]) -> list[str]:
    """The runs of each text, in the order of their positions.

    The runs of two texts are further apart than a run is long, which is the greatest distance of two runs that cover a
    part: so no phrase begins in one text and ends in the other. Runs of other lengths are between them; separators are
    added where these are too few.
    """
    row: list[str] = []
    ends: dict[int, int] = {}
    for text in texts:
        for length in lengths:
            if len(text) < length:
                break
            if length in ends:
                row += [_BETWEEN] * (length - len(row) + ends[length])
            row += [text[start : start + length] for start in range(len(text) - length + 1)]
            ends[length] = len(row)
    return row


def short_parts(texts: Iterable[str]) -> list[str]:
    """The distinct parts of texts that are shorter than INFIX_MIN and have an ideographic character, sorted."""
    dense = [text for text in texts if is_ideographic(text)]
    lengths = range(1, INFIX_MIN)
    parts = {text[start : start + length] for text in dense for start in range(len(text)) for length in lengths}
    return sorted(filter(is_ideographic, parts))
