"""Builds the typeahead of a generation from all its shops and categories, which may come in any order.

Bounded runs of shops are sorted in memory, each into a segment, and these are merged into segments of bounded size.
"""

import ctypes
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, zip_longest
from typing import Any, Final, NamedTuple

import numpy as np
import orjson

from index_mappings.documents import (
    ANY_MARKET,
    WORLDWIDE,
    CategoryDocument,
    CategoryEntry,
    ShopDocument,
    category_from_stored,
    in_category_order,
    markets_of,
)
from index_mappings.forms import ShopForms, shop_forms
from index_mappings.tiers import ONE_TYPO_MIN
from shop_directory.typeahead import manifest, segment
from shop_directory.typeahead.manifest import SegmentUse, TypeaheadManifest
from shop_directory.typeahead.segment import ARRAYS, POSTING_BITS, Shown
from shop_directory.typeahead.writing.merging import BackgroundMerging, Input, merge, weight, weight_of
from shop_directory.typeahead.writing.segment_file import (
    ABOVE,
    BELOW,
    MARKS,
    NO_POSTING,
    Bools,
    Contents,
    Ints,
    Items,
    Longs,
    best_postings,
    best_tree,
    firsts_of,
    heads_of,
    inverted,
    letters_of,
    open_segment,
    pack_bits,
    write_segment,
)
from shop_directory.typeahead.writing.store import TypeaheadStore, write_file

# Only glibc has it; other C libraries return memory by themselves, or never.
_TRIM: Final = getattr(ctypes.CDLL(None), "malloc_trim", None)
# The maximum number of shops in memory, and of characters of their texts and suggestions: some 150 MB.
_RUN_SHOPS: Final = 15_000
_RUN_LETTERS: Final = 6_000_000
# A merge of this weight takes some ten seconds, so that another process is worth its start.
_LONG_MERGE: Final = 4_000_000
# The maximum number of files that are merged together: many systems allow a process 1,024 open ones.
_MOST_INPUTS: Final = 700


# The stored parts of all documents of a kind, `shops` or `categories`.
StoredDocuments = Callable[[str], Iterable[Mapping[str, Any]]]


class SegmentShop(NamedTuple):
    """The data of a shop in a segment: JSON of the suggestion's fields, and texts by which it is found, with marks.

    The id is ASCII; the popularity is 0 if the source states none, as in M1.
    """

    id: str
    popularity: float
    shown: bytes
    markets: tuple[str, ...]
    categories: tuple[str, ...]
    texts: dict[str, int]


def segment_shop(shop: ShopDocument) -> SegmentShop:
    """The data of a shop from its document."""
    return _segment_shop(segment.shown_part(shop), shop.markets, shop.categories, marked_texts(shop))


def stored_segment_shop(stored: Mapping[str, Any]) -> SegmentShop:
    """The data of a shop from its stored part, which has no forms; these are computed again."""
    domain, categories = stored["domain"], tuple(stored["categories"])
    shown = (stored["id"], stored["name"], domain, categories[0], stored["popularity"])
    forms = shop_forms(stored["name"], stored["aliases"], domain)
    return _segment_shop(shown, markets_of(stored["countries"], domain), categories, marked_texts(forms))


def marked_texts(forms: ShopForms | ShopDocument) -> dict[str, int]:
    """All texts by which a shop is found, each with the marks of a posting."""
    marks: dict[str, int] = {}
    for mark, texts in (
        (segment.FULL, (text for text in forms.full if text not in forms.rests)),
        (segment.REST, forms.rests),
        (segment.KEY, forms.keys),
        (segment.WORD, forms.words),
        (segment.NAME, forms.names),
        (segment.LEADING, forms.leading),
        (segment.DOTTED, forms.dotted),
    ):
        for text in texts:
            marks[text] = marks.get(text, 0) | mark
    return marks


def _segment_shop(
    shown: Shown, markets: tuple[str, ...], categories: tuple[str, ...], texts: dict[str, int]
) -> SegmentShop:
    # Adding 0.0 changes -0.0 to 0.0, as in `rank_key`.
    popularity = (shown[4] or 0.0) + 0.0
    return SegmentShop(shown[0], popularity, orjson.dumps(shown), markets, categories, texts)


class ShopRun:
    """Shops in any order, each once; `letters` is the number of characters of all texts and suggestions."""

    def __init__(self) -> None:
        self._shops: list[tuple[float, str, bytes, tuple[str, ...], tuple[str, ...]]] = []
        self._codes: dict[str, int] = {}
        self._occurring, self._marks, self._counts = array("i"), array("b"), array("i")
        self.letters = 0

    def __len__(self) -> int:
        return len(self._shops)

    @property
    def most_weight(self) -> int:
        """At least the weight of the segment of these shops."""
        return weight_of(len(self._shops), len(self._codes), self.letters)

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
        best_key = best_postings(postings, heads, segment.KEY)
        letters, offsets = letters_of(texts)
        arrays: dict[str, Items] = {
            "offsets": offsets,
            "letters": letters,
            "firsts": firsts_of(letters, offsets),
            "heads": heads,
            "postings": postings,
            "own_heads": heads_of(np.bincount(owners, minlength=shops)),
            "own": (by_shop & BELOW) >> POSTING_BITS,
            "own_marks": by_shop & MARKS,
            "best_leading": best_tree(best_postings(postings, heads, segment.LEADING)),
            "best_key": best_tree(best_key),
        }
        keys = np.flatnonzero((best_key != NO_POSTING) & (np.diff(offsets) >= ONE_TYPO_MIN)).tolist()
        for lacking in segment.LACKING:
            rests = [text[:lacking] + text[lacking + 1 :] for text in map(texts.__getitem__, keys)]
            # Keys are ascending, and the sort is stable, so keys with the same rest stay in order.
            order = sorted(range(len(keys)), key=rests.__getitem__)
            sequence = np.array([keys[index] for index in order], np.int32)
            arrays[f"rests_{lacking}"] = sequence
            arrays[f"firsts_{lacking}"] = firsts_of(*letters_of([rests[index] for index in order]))
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
    keys = np.empty(len(items), np.int64)
    arrays: dict[str, Items] = {
        "category_heads": inverted(heads, items, len(slugs), keys),
        "category_shops": keys & BELOW,
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


class TypeaheadBuild:
    """A typeahead that is being built. Methods raise OSError if a file can't be written."""

    def __init__(self, store: TypeaheadStore, run_shops: int = _RUN_SHOPS) -> None:
        """At most `run_shops` are sorted in memory; no segment of several runs exceeds the store's maximum."""
        self._store, self._run_shops = store, run_shops
        self._run = ShopRun()
        # The segments of sorted shops, and their weights.
        self._runs: list[tuple[SegmentUse, int]] = []
        # The segments that no manifest names yet.
        self._unnamed: set[str] = set()
        self._categories: list[CategoryEntry] = []

    def add(self, document: object) -> None:
        """Add a document, if it is a shop or a category."""
        if isinstance(document, ShopDocument):
            self.add_shop(segment_shop(document))
        elif isinstance(document, CategoryDocument):
            self.add_category(CategoryEntry.of(document))

    def passing(self, documents: Iterable[object]) -> Iterator[object]:
        """The same documents, which are of one kind; they are added as they pass."""
        for document in documents:
            self.add(document)
            yield document
        # No more shops come soon.
        if len(self._run):
            self._end_run()

    def add_shop(self, shop: SegmentShop) -> None:
        """Add a shop with its texts."""
        self._run.add(shop)
        run = self._run
        is_heavy = run.letters >= _RUN_LETTERS or run.most_weight >= self._store.segment_texts
        if is_heavy or len(run) >= self._run_shops:
            self._end_run()

    def add_category(self, category: CategoryEntry) -> None:
        """Add a category as an engine returns it."""
        self._categories.append(category)

    def finish(self) -> str:
        """Write and store segments and manifest. Returns the manifest's name."""
        if len(self._run) or not self._runs:
            self._end_run()
        covering = tuple(self._segments())
        name = put_manifest(self._store, TypeaheadManifest((covering,), in_category_order(self._categories)))
        self._unnamed = set()
        return name

    def _segments(self) -> Iterator[SegmentUse]:
        """Write and store the segments: of each two, one is merged by another process at the same time."""
        groups = list(self._groups())
        with closing(BackgroundMerging()) as merging:
            for own, other in zip_longest(groups[::2], groups[1::2], fillvalue=()):
                uses = [use for use, _ in other]
                if sum(own_weight for _, own_weight in other) >= _LONG_MERGE and len(uses) <= _MOST_INPUTS:
                    merging.start(self._store.directory, tuple(uses))
                yield self._segment([use for use, _ in own])
                merging.wait()
                if (merged := merging.finished(self._store.directory)) is not None:
                    yield self._stored(merged[1], uses)
                elif uses:
                    yield self._segment(uses)

    def _groups(self) -> Iterator[list[tuple[SegmentUse, int]]]:
        """The runs of each segment, and their weights; few segments, of about equal weights."""
        left = sum(own_weight for _, own_weight in self._runs)
        group: list[tuple[SegmentUse, int]] = []
        total = 0
        for use, own_weight in self._runs:
            most = self._store.segment_texts
            share = left / max(1, -(-left // most))
            if group and (total + own_weight > most or total + own_weight / 2 > share):
                yield group
                left -= total
                group, total = [], 0
            group.append((use, own_weight))
            total += own_weight
        yield group

    def _segment(self, uses: list[SegmentUse]) -> SegmentUse:
        """Write and store the segment of some runs, and remove their files."""
        directory = self._store.directory
        use = uses[0]
        while len(uses) > 1:
            # Each file that is mapped is open as well.
            uses, later = uses[:_MOST_INPUTS], uses[_MOST_INPUTS:]
            use = merge(directory, [Input(open_segment(segment.segment_path(directory, run.name))) for run in uses])
            self._unnamed.add(use.name)
            self._remove(run.name for run in uses)
            return_freed_memory()
            uses = [*later, use]
        return self._stored(use)

    def _stored(self, use: SegmentUse, merged: Sequence[SegmentUse] = ()) -> SegmentUse:
        """Store a segment, and remove the files of those that were merged into it."""
        self._unnamed.add(use.name)
        self._remove(run.name for run in merged)
        self._store.put(segment.segment_path(self._store.directory, use.name))
        return use

    def _end_run(self) -> None:
        contents = self._run.contents()
        use = write_segment(self._store.directory, *contents)
        self._run = ShopRun()
        self._runs.append((use, weight(contents)))
        self._unnamed.add(use.name)
        return_freed_memory()

    def close(self) -> None:
        """Remove the files of a build that was not finished."""
        self._remove(tuple(self._unnamed))

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            segment.segment_path(self._store.directory, name).unlink(missing_ok=True)
            self._unnamed.discard(name)


def return_freed_memory() -> None:
    """Return memory that was freed to the system, as much as the C library can.

    That of Linux retains it for each thread that used it, and each index of a build is written by another thread:
    without this a build of 200,000 shops holds 425 MiB instead of 303.
    """
    if _TRIM is not None:
        _TRIM(0)


def put_manifest(store: TypeaheadStore, contents: TypeaheadManifest) -> str:
    """Write and store a manifest. Returns its name."""
    path = write_file(store.directory, manifest.SUFFIX, lambda file: file.write(contents.to_bytes()))
    store.put(path)
    return path.stem


def rebuild_typeahead(documents: StoredDocuments, store: TypeaheadStore) -> str:
    """Rebuild a generation's typeahead from its stored shops and categories; returns the manifest's name.

    Damaged files are replaced.
    """
    with closing(TypeaheadBuild(store)) as build:
        for stored in documents("shops"):
            build.add_shop(stored_segment_shop(stored))
        for stored in documents("categories"):
            build.add_category(category_from_stored(stored))
        return build.finish()
