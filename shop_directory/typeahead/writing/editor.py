"""Keeps a typeahead in step with the shops and categories that are written to its generation.

Each commit writes one small segment, bitmaps, and a manifest. It rewrites the last segment of a covering until that is
no longer small; then the next commit starts another one, and the small segments are merged in the background
(`merging`). A commit reads and writes only the last segment and the ids of changed shops.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np

from index_mappings.documents import CategoryDocument, CategoryEntry, ShopDocument, in_category_order
from shop_directory.typeahead import manifest
from shop_directory.typeahead.manifest import Covering, SegmentUse, TypeaheadManifest, bitmap_of
from shop_directory.typeahead.segment import SUFFIX, Shown, segment_path
from shop_directory.typeahead.writing.build import (
    SegmentShop,
    ShopRun,
    StoredDocuments,
    put_manifest,
    rebuild_typeahead,
    segment_shop,
)
from shop_directory.typeahead.writing.merging import BackgroundMerging, Input, has_room, merge, mergeable, weight
from shop_directory.typeahead.writing.segment_file import Segment, open_segment
from shop_directory.typeahead.writing.store import GRACE_S, TypeaheadStore

# The number of shops from which on the last segment is not rewritten; writing this many takes a fifth of a second.
SMALL_SHOPS: Final = 5_000
# The number of newest manifests whose files are retained, because readers may be about to open them.
_MANIFESTS: Final = 3
_LOG: Final = logging.getLogger(__name__)


class TypeaheadEditor:
    """Edits the typeahead of a sealed generation; one at a time. Files are read lazily."""

    def __init__(
        self,
        documents: StoredDocuments,
        store: TypeaheadStore,
        manifest_name: str,
        merging: BackgroundMerging | None = None,
        small_shops: int = SMALL_SHOPS,
    ) -> None:
        """Damaged files are written again from the documents. `merging` outlives this object."""
        self._documents, self._store, self._merging = documents, store, merging
        self._opened = self._name = manifest_name
        self._small_shops = small_shops
        self._manifest: TypeaheadManifest | None = None
        self._segments: dict[str, Segment] = {}
        self._shops: dict[str, SegmentShop | None] = {}
        self._categories: dict[str, CategoryEntry | None] = {}

    def rebuild(self) -> None:
        """Write all files again from the stored documents; pending changes are committed on top of them."""
        self._opened = self._name = rebuild_typeahead(self._documents, self._store)
        self._manifest, self._segments = None, {}

    def put(self, document: object) -> None:
        """Add or replace a document, if it is a shop or a category."""
        if isinstance(document, ShopDocument):
            self._shops[document.id] = segment_shop(document)
        elif isinstance(document, CategoryDocument):
            self._categories[document.id] = CategoryEntry.of(document)

    def remove(self, kind: str, document_id: str) -> None:
        """Remove a document, if it exists, and is a shop or a category."""
        if kind == "shops":
            self._shops[document_id] = None
        elif kind == "categories":
            self._categories[document_id] = None

    def commit(self) -> str:
        """Write the changes for readers of the next stamp, or all files again if one of them can't be read.

        Returns the name of the manifest that the stamp must name; the previous one if nothing changed. Raises OSError
        if a file can't be written, and the store's errors.
        """
        try:
            return self._commit()
        except (FileNotFoundError, ValueError) as error:
            # A shop that is under review now must not stay visible until somebody repairs the typeahead.
            _LOG.warning("the typeahead is built again from the index: %s", error)
            self.rebuild()
            return self._commit()

    def _commit(self) -> str:
        former = self._current()
        coverings = self._after_merge(former.coverings)
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
        if self._merging is not None and len(coverings) == 1:
            (covering,) = coverings
            most = self._store.segment_texts
            self._merging.start(
                self._store.directory, mergeable(covering, self._weights(covering), self._small_shops, most)
            )
            self._segments = {}
        return self._name

    def damaged(self, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """Read all files."""
        return self._store.damaged(self._name, check)

    def shown(self, after: str, end: str | None) -> dict[str, Shown]:
        """Read the files that have these shops; raises OSError or ValueError if one is missing or damaged."""
        return {
            shown[0]: shown
            for use in self._current().coverings[0]
            for shown in self._segment(use.name).shown(after, end, use.removed)
        }

    def _current(self) -> TypeaheadManifest:
        if self._manifest is None:
            self._manifest = self._store.manifest(self._name)
        return self._manifest

    def _segment(self, name: str) -> Segment:
        if name not in self._segments:
            self._segments[name] = open_segment(self._store.fetch(name, SUFFIX))
        return self._segments[name]

    def _after_merge(self, coverings: tuple[Covering, ...]) -> tuple[Covering, ...]:
        """The coverings after the result of a finished merge was adopted, or its inputs were dropped."""
        merged = None if self._merging is None else self._merging.finished(self._store.directory)
        if len(coverings) > 1:
            others = {use.name for use in coverings[1]}
            # A result's modification time is when it was adopted; readers have a minute to fetch it.
            results = [self._store.fetch(use.name, SUFFIX) for use in coverings[0] if use.name not in others]
            is_recent = any(time.time() - path.stat().st_mtime < GRACE_S for path in results)
            return coverings if is_recent else coverings[:1]
        if merged is None or (start := _position(merged[0], coverings[0])) is None:
            return coverings
        inputs, result = merged
        path = segment_path(self._store.directory, result.name)
        try:
            os.utime(path)
        except FileNotFoundError:
            return coverings  # another job has removed the file as unneeded
        return self._adopted(inputs, result, coverings[0], start)

    def _adopted(self, inputs: Covering, result: SegmentUse, covering: Covering, start: int) -> tuple[Covering, ...]:
        """The coverings with the result of a merge and with its inputs, which begin at `start` of a covering."""
        end = start + len(inputs)
        removed = [
            shop_id
            for before, now in zip(inputs, covering[start:end], strict=True)
            for shop_id in self._segment(now.name).ids(_added(before.removed, now.removed))
        ]
        name = result.name
        self._store.put(segment_path(self._store.directory, name))
        others = [use for use in (*covering[:start], *covering[end:]) if use.name != name]
        merged = (*others[:start], self._without(result, removed), *others[start:])
        # If the result is one of its inputs, because all shops of the others were removed, every reader has it.
        return (merged,) if any(use.name == name for use in covering) else (merged, covering)

    def _changed(self, coverings: tuple[Covering, ...]) -> tuple[Covering, ...]:
        """The coverings with the changed shops in the last segment, and removed from all others."""
        run = ShopRun()
        for shop in self._shops.values():
            if shop is not None:
                run.add(shop)
        former = {use.name: use for covering in coverings for use in covering}
        uses = {name: self._without(use, self._shops) for name, use in former.items()}
        coverings = tuple(tuple(uses[use.name] for use in covering) for covering in coverings)
        last = coverings[0][-1]
        changed = [Input(Segment(run.contents()))] if len(run) else []
        if not self._is_rewritten(coverings, sum(weight(one.segment.contents) for one in changed)):
            return self._with_last(coverings, changed)
        if not changed and last == former[last.name]:
            return coverings
        inputs = [Input(self._segment(last.name), last.removed), *changed]
        return self._with_last(tuple(covering[:-1] for covering in coverings), inputs)

    def _is_rewritten(self, coverings: tuple[Covering, ...], added: int) -> bool:
        """Whether the last segment is rewritten with changed shops, whose segment would have the weight `added`."""
        last, most = coverings[0][-1], self._store.segment_texts
        if any(covering[-1].name != last.name for covering in coverings):
            return False  # it is an input of a merge
        weights = [self._weights(covering) for covering in coverings]
        if weights[0][-1] + added > most:
            return False
        return last.shops < self._small_shops or not all(has_room(some, most) for some in weights)

    def _weights(self, covering: Covering) -> list[int]:
        return [weight(self._segment(use.name).contents) for use in covering]

    def _with_last(self, coverings: tuple[Covering, ...], inputs: list[Input]) -> tuple[Covering, ...]:
        """The coverings with one more segment of all current shops of some segments, unless there are none."""
        if not inputs:
            return coverings
        use = merge(self._store.directory, inputs)
        if not use.shops and all(coverings):
            return coverings
        self._store.put(segment_path(self._store.directory, use.name))
        # All shops of a segment with the same name are newer in this one, so it is left out.
        return tuple((*(other for other in covering if other.name != use.name), use) for covering in coverings)

    def _without(self, use: SegmentUse, shop_ids: Iterable[str]) -> SegmentUse:
        numbers = map(self._segment(use.name).number, shop_ids)
        return replace(use, removed=bitmap_of((number for number in numbers if number is not None), use.removed))

    def _tidy(self, before: str) -> None:
        listed: list[tuple[int, str]] = []
        for path in self._store.directory.glob(f"*{manifest.SUFFIX}"):
            with suppress(OSError):
                listed.append((path.stat().st_mtime_ns, path.stem))
        needed = {name for _, name in sorted(listed)[-_MANIFESTS:]} | {self._opened, before, self._name}
        files: set[str] = set()
        for name in needed:
            with suppress(OSError, ValueError):
                data = manifest.manifest_path(self._store.directory, name).read_bytes()
                files.update(TypeaheadManifest.from_bytes(data, name).files())
        self._store.tidy(needed | files)


def _position(inputs: Covering, covering: Covering) -> int | None:
    """The position of a merge's inputs in a covering; None if they are not current any more."""
    names = [use.name for use in inputs]
    for start in range(len(covering) - len(names) + 1):
        current = covering[start : start + len(names)]
        if [use.name for use in current] == names:
            # The merge lacks shops that were removed before and are not removed now.
            is_later = not any(
                list(_added(now.removed, before.removed)) for before, now in zip(inputs, current, strict=True)
            )
            return start if is_later else None
    return None


def _added(before: bytes, now: bytes) -> Iterator[int]:
    """The numbers that are in a later bitmap and not in an earlier one."""
    added = int.from_bytes(now, "little") & ~int.from_bytes(before, "little")
    bits = np.frombuffer(added.to_bytes(len(now), "little"), np.uint8)
    return iter(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist())
