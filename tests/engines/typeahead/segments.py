"""The arrays of a segment as plainly as the format allows, independently of the indexer's writer."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from index_mappings.documents import ANY_MARKET, WORLDWIDE, ShopDocument
from index_mappings.tiers import ONE_TYPO_MIN
from index_mappings.typeahead.segment import (
    BLOCK,
    DOTTED,
    FIRSTS,
    FULL,
    KEY,
    LACKING,
    LEADING,
    LETTER_BITS,
    NAME,
    POSTING_BITS,
    WORD,
    Header,
    shown_part,
)

Arrays = dict[str, np.ndarray[Any, Any]]


def arrays_of(shops: Sequence[ShopDocument]) -> tuple[Header, Arrays]:
    """The arrays of a segment of shops that are in order of rank."""
    marks_of: dict[str, dict[int, int]] = {}
    for number, shop in enumerate(shops):
        marked = (
            (FULL, frozenset(shop.full) - frozenset(shop.rests)),
            (KEY, shop.keys),
            (WORD, shop.words),
            (NAME, shop.names),
            (LEADING, shop.leading),
            (DOTTED, shop.dotted),
        )
        for mark, of_shop in marked:
            for text in of_shop:
                having = marks_of.setdefault(text, {})
                having[number] = having.get(number, 0) | mark
    texts = sorted(marks_of)
    postings = [[number << POSTING_BITS | marks for number, marks in sorted(marks_of[text].items())] for text in texts]
    own: list[list[int]] = [[] for _ in shops]
    for place, listed in enumerate(postings):
        for posting in listed:
            own[posting >> POSTING_BITS].append(place << POSTING_BITS | posting & ((1 << POSTING_BITS) - 1))
    arrays: Arrays = {
        "letters": np.array([ord(letter) for text in texts for letter in text]),
        "offsets": _heads(texts),
        "firsts": np.array([_pack_firsts(text) for text in texts]),
        **_lists("heads", "postings", postings),
        **_lists("own_heads", "own", own),
        "best_leading": _tree(postings, LEADING),
        "best_key": _tree(postings, KEY),
        "popularities": np.array([shop.popularity or 0.0 for shop in shops]),
    }
    keys = [
        number
        for number, listed in enumerate(postings)
        if len(texts[number]) >= ONE_TYPO_MIN and any(posting & KEY for posting in listed)
    ]
    for lacking in LACKING:
        rests = {number: texts[number][:lacking] + texts[number][lacking + 1 :] for number in keys}
        order = sorted(keys, key=lambda number: (rests[number], number))
        arrays[f"rests_{lacking}"] = np.array(order)
        arrays[f"firsts_{lacking}"] = np.array([_pack_firsts(rests[number]) for number in order])
        arrays[f"best_{lacking}"] = _tree([postings[number] for number in order], KEY)
    countries = ("", *sorted({code for shop in shops for code in shop.markets} - {ANY_MARKET, WORLDWIDE}))
    arrays["markets"] = _bitmaps(shops, countries, ANY_MARKET)
    arrays["known"] = _bitmaps(shops, countries, WORLDWIDE)
    slugs = sorted({slug for shop in shops for slug in shop.categories})
    carried = {slug: [number for number, shop in enumerate(shops) if slug in shop.categories] for slug in slugs}
    arrays.update(_lists("category_heads", "category_shops", [carried[slug] for slug in slugs]))
    own_categories = [sorted(slugs.index(slug) for slug in set(shop.categories)) for shop in shops]
    arrays.update(_lists("own_category_heads", "own_categories", own_categories))
    shown = [json.dumps(shown_part(shop)).encode() for shop in shops]
    ids = [shop.id.encode("ascii") for shop in shops]
    arrays["shown_ends"], arrays["shown"] = _heads(shown), np.frombuffer(b"".join(shown), np.uint8)
    arrays["id_ends"], arrays["ids"] = _heads(ids), np.frombuffer(b"".join(ids), np.uint8)
    arrays["by_id"] = np.array(sorted(range(len(shops)), key=lambda number: ids[number]))
    return Header(len(shops), countries, tuple(slugs), {}), arrays


def _heads(lists: Sequence[Any]) -> np.ndarray[Any, Any]:
    return np.concatenate(([0], np.cumsum([len(some) for some in lists], dtype=np.int64)))


def _lists(heads: str, items: str, lists: Sequence[Sequence[int]]) -> Arrays:
    return {heads: _heads(lists), items: np.array([item for some in lists for item in some])}


def _tree(postings: Sequence[Sequence[int]], mark: int) -> np.ndarray[Any, Any]:
    """The best posting with a mark below each node over the whole blocks; the root is item 1."""
    blocks = len(postings) // BLOCK
    no_posting = np.iinfo(np.int32).max
    best = [min((posting for posting in some if posting & mark), default=no_posting) for some in postings]
    tree = [no_posting] * blocks + [min(best[block * BLOCK : (block + 1) * BLOCK]) for block in range(blocks)]
    for node in range(blocks - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    return np.array(tree)


def _bitmaps(shops: Sequence[ShopDocument], countries: Sequence[str], everywhere: str) -> np.ndarray[Any, Any]:
    bits = np.zeros((len(countries), -(-len(shops) // 32) * 32), np.bool_)
    for number, shop in enumerate(shops):
        for row, country in enumerate(countries):
            bits[row, number] = country in shop.markets or everywhere in shop.markets
    return np.packbits(bits, axis=1, bitorder="little").view(np.int32).reshape(-1)


def _pack_firsts(text: str) -> int:
    value = 0
    for char in text[:FIRSTS].ljust(FIRSTS, "\0"):
        value = value << LETTER_BITS | ord(char)
    return value
