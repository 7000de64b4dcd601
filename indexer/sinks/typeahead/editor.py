"""Keeping a typeahead up with changes: each commit writes one small segment, bitmaps, and a manifest.

The last segment of a covering is rewritten with each commit until it is no longer small; then the next commit begins
another one, and a fold merges what has gathered. No commit reads or writes more than the last segment and the ids of
what changed, however many changes there were before.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np

from index_mappings.documents import CategoryDocument, CategoryEntry, ShopDocument, in_category_order
from index_mappings.typeahead import manifest
from index_mappings.typeahead.manifest import MOST_SEGMENTS, Covering, SegmentUse, TypeaheadManifest
from index_mappings.typeahead.segment import SUFFIX, Shown, segment_path
from indexer.sinks.typeahead.build import put_manifest
from indexer.sinks.typeahead.folding import Fold, Folding, foldable
from indexer.sinks.typeahead.merging import Input, merge
from indexer.sinks.typeahead.reading import Segment, fetch_manifest, fetch_segment
from indexer.sinks.typeahead.run import Run
from indexer.sinks.typeahead.shops import SegmentShop, segment_shop
from indexer.sinks.typeahead.store import GRACE_S, TypeaheadStore

# Shops of the last segment from which on it is left as it is: so many are written in a fifth of a second.
SMALL_SHOPS: Final = 5_000
# Manifests whose files stay: readers may be about to open them.
_MANIFESTS: Final = 3


class TypeaheadEditor:
    """The typeahead of a sealed generation; only under the lease. Nothing is read before it is needed."""

    def __init__(
        self,
        store: TypeaheadStore,
        manifest_name: str,
        folding: Folding | None = None,
        small_shops: int = SMALL_SHOPS,
    ) -> None:
        """Prepare.

        Args:
            store: where its files are.
            manifest_name: the manifest that the stamp names.
            folding: merges segments alongside, and outlives this object; None where nobody merges.
            small_shops: commits rewrite the last segment while it has fewer shops.
        """
        self._store, self._folding = store, folding
        self._opened = self._name = manifest_name
        self._small_shops = small_shops
        self._manifest: TypeaheadManifest | None = None
        self._segments: dict[str, Segment] = {}
        self._shops: dict[str, SegmentShop | None] = {}
        self._categories: dict[str, CategoryEntry | None] = {}

    def restart(self, manifest_name: str) -> None:
        """Go on from another manifest; what was put and removed so far is committed on top of that."""
        self._opened = self._name = manifest_name
        self._manifest, self._segments = None, {}

    def put_shop(self, shop: ShopDocument) -> None:
        """Add or replace a shop."""
        self._shops[shop.id] = segment_shop(shop)

    def remove_shop(self, shop_id: str) -> None:
        """Remove a shop, if it is there."""
        self._shops[shop_id] = None

    def put_category(self, category: CategoryDocument) -> None:
        """Add or replace a category."""
        self._categories[category.id] = CategoryEntry.of(category)

    def remove_category(self, slug: str) -> None:
        """Remove a category, if it is there."""
        self._categories[slug] = None

    def commit(self) -> str:
        """Write and store what readers of the next stamp need.

        Returns:
            The name of the manifest that the stamp must name; the former one's where nothing changed.

        Raises:
            OSError, ValueError: a file is missing or damaged, or can't be written.
            SinkError: the store failed.
        """
        former = self._current()
        coverings = self._folded(former.coverings)
        if self._shops:
            coverings = self._changed(coverings)
        categories = former.categories
        if self._categories:
            known = {category.slug: category for category in categories} | self._categories
            categories = in_category_order(category for category in known.values() if category is not None)
        after, before = TypeaheadManifest(coverings, categories), self._name
        if after != former:
            self._name, self._manifest = put_manifest(self._store, after), after
        self._shops, self._categories, self._segments = {}, {}, {}
        self._tidy(before)
        if self._folding is not None and len(coverings) == 1:
            self._folding.start(self._store.directory, foldable(coverings[0], self._small_shops))
        return self._name

    def shown(self, after: str, end: str | None) -> dict[str, Shown]:
        """What suggestions show of the shops after one id up to another, as of the last commit, by id.

        Args:
            after: an id, or "" for the first.
            end: an id; None for all that follow.

        Raises:
            OSError, ValueError: a file is missing or damaged.
            SinkError: the store failed.
        """
        return {
            shown[0]: shown
            for use in self._current().coverings[0]
            for shown in self._segment(use.name).shown(after, end, use.removed)
        }

    def _current(self) -> TypeaheadManifest:
        if self._manifest is None:
            self._manifest = fetch_manifest(self._store, self._name)
        return self._manifest

    def _segment(self, name: str) -> Segment:
        if name not in self._segments:
            self._segments[name] = fetch_segment(self._store, name)
        return self._segments[name]

    def _folded(self, coverings: tuple[Covering, ...]) -> tuple[Covering, ...]:
        """The coverings after a finished fold was adopted, or its inputs were dropped."""
        fold = None if self._folding is None else self._folding.finished(self._store.directory)
        if len(coverings) > 1:
            others = {use.name for use in coverings[1]}
            # Its time is when it was adopted: readers have a minute to get it.
            folded = [self._store.fetch(use.name, SUFFIX) for use in coverings[0] if use.name not in others]
            is_recent = any(time.time() - path.stat().st_mtime < GRACE_S for path in folded)
            return coverings if is_recent else coverings[:1]
        if fold is None or (place := _place(fold.inputs, coverings[0])) is None:
            return coverings
        path = segment_path(self._store.directory, fold.result.name)
        try:
            os.utime(path)
        except FileNotFoundError:
            return coverings  # it came too late, and another job has tidied it away
        return self._adopted(fold, coverings[0], place)

    def _adopted(self, fold: Fold, covering: Covering, place: int) -> tuple[Covering, ...]:
        """The coverings with and without the result of a fold, whose inputs begin at a place of the former one."""
        end = place + len(fold.inputs)
        gone = [
            shop_id
            for before, now in zip(fold.inputs, covering[place:end], strict=True)
            for shop_id in self._segment(now.name).ids(_added(before.removed, now.removed))
        ]
        name = fold.result.name
        self._store.put(segment_path(self._store.directory, name))
        others = [use for use in (*covering[:place], *covering[end:]) if use.name != name]
        folded = (*others[:place], self._without(fold.result, gone), *others[place:])
        # Every reader has it already where all else that was merged is gone.
        return (folded,) if any(use.name == name for use in covering) else (folded, covering)

    def _changed(self, coverings: tuple[Covering, ...]) -> tuple[Covering, ...]:
        """The coverings with the changed shops in the last segment, and out of all others."""
        run = Run()
        for shop in self._shops.values():
            if shop is not None:
                run.add(shop)
        former = {use.name: use for covering in coverings for use in covering}
        uses = {name: self._without(use, self._shops) for name, use in former.items()}
        coverings = tuple(tuple(uses[use.name] for use in covering) for covering in coverings)
        last = coverings[0][-1]
        if not self._is_rewritten(coverings):
            return self._with_last(coverings, [Input(Segment(run.contents()))] if len(run) else [])
        if not len(run) and last == former[last.name]:
            return coverings
        inputs = [Input(self._segment(last.name), last.removed)]
        if len(run):
            inputs.append(Input(Segment(run.contents())))
        return self._with_last(tuple(covering[:-1] for covering in coverings), inputs)

    def _is_rewritten(self, coverings: tuple[Covering, ...]) -> bool:
        """Whether the last segment is replaced by one that has the changes as well."""
        last = coverings[0][-1]
        if any(covering[-1].name != last.name for covering in coverings):
            return False  # a fold has taken it in
        return last.shops < self._small_shops or max(map(len, coverings)) >= MOST_SEGMENTS

    def _with_last(self, coverings: tuple[Covering, ...], inputs: list[Input]) -> tuple[Covering, ...]:
        """The coverings with one more segment, of all current shops of some, unless that has none."""
        if not inputs:
            return coverings
        use = merge(self._store.directory, inputs)
        if not use.shops and all(coverings):
            return coverings
        self._store.put(segment_path(self._store.directory, use.name))
        # One that has the very same shops is gone as a whole.
        return tuple((*(other for other in covering if other.name != use.name), use) for covering in coverings)

    def _without(self, use: SegmentUse, shop_ids: Iterable[str]) -> SegmentUse:
        """A segment with these shops removed, as far as it has them."""
        segment = self._segment(use.name)
        removed = bytearray(use.removed)
        for shop_id in shop_ids:
            if (number := segment.number(shop_id)) is not None:
                byte = number >> 3
                if byte >= len(removed):
                    removed.extend(bytes(byte + 1 - len(removed)))
                removed[byte] |= 1 << (number & 7)
        return replace(use, removed=bytes(removed))

    def _tidy(self, before: str) -> None:
        """Remove what no reader looks for any more."""
        listed: list[tuple[int, str]] = []
        for path in self._store.directory.glob(f"*{manifest.SUFFIX}"):
            with suppress(OSError):
                listed.append((path.stat().st_mtime_ns, path.stem))
        kept = {name for _, name in sorted(listed)[-_MANIFESTS:]} | {self._opened, before, self._name}
        files: set[str] = set()
        for name in kept:
            with suppress(OSError, ValueError):
                data = manifest.manifest_path(self._store.directory, name).read_bytes()
                files.update(TypeaheadManifest.from_bytes(data, name).files())
        self._store.tidy(kept | files)


def _place(inputs: Covering, covering: Covering) -> int | None:
    """Where in a covering the inputs of a fold are; None where they are not current any more."""
    names = [use.name for use in covering]
    wanted = [use.name for use in inputs]
    for place in range(len(names) - len(wanted) + 1):
        if names[place : place + len(wanted)] == wanted:
            current = covering[place : place + len(wanted)]
            # What was removed stays removed; otherwise the fold lacks shops.
            is_later = all(
                not list(_added(now.removed, before.removed)) for before, now in zip(inputs, current, strict=True)
            )
            return place if is_later else None
    return None


def _added(before: bytes, now: bytes) -> Iterator[int]:
    """The numbers whose bits are in a later bitmap and not in an earlier one."""
    added = int.from_bytes(now, "little") & ~int.from_bytes(before, "little")
    bits = np.frombuffer(added.to_bytes(len(now), "little"), np.uint8)
    return iter(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist())
