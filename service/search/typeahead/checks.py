"""Checks that no array of a segment points outside another one, because the kernel checks no bounds (E3)."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from index_mappings.typeahead.segment import BLOCK, LACKING, POSTING_BITS, Header

Parts = Mapping[str, np.ndarray[Any, Any]]

_LAST_LETTER: Final = 0x10FFFF
_WORD: Final = 32


def check_bounds(header: Header, parts: Parts) -> None:
    """Check all arrays of a segment.

    Args:
        header: the segment's header.
        parts: its arrays by name.

    Raises:
        ValueError: the header or an array, which the message names, is damaged.
    """
    shops, texts = header.shops, len(parts["firsts"])
    categories, countries = len(header.categories), len(header.countries)
    postings, letters = len(parts["postings"]), len(parts["letters"])
    if header.shops < 0 or not countries or header.countries[0] or len(set(header.countries)) < countries:
        raise ValueError("the header of a segment is damaged")
    for name, lists, items in (
        ("offsets", texts, letters),
        ("heads", texts, postings),
        ("own_heads", shops, postings),
        ("category_heads", categories, len(parts["category_shops"])),
        ("own_category_heads", shops, len(parts["own_categories"])),
        ("shown_ends", shops, len(parts["shown"])),
        ("id_ends", shops, len(parts["ids"])),
    ):
        _check_heads(name, parts[name], lists, items)
    marks = 1 << POSTING_BITS
    for name, least, end in (
        ("letters", 1, _LAST_LETTER + 1),
        ("postings", 0, shops * marks),
        ("own", 0, texts * marks),
        ("category_shops", 0, shops),
        ("own_categories", 0, categories),
        ("by_id", 0, shops),
        *((f"rests_{lacking}", 0, texts) for lacking in LACKING),
    ):
        _check_values(name, parts[name], least, end)
    bitmap = -(-shops // _WORD) * countries
    for name, size in (
        ("own", postings),
        ("best_leading", 2 * (texts // BLOCK)),
        ("best_key", 2 * (texts // BLOCK)),
        *((f"firsts_{lacking}", len(parts[f"rests_{lacking}"])) for lacking in LACKING),
        *((f"best_{lacking}", 2 * (len(parts[f"rests_{lacking}"]) // BLOCK)) for lacking in LACKING),
        ("markets", bitmap),
        ("known", bitmap),
        ("popularities", shops),
        ("by_id", shops),
    ):
        if len(parts[name]) != size:
            raise _damaged(name)


def _check_heads(name: str, heads: np.ndarray[Any, Any], lists: int, items: int) -> None:
    """Check that the heads ascend from 0 to the number of items, one for each list and one for the end."""
    if len(heads) != lists + 1 or heads[0] != 0 or heads[-1] != items or bool((heads[1:] < heads[:-1]).any()):
        raise _damaged(name)


def _check_values(name: str, values: np.ndarray[Any, Any], least: int, end: int) -> None:
    """Check that all values are at least `least` and less than `end`."""
    if len(values) and (int(values.min()) < least or int(values.max()) >= end):
        raise _damaged(name)


def _damaged(name: str) -> ValueError:
    return ValueError(f"the array {name} of a segment is damaged")
