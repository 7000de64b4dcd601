"""Answers suggest requests from the segments of one stamp (M9, M10)."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Final

import numpy as np

from index_mappings.forms import QueryForms
from index_mappings.tiers import ONE_SHOP_MAX, TWO_TYPOS_MIN, SuggestTier
from shop_directory.typeahead.compiled import load_kernel
from shop_directory.typeahead.kernel.arrays import NOTHING, Array, read_only
from shop_directory.typeahead.kernel.suggest import PUNCTUATION, SHORT, TWO_ERRORS, WITH_DOT
from shop_directory.typeahead.manifest import Covering, SegmentUse, TypeaheadManifest
from shop_directory.typeahead.reading.segments import MappedSegment, SegmentPool
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
        filtered = [(*part, part[0].passing(countries, categories, prefixes or ())) for part in self._segments]
        near: dict[str, SuggestedShop] = {}
        for forms in asked:
            packed, flags = _pack_query(forms), WITH_DOT if forms.dotted else 0
            found = _near(filtered, packed, forms, limit, flags)
            if prefixes is None and not _has_one_typo(found) and _may_have_two_errors(forms):
                found = _near(filtered, packed, forms, limit, flags | TWO_ERRORS)
            near |= {one.shop.id: one.shop for one in found[:limit] if one.shop.id not in near}
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
        forms = query.forms
        packed = _pack_query(forms)
        meant = self._meant(forms.words) if len(forms.words) > 1 else None
        short = len(forms.spaced) <= ONE_SHOP_MAX
        flags = (SHORT if short else 0) | (WITH_DOT if forms.dotted else 0) | (0 if forms.words else PUNCTUATION)
        found = self._merged(packed, len(forms.texts), meant, query, flags)
        if not _has_one_typo(found) and _may_have_two_errors(forms):
            found = self._merged(packed, len(forms.texts), meant, query, flags | TWO_ERRORS)
        return found

    def _merged(
        self, packed: Array, forms: int, meant: Sequence[Array] | None, query: SuggestQuery, flags: int
    ) -> list[Suggestion]:
        limit, country = query.limit, query.country
        if len(self._segments) == 1:
            ((segment, removed),) = self._segments
            return segment.best(removed, packed, forms, NOTHING if meant is None else meant[0], limit, country, flags)
        # One more than the limit, because the first one of a segment may be demoted.
        most = limit + 1 if flags & SHORT else limit
        lists = [
            segment.best(removed, packed, forms, NOTHING if meant is None else meant[number], most, country, flags)
            for number, (segment, removed) in enumerate(self._segments)
        ]
        if flags & SHORT:
            _demote_all_but_one(lists)
        found = [suggestion for some in lists for suggestion in some]
        # The order is total, as no two shops have one id (M1).
        found.sort(key=Suggestion.order)
        return found[:limit]

    def _meant(self, words: Sequence[str]) -> list[Array] | None:
        """For each segment the categories that the words mean, as of the kernel's `suggest`; None if there are none."""
        meanings = [self._meanings_of(word) for word in words]
        if not any(meanings):
            return None
        return [
            _as_lists([numbers[segment] if numbers else [] for numbers in meanings])
            for segment in range(len(self._segments))
        ]

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
    for use in covering:
        segment = pool.open(directory, use.name)
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


def _as_lists(lists: Sequence[Sequence[int]]) -> Array:
    """A list of lists as one array: the start of each list, the end of the last one, then all items."""
    heads = list(accumulate(map(len, lists), initial=len(lists) + 1))
    return read_only(np.array([*heads, *chain.from_iterable(lists)], np.int32))


def _has_one_typo(found: Sequence[Suggestion]) -> bool:
    """Whether the best of some ordered shops is in the tier of one typing error or a better one."""
    return bool(found) and found[0].tier >= SuggestTier.ONE_TYPO


def _near(
    filtered: Sequence[tuple[MappedSegment, Array, Array]], packed: Array, forms: QueryForms, limit: int, flags: int
) -> list[Suggestion]:
    """The best shops of the segments, each with the bitmaps of its removed shops and of those that pass the filters."""
    if not forms.words:
        return []
    found = [
        suggestion
        for segment, removed, passing in filtered
        for suggestion in segment.near(removed, packed, len(forms.texts), passing, limit, flags)
    ]
    return sorted(found, key=Suggestion.order)


def _may_have_two_errors(forms: QueryForms) -> bool:
    return bool(forms.words) and any(len(text) >= TWO_TYPOS_MIN for text in forms.texts)


def _demote_all_but_one(lists: Sequence[list[Suggestion]]) -> None:
    """Demote all shops of the best tier but the best one, because each segment may have one there (M9)."""
    first = [some for some in lists if some and some[0].tier == SuggestTier.EQUALS_NAME]
    if len(first) > 1:
        best = min(first, key=lambda some: some[0].order())
        for some in first:
            if some is not best:
                some[0] = Suggestion(some[0].shop, SuggestTier.BEGINS_NAME)
