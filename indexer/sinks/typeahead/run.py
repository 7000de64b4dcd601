"""Builds a segment of shops in memory: a part of a build, or a micro-batch of changes."""

from array import array
from itertools import chain

import numpy as np

from index_mappings.documents import ANY_MARKET, WORLDWIDE
from index_mappings.tiers import ONE_TYPO_MIN
from index_mappings.typeahead.segment import ARRAYS, KEY, LACKING, LEADING, POSTING_BITS
from indexer.sinks.typeahead.arrays import (
    ABOVE,
    BELOW,
    NO_POSTING,
    Bools,
    Ints,
    Items,
    Longs,
    best_postings,
    best_tree,
    firsts_of,
    heads_of,
    inverted,
    lengths_of,
    letters_of,
    pack_bits,
)
from indexer.sinks.typeahead.segment_file import Contents
from indexer.sinks.typeahead.shops import SegmentShop


class Run:
    """Shops in any order, each once.

    Attributes:
        letters: the number of characters of all texts and of bytes of all suggestions.
    """

    def __init__(self) -> None:
        """Start without shops."""
        self._shops: list[tuple[float, str, bytes, tuple[str, ...], tuple[str, ...]]] = []
        self._codes: dict[str, int] = {}
        self._occurring, self._marks, self._counts = array("i"), array("b"), array("i")
        self.letters = 0

    def __len__(self) -> int:
        return len(self._shops)

    def add(self, shop: SegmentShop) -> None:
        """Add a shop."""
        codes = self._codes
        self._shops.append((shop.popularity, shop.id, shop.shown, shop.markets, shop.categories))
        self._occurring.extend([codes.setdefault(text, len(codes)) for text in shop.texts])
        self._marks.extend(shop.texts.values())
        self._counts.append(len(shop.texts))
        self.letters += sum(map(len, shop.texts)) + len(shop.shown)

    def contents(self) -> Contents:
        """The segment of these shops."""
        shops = self._shops
        order = sorted(range(len(shops)), key=lambda index: (-shops[index][0], shops[index][1]))
        ranked = [shops[index] for index in order]
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        owners = np.repeat(numbers, np.asarray(self._counts))
        countries, passing = _markets([markets for _, _, _, markets, _ in ranked])
        categories, carried = _categories([slugs for *_, slugs in ranked])
        arrays = {**self._texts(owners, len(ranked)), **passing, **carried, **_columns(ranked)}
        typed = {name: np.ascontiguousarray(arrays[name], dtype) for name, dtype in ARRAYS.items()}
        return Contents(len(ranked), countries, categories, typed)

    def _texts(self, owners: Longs, shops: int) -> dict[str, Items]:
        """The arrays of texts; `owners` are the shops' numbers of all occurrences of texts, as they were added."""
        texts = sorted(self._codes)
        numbers = np.empty(len(texts), np.int64)
        numbers[[self._codes[text] for text in texts]] = np.arange(len(texts))
        occurring = numbers[np.asarray(self._occurring)]
        marks = np.asarray(self._marks)
        by_text = np.sort(occurring << ABOVE | owners << POSTING_BITS | marks)
        by_shop = np.sort(owners << ABOVE | occurring << POSTING_BITS | marks)
        postings = (by_text & BELOW).astype(np.int32)
        heads = heads_of(np.bincount(occurring, minlength=len(texts)))
        best_key = best_postings(postings, heads, KEY)
        letters, offsets = letters_of(texts), heads_of(lengths_of(texts))
        arrays: dict[str, Items] = {
            "offsets": offsets,
            "letters": letters,
            "firsts": firsts_of(letters, offsets),
            "heads": heads,
            "postings": postings,
            "own_heads": heads_of(np.bincount(owners, minlength=shops)),
            "own": (by_shop & BELOW).astype(np.int32),
            "best_leading": best_tree(best_postings(postings, heads, LEADING)),
            "best_key": best_tree(best_key),
        }
        keys = np.flatnonzero((best_key != NO_POSTING) & (np.diff(offsets) >= ONE_TYPO_MIN)).tolist()
        for lacking in LACKING:
            rests = [text[:lacking] + text[lacking + 1 :] for text in map(texts.__getitem__, keys)]
            # Keys are ascending, and the sort is stable, so keys with the same rest stay in order.
            order = sorted(range(len(keys)), key=rests.__getitem__)
            sequence = np.array([keys[index] for index in order], np.int32)
            sorted_rests = [rests[index] for index in order]
            arrays[f"rests_{lacking}"] = sequence
            arrays[f"firsts_{lacking}"] = firsts_of(letters_of(sorted_rests), heads_of(lengths_of(sorted_rests)))
            arrays[f"best_{lacking}"] = best_tree(best_key[sequence])
        return arrays


def _markets(listed: list[tuple[str, ...]]) -> tuple[tuple[str, ...], dict[str, Items]]:
    """The bitmaps of markets, and the countries of their rows."""
    distinct = {markets: kind for kind, markets in enumerate(dict.fromkeys(listed))}
    kinds = np.fromiter(map(distinct.__getitem__, listed), np.int64, len(listed))
    # Countries of a shop that sells everywhere need no row.
    named = set(chain.from_iterable(markets for markets in distinct if WORLDWIDE not in markets))
    countries = ("", *sorted(named - {ANY_MARKET}))
    rows: dict[str, list[Ints]] = {"markets": [], "known": []}
    for country in countries:
        for name, everywhere in (("markets", {ANY_MARKET}), ("known", {WORLDWIDE})):
            passing: Bools = np.array(
                [not {country, *everywhere}.isdisjoint(markets) for markets in distinct], np.bool_
            )
            rows[name].append(pack_bits(passing[kinds]))
    return countries, {name: np.concatenate(bitmaps) for name, bitmaps in rows.items()}


def _categories(listed: list[tuple[str, ...]]) -> tuple[tuple[str, ...], dict[str, Items]]:
    """The categories of each shop, the shops of each category, and the slugs."""
    slugs = tuple(sorted(set(chain.from_iterable(listed))))
    numbers = {slug: number for number, slug in enumerate(slugs)}
    own = [sorted({numbers[slug] for slug in carried}) for carried in listed]
    heads = heads_of(np.fromiter(map(len, own), np.int32, len(own)))
    items = np.fromiter(chain.from_iterable(own), np.int32, int(heads[-1]))
    category_heads, category_shops = inverted(heads, items, len(slugs))
    arrays: dict[str, Items] = {
        "category_heads": category_heads,
        "category_shops": category_shops,
        "own_category_heads": heads,
        "own_categories": items,
    }
    return slugs, arrays


def _columns(ranked: list[tuple[float, str, bytes, tuple[str, ...], tuple[str, ...]]]) -> dict[str, Items]:
    """The arrays with one value for each shop."""
    shown = [shop[2] for shop in ranked]
    ids = [shop[1].encode("ascii") for shop in ranked]
    return {
        "popularities": np.array([shop[0] for shop in ranked], np.float64),
        "shown_ends": heads_of(np.fromiter(map(len, shown), np.int64, len(shown)), np.int64),
        "shown": np.frombuffer(b"".join(shown), np.uint8),
        "id_ends": heads_of(np.fromiter(map(len, ids), np.int32, len(ids))),
        "ids": np.frombuffer(b"".join(ids), np.uint8),
        "by_id": np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
    }
