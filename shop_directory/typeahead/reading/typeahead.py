"""Answers suggest requests from the segments of one stamp (M9, M10)."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Final

import numpy as np

from index_mappings.forms import QueryForms
from index_mappings.tiers import ONE_SHOP_MAX, TWO_TYPOS_MIN, SuggestTier
from shop_directory.typeahead.compiled import load_kernel
from shop_directory.typeahead.kernel.arrays import NOTHING, Array, Longs, read_only
from shop_directory.typeahead.kernel.segments import FILTERS
from shop_directory.typeahead.kernel.suggest import NEAR, PUNCTUATION, SHORT, TWO_ERRORS, WITH_DOT, suggest
from shop_directory.typeahead.manifest import Covering, SegmentUse, TypeaheadManifest
from shop_directory.typeahead.reading.segments import MappedSegment, SegmentPool, addresses
from shop_directory.typeahead.segment import segment_path
from shop_directory.typeahead.suggestions import SuggestedShop, Suggestion, SuggestQuery, SuggestResult
from shop_directory.words.categories import CategoryTable

# Terminates a text. Folded texts contain none.
_END: Final = "\0"
# The maximum number of words that are cached with the categories that they mean.
_CACHED_WORDS: Final = 4_096


class Typeahead:
    """The shops and all categories of one generation as of one stamp."""

    def __init__(self, segments: Sequence[tuple[MappedSegment, Array]], categories: CategoryTable) -> None:
        """Combine segments, in one of which each shop is current, with bitmaps of removed shops, as int32 words."""
        self._segments = tuple(segments)
        rows = [number for segment, removed in self._segments for number in segment.row(removed)]
        self._table = read_only(np.array(rows, np.int64))
        self._everywhere = read_only(np.zeros(FILTERS * len(self._segments), np.int64))
        # By country: the filters of a request.
        self._sellers: dict[str, Longs] = {}
        self.categories = categories
        # By word: for each segment the numbers of the categories that the word means.
        self._meanings: dict[str, tuple[list[int], ...]] = {}

    def suggest(self, query: SuggestQuery) -> SuggestResult:
        """Suggest shops and categories."""
        return SuggestResult(self.categories.suggested(query.forms, query.limit), tuple(self._best(query)))

    def near(
        self,
        asked: Iterable[QueryForms],
        countries: Sequence[str],
        categories: Sequence[str],
        limit: int,
        prefixes: Sequence[str] | None = None,
    ) -> tuple[SuggestedShop, ...]:
        """The best shops of which a query is a misspelt name, or a name with other words, query by query (M6).

        `prefixes` are those of a search that has found shops: shops of which a key begins with one of them are left
        out, as it finds them. Without such a search two typing errors count too, unless there is a shop with one.
        """
        passing = [segment.passing(countries, categories, prefixes or ()) for segment, _ in self._segments]
        filters = read_only(np.array(addresses(bits for bits in passing for _ in range(2)), np.int64))
        near: dict[str, SuggestedShop] = {}
        for forms in asked:
            if not forms.words:
                continue
            packed, flags = _pack_query(forms), NEAR | (WITH_DOT if forms.dotted else 0)
            found = self._found(filters, packed, len(forms.texts), NOTHING, limit, flags)
            if prefixes is None and not _has_one_typo(found) and _may_have_two_errors(forms):
                found = self._found(filters, packed, len(forms.texts), NOTHING, limit, flags | TWO_ERRORS)
            near |= {one.shop.id: one.shop for one in found if one.shop.id not in near}
            if len(near) >= limit:
                break
        return tuple(near.values())[:limit]

    def domains(self, start: int, stop: int) -> list[str]:
        """The domains of the shops from one position to another, in an order that does not change."""
        found: list[str] = []
        for segment, removed in self._segments:
            count, domains = segment.domains(removed, max(0, start), max(0, stop))
            found += domains
            start, stop = start - count, stop - count
        return found

    def _best(self, query: SuggestQuery) -> list[Suggestion]:
        forms, limit = query.forms, query.limit
        packed = _pack_query(forms)
        meant = self._meant(forms.words) if len(forms.words) > 1 else NOTHING
        filters = self._everywhere if query.country is None else self._filters(query.country)
        short = len(forms.spaced) <= ONE_SHOP_MAX
        flags = (SHORT if short else 0) | (WITH_DOT if forms.dotted else 0) | (0 if forms.words else PUNCTUATION)
        found = self._found(filters, packed, len(forms.texts), meant, limit, flags)
        if not _has_one_typo(found) and _may_have_two_errors(forms):
            found = self._found(filters, packed, len(forms.texts), meant, limit, flags | TWO_ERRORS)
        return found

    def _found(  # noqa: PLR0917 - the kernel's arguments, in its order
        self, filters: Longs, packed: Array, forms: int, meant: Array, limit: int, flags: int
    ) -> list[Suggestion]:
        """The best shops, as of the kernel's `suggest`. Raises SegmentCutError if a file was cut short."""
        entries = suggest(self._table, filters, packed, forms, meant, limit, flags).tolist()
        for segment, _ in self._segments:
            segment.refuse_cut()
        if len(self._segments) == 1:
            ((segment, _),) = self._segments
            cache, read = segment.cache, segment.suggestion
            return [cache.get(entry) or read(entry) for entry in entries]
        pairs = zip(entries[::2], entries[1::2], strict=True)
        found = [(self._segments[number][0], entry) for entry, number in pairs]
        return [segment.cache.get(entry) or segment.suggestion(entry) for segment, entry in found]

    def _filters(self, country: str) -> Longs:
        """The filters of a request with a country, as of the kernel's `suggest`."""
        filters = self._sellers.get(country)
        if filters is None:
            numbers = [number for segment, _ in self._segments for number in segment.sellers(country)]
            filters = self._sellers[country] = read_only(np.array(numbers, np.int64))
        return filters

    def _meant(self, words: Sequence[str]) -> Array:
        """The categories that the words mean, as of the kernel's `suggest`."""
        meanings = [self._meanings_of(word) for word in words]
        if not any(meanings):
            return NOTHING
        segments = range(len(self._segments))
        lists = [[numbers[segment] if numbers else () for numbers in meanings] for segment in segments]
        return read_only(np.array(_as_lists([_as_lists(own) for own in lists]), np.int32))

    def _meanings_of(self, word: str) -> tuple[list[int], ...]:
        """For each segment the numbers of the categories that a word means; empty if it means none."""
        slugs = self.categories.slugs_of(word)
        if not slugs:
            return ()
        meanings = self._meanings.get(word)
        if meanings is None:
            if len(self._meanings) >= _CACHED_WORDS:
                self._meanings.clear()
            meanings = self._meanings[word] = tuple(
                sorted(number for slug in slugs if (number := segment.category(slug)) is not None)
                for segment, _ in self._segments
            )
        return meanings


def open_pool() -> SegmentPool:
    """A pool without segments; the machine code that they need is loaded first."""
    load_kernel()
    return SegmentPool()


def open_typeahead(directory: Path, manifest: TypeaheadManifest, pool: SegmentPool) -> Typeahead:
    """Open the first covering whose files are there; OSError, or ValueError if none is, or a segment is damaged."""
    for covering in manifest.coverings:
        if all(segment_path(directory, use.name).is_file() for use in covering):
            return Typeahead(_opened(directory, covering, pool), pool.categories(manifest.categories))
    raise ValueError("files of the typeahead are missing")


def _opened(directory: Path, covering: Covering, pool: SegmentPool) -> list[tuple[MappedSegment, Array]]:
    opened = []
    for use, segment in zip(covering, pool.open(directory, [use.name for use in covering]), strict=True):
        if (segment.bytes, segment.shops) != (use.size, use.shops):
            raise ValueError("the manifest of the typeahead does not fit a segment")
        opened.append((segment, _removed(use)))
    return opened


def _removed(use: SegmentUse) -> Array:
    removed = bytearray(use.removed)
    return read_only(np.frombuffer(removed + bytes(-len(removed) % 4), np.int32)) if removed else NOTHING


def _pack_query(forms: QueryForms) -> Array:
    """A query's forms, and its words if there are several, as of the kernel's `suggest`."""
    texts = (*forms.texts, *forms.words) if len(forms.words) > 1 else forms.texts
    if not texts:
        return NOTHING
    return np.frombuffer(f"{_END.join(texts)}{_END}".encode("utf-32-le"), np.int32)


def _as_lists(lists: Sequence[Sequence[int]]) -> list[int]:
    """A list of lists as one list: the start of each list, the end of the last one, then all items."""
    return [*accumulate(map(len, lists), initial=len(lists) + 1), *chain.from_iterable(lists)]


def _has_one_typo(found: Sequence[Suggestion]) -> bool:
    """Whether the best of some ordered shops is in the tier of one typing error or a better one."""
    return bool(found) and found[0].tier >= SuggestTier.ONE_TYPO


def _may_have_two_errors(forms: QueryForms) -> bool:
    return bool(forms.words) and any(len(text) >= TWO_TYPOS_MIN for text in forms.texts)
