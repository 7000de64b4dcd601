"""The format of a segment: the sorted texts by which some shops are found, with postings of the shops.

A segment is one immutable file, named by the SHA-256 of its bytes: arrays, each at a multiple of ALIGNMENT, then a JSON
header with their positions, then a trailer with the header's length. Shops are numbered in the order of their rank
(M1), so a lower number is a better shop. Texts are sorted by code point, so all texts with one prefix are one range.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:  # images compile the kernel from this module, and documents change more often (Dockerfile)
    from index_mappings.documents import ShopDocument

SUFFIX: Final = ".segment"
# A posting is a shop's number, and in its lowest bits the text's marks for that shop: full form, key, word (X2), name
# of tier 8, leading name. DOTTED: only a query with a dot may be a prefix of this full form or key (M9).
# The one word after an article has REST in place of FULL: it does not match in a longer query (M9), and misspelt it is
# meant like any other full form (M6).
FULL: Final = 1
KEY: Final = 2
WORD: Final = 4
NAME: Final = 8
LEADING: Final = 16
DOTTED: Final = 32
REST: Final = 64
POSTING_BITS: Final = 7
# Either mark of a full form.
ANY_FULL: Final = FULL | REST
# The number of texts of one leaf of a tree whose nodes hold the best posting below them.
BLOCK: Final = 16
# The first characters of a text are packed into one integer: FIRSTS code points of LETTER_BITS bits, the first one in
# the highest bits; a shorter text is padded with zeros.
FIRSTS: Final = 3
LETTER_BITS: Final = 21
# Keys are also sorted without their first and without their second character, so that a typo there is a prefix look-up.
LACKING: Final = (0, 1)
ALIGNMENT: Final = 64
TRAILER_BYTES: Final = 8

# The fields of a suggestion: id, name, domain, slug of the first category, popularity.
Shown = tuple[str, str, str, str, float | None]

_INT: Final = "<i4"
_LONG: Final = "<i8"
_BYTES: Final = "|u1"
# Every array of a segment with numpy's name of its items' type. S shops, T texts, P postings, K keys of four or more
# characters, C countries, G categories. The "heads" of a list of lists are the starts of all lists and the last end.
ARRAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "offsets": _INT,  # T + 1: heads of `letters`
        "letters": _INT,  # the texts as code points, concatenated
        "firsts": _LONG,  # T: the first characters of each text, packed
        "heads": _INT,  # T + 1: of `postings`
        "postings": _INT,  # P: for each text, ascending
        "own_heads": _INT,  # S + 1: of `own`
        "own": _INT,  # P: for each shop its texts' numbers, ascending
        "own_marks": _BYTES,  # P: for each of these the marks of its posting
        "best_leading": _INT,  # tree over blocks of texts: the best posting with LEADING
        "best_key": _INT,  # the same with KEY, whether DOTTED or not
        "rests_0": _INT,  # K: the keys' text numbers, in the order of the texts without their first character
        "firsts_0": _LONG,  # K: the first characters of each of these texts, packed
        "best_0": _INT,  # tree over blocks of these: the best posting with KEY
        "rests_1": _INT,  # the same without the second character
        "firsts_1": _LONG,
        "best_1": _INT,
        "markets": _INT,  # C bitmaps of S bits in whole int32 words: the shops that pass the country's filter (M7)
        "known": _INT,  # C bitmaps: the shops that are known to sell there (M9); row "" of both is any other country
        "category_heads": _INT,  # G + 1: of `category_shops`
        "category_shops": _INT,  # for each category the shops that carry it, ascending
        "own_category_heads": _INT,  # S + 1: of `own_categories`
        "own_categories": _INT,  # for each shop its categories' numbers, ascending
        "popularities": "<f8",  # S: 0 where the source states none, as in M1
        "shown_ends": _LONG,  # S + 1: heads of `shown`
        "shown": _BYTES,  # JSON arrays of `Shown`, concatenated
        "id_ends": _INT,  # S + 1: heads of `ids`
        "ids": _BYTES,  # ASCII, concatenated
        "by_id": _INT,  # S: the shops' numbers in the order of their ids
    }
)


class ArrayPosition(NamedTuple):
    """The position of an array in a segment: its first byte, and its number of items."""

    start: int
    size: int


class Header(NamedTuple):
    """The header of a segment, with the positions of the arrays of ARRAYS, by name, and slugs of categories, by number.

    The countries are of the rows of `markets` and `known`; the first is "" and stands for every other country.
    """

    shops: int
    countries: tuple[str, ...]
    categories: tuple[str, ...]
    parts: Mapping[str, ArrayPosition]


def shown_part(shop: "ShopDocument") -> Shown:
    """The fields of a shop that a suggestion shows."""
    return shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity


def segment_path(directory: Path, name: str) -> Path:
    """The path of a segment whose name is the SHA-256 of its bytes in hexadecimal."""
    return directory / f"{name}{SUFFIX}"


def header_bytes(header: Header, size: int) -> bytes:
    """Header and trailer of a segment whose arrays take `size` bytes."""
    encoded = json.dumps({**header._asdict(), "bytes": size}).encode()
    return encoded + len(encoded).to_bytes(TRAILER_BYTES, "little")


def read_header(data: memoryview) -> Header:
    """Read the header of a whole file, whose hash the caller checks; ValueError if it is damaged, or lacks an array."""
    end = len(data) - TRAILER_BYTES
    try:
        size = int.from_bytes(data[max(0, end) :], "little")
        fields: dict[str, Any] = json.loads(bytes(data[end - size : end]) if 0 < size <= end else b"")
        parts = {name: ArrayPosition(*map(int, fields["parts"][name])) for name in ARRAYS}
        header = Header(int(fields["shops"]), tuple(fields["countries"]), tuple(fields["categories"]), parts)
        whole = fields["bytes"] == end - size
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a segment of a typeahead") from error
    for name, part in parts.items():
        width = int(ARRAYS[name][-1])
        if not whole or part.start % width or part.start < 0 or part.start + width * part.size > end - size:
            raise ValueError(f"the array {name} of a segment lies outside it")
    return header
