"""The format of a segment: the texts by which some shops are found, sorted, and which shops have them.

A segment is one immutable file, named by the SHA-256 of its bytes: arrays, each at a multiple of ALIGNMENT, then a JSON
header that says where they are, then a trailer with the header's length. Shops are numbered in the order of their rank
(M1), so a lower number is a better shop. Texts are sorted by code point, so all with one beginning are one range.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from index_mappings.documents import ShopDocument

SUFFIX: Final = ".segment"
# A posting is a shop's number, and in its lowest bits what the text is of that shop: a full form, a key, a word (X2), a
# name of tier 8, a leading name. DOTTED: as full form or key it may be begun only by a query with a dot (M9). The one
# word behind an article has all marks of a leading name but FULL: of a longer query it is no name (M9).
FULL: Final = 1
KEY: Final = 2
WORD: Final = 4
NAME: Final = 8
LEADING: Final = 16
DOTTED: Final = 32
POSTING_BITS: Final = 6
# How many texts are one leaf of a tree that knows the best posting below each of its nodes.
BLOCK: Final = 16
# The first characters of a text packed into one integer: FIRSTS code points of LETTER_BITS bits, the first one highest,
# zeros for those that a shorter text lacks.
FIRSTS: Final = 3
LETTER_BITS: Final = 21
# Keys are sorted once more without their first and without their second character: a typo there needs no search.
LACKING: Final = (0, 1)
ALIGNMENT: Final = 64
TRAILER_BYTES: Final = 8

# What a suggestion shows: id, name, domain, slug of the first category, popularity.
Shown = tuple[str, str, str, str, float | None]

_INT: Final = "<i4"
_LONG: Final = "<i8"
_BYTES: Final = "|u1"
# Every array of a segment with the type of its items, as numpy writes it. S shops, T texts, P postings, K keys of four
# or more characters, C countries, G categories. "heads" of a list of lists: where each list begins, and the last one's
# end.
ARRAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "offsets": _INT,  # T + 1: where in `letters` each text begins
        "letters": _INT,  # the texts as code points, one behind the other
        "firsts": _LONG,  # T: the first characters of each text, packed
        "heads": _INT,  # T + 1: of `postings`
        "postings": _INT,  # P: of each text, ascending
        "own_heads": _INT,  # S + 1: of `own`
        "own": _INT,  # P: of each shop its texts' numbers, ascending, with the marks of the postings
        "best_leading": _INT,  # tree over blocks of texts: the best posting with LEADING
        "best_key": _INT,  # the same with KEY, whether DOTTED or not
        "rests_0": _INT,  # K: keys' text numbers in the order of the text without its first character
        "firsts_0": _LONG,  # K: the first characters of each of these, packed
        "best_0": _INT,  # tree over blocks of these: the best posting with KEY
        "rests_1": _INT,  # the same without the second character
        "firsts_1": _LONG,
        "best_1": _INT,
        "markets": _INT,  # C bitmaps of S bits in whole int32 words: which shops pass the country's filter (M7)
        "known": _INT,  # C bitmaps: which shops are known to sell there (M9); both begin with "", any country not named
        "category_heads": _INT,  # G + 1: of `category_shops`
        "category_shops": _INT,  # of each category the shops that carry it, ascending
        "own_category_heads": _INT,  # S + 1: of `own_categories`
        "own_categories": _INT,  # of each shop its categories' numbers, ascending
        "popularities": "<f8",  # S: 0 where the source states none, as in M1
        "shown_ends": _LONG,  # S + 1: where in `shown` the JSON of each shop begins
        "shown": _BYTES,  # JSON arrays of `Shown`, one behind the other
        "id_ends": _INT,  # S + 1: where in `ids` each id begins, by number
        "ids": _BYTES,  # ASCII, one behind the other
        "by_id": _INT,  # S: the shops' numbers in the order of their ids
    }
)


class Part(NamedTuple):
    """Where in a segment an array is.

    Attributes:
        start: byte at which it begins.
        size: number of items.
    """

    start: int
    size: int


class Header(NamedTuple):
    """What a segment says of itself.

    Attributes:
        shops: number of shops.
        countries: of the rows of `markets` and `known`; the first is "" and stands for every country not named.
        categories: slugs, by number.
        parts: where the arrays of ARRAYS are, by name.
    """

    shops: int
    countries: tuple[str, ...]
    categories: tuple[str, ...]
    parts: Mapping[str, Part]


def shown_part(shop: ShopDocument) -> Shown:
    """What a suggestion shows of a shop."""
    return shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity


def segment_path(directory: Path, name: str) -> Path:
    """The file of a segment by its name, the SHA-256 of its bytes in hexadecimal."""
    return directory / f"{name}{SUFFIX}"


def header_bytes(header: Header, size: int) -> bytes:
    """Header and trailer of a segment whose arrays take `size` bytes."""
    told = {
        "shops": header.shops,
        "countries": header.countries,
        "categories": header.categories,
        "parts": header.parts,
        "bytes": size,
    }
    encoded = json.dumps(told).encode()
    return encoded + len(encoded).to_bytes(TRAILER_BYTES, "little")


def read_header(data: memoryview) -> Header:
    """The header of a segment.

    Args:
        data: the whole file. That it is what its name says is the caller's to check: nothing is hashed here.

    Raises:
        ValueError: it is no segment, an array is missing or lies outside the file.
    """
    end = len(data) - TRAILER_BYTES
    try:
        size = int.from_bytes(data[max(0, end) :], "little")
        told: dict[str, Any] = json.loads(bytes(data[end - size : end]) if 0 < size <= end else b"")
        parts = {name: Part(*map(int, told["parts"][name])) for name in ARRAYS}
        header = Header(int(told["shops"]), tuple(told["countries"]), tuple(told["categories"]), parts)
        whole = told["bytes"] == end - size
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a segment of a typeahead") from error
    for name, part in parts.items():
        width = int(ARRAYS[name][-1])
        if not whole or part.start % width or part.start < 0 or part.start + width * part.size > end - size:
            raise ValueError(f"the array {name} of a segment lies outside it")
    return header


def pack_firsts(text: str) -> int:
    """The first characters of a text as one integer, as `firsts` holds them."""
    value = 0
    for place in range(FIRSTS):
        value = value << LETTER_BITS | (ord(text[place]) if place < len(text) else 0)
    return value
