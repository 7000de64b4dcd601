"""Runs plans on the files of the prototype, as the embedded engine runs them on its indices; one segment only."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.bitmaps import kernels
from bench.bitmaps.kernels import Words
from bench.bitmaps.reading import Evaluation, KindIndex, checked_files
from index_mappings.documents import DOCUMENTS
from index_mappings.embedded import generation_directory
from index_mappings.generations import Stamp
from shop_directory.search.embedded.checks import FileChecks, SizedFile
from shop_directory.search.embedded.indices import LocalTypeaheads, read_generations, read_live, translate_errors
from shop_directory.search.engine import Facet, Hit, Page, SearchRequest
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.plan import Plan
from shop_directory.search.protocol import FacetCounts, Generations
from shop_directory.typeahead.manifest import FOLDER, TypeaheadManifest, manifest_path
from shop_directory.typeahead.segment import segment_path

if TYPE_CHECKING:
    from shop_directory.typeahead.reading.typeahead import Typeahead

# The folder of the prototype's files in that of a generation.
BITMAPS: Final = "bitmaps"


def segment_of(generation: Path, typeahead: str) -> Path:
    """The only segment of a generation's typeahead."""
    data = manifest_path(generation / FOLDER, typeahead).read_bytes()
    ((use,), *_) = TypeaheadManifest.from_bytes(data, typeahead).coverings
    return segment_path(generation / FOLDER, use.name)


class BitmapEngine:
    """An `Engine` over the live generation of an index directory, next to whose indices `writing` wrote its files."""

    def __init__(self, root: Path) -> None:
        """Open nothing yet."""
        self._root = root
        self._checks = FileChecks()
        self._typeaheads = LocalTypeaheads(root, self._checks)
        self._opened: dict[str, KindIndex] = {}
        self._files: list[SizedFile] = []

    async def live(self) -> Stamp:
        """The live stamp."""
        return read_live(self._root)

    async def generations(self) -> Generations:
        """The stamps that the pointer file names."""
        return read_generations(self._root)

    async def typeahead(self, stamp: Stamp) -> "Typeahead":
        """Open the stamp's typeahead, and the files of the prototype."""
        await asyncio.to_thread(self._open, stamp)
        return await self._typeaheads.open(stamp)

    async def search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        """Run searches, which share what they evaluate."""
        return self._search(stamp, requests)

    async def scan(self, stamp: Stamp, plan: Plan) -> AsyncGenerator[tuple[Hit, ...], None]:
        """All hits in one batch."""
        (page,) = self._search(stamp, (SearchRequest(plan, self._opened[plan.kind].size),))
        yield page.hits

    async def close(self) -> None:
        """Stop the checks."""
        await asyncio.to_thread(self._checks.close)

    @translate_errors
    def _open(self, stamp: Stamp) -> None:
        generation = generation_directory(self._root, stamp.generation)
        files = [file for kind in DOCUMENTS for file in checked_files(generation / BITMAPS / kind)]
        self._checks.check(stamp.generation, files)
        segment = segment_of(generation, stamp.typeahead)
        self._opened = {
            kind: KindIndex(generation / BITMAPS / kind, segment if kind == "shops" else None) for kind in DOCUMENTS
        }
        self._files = [file.sized for file in self._checks.watch(stamp.generation, stamp.key, files).values()]

    @translate_errors
    def _search(self, stamp: Stamp, requests: Sequence[SearchRequest]) -> tuple[Page, ...]:
        if not self._opened:
            raise BackendUnavailable("the files are not open")
        evaluations = {kind: Evaluation(self._opened[kind]) for kind in {request.plan.kind for request in requests}}
        pages = tuple([_page(evaluations[request.plan.kind], request) for request in requests])
        self._checks.refuse_cut(stamp.generation, self._files)
        return pages


def _page(evaluation: Evaluation, request: SearchRequest) -> Page:
    plan = request.plan
    passing = evaluation.passing(plan.filters, plan.excluded)
    counts: list[int] = []
    for bucket in request.buckets:
        met = evaluation.of(bucket)
        counts.append(_count(passing, met))
        passing = None if passing is None else passing if met is None else passing & ~met
    facets = tuple([_facet(evaluation, plan, facet) for facet in request.facets])
    total, limit = None, request.limit
    if request.total:
        total = _count(passing, evaluation.of(plan.matching))
        limit = min(limit, max(0, total - request.offset))
    hits = () if passing is None or not limit else _hits(evaluation, request, passing, limit)
    return Page(hits, total, tuple(counts), facets)


def _count(words: Words | None, others: Words | None) -> int:
    return 0 if words is None or others is None else int(kernels.count_both(words, others))


def _hits(evaluation: Evaluation, request: SearchRequest, passing: Words, limit: int) -> tuple[Hit, ...]:
    """The hits from the offset on, or behind the position, level by level."""
    index, after, skipped = evaluation.index, request.after, request.offset
    hits: list[Hit] = []
    for level, clause in request.plan.steps:
        met = evaluation.of(clause)
        if met is None:
            continue
        words = passing & met
        passing = passing & ~met
        if after is not None and level > after.level:
            continue
        start = index.up_to(after.rank) if after is not None and level == after.level else 0
        if skipped and (size := int(kernels.count(words))) <= skipped:
            skipped -= size
            continue
        numbers = np.empty(limit - len(hits), np.int64)
        filled = kernels.lowest(words, start, skipped, numbers)
        skipped = 0
        hits += [Hit(level, index.stored(number)) for number in numbers[:filled].tolist()]
        if len(hits) == limit:
            break
    return tuple(hits)


def _facet(evaluation: Evaluation, plan: Plan, facet: Facet) -> FacetCounts:
    passing, matching = evaluation.passing(facet.filters, plan.excluded), evaluation.of(plan.matching)
    if passing is None or matching is None:
        return FacetCounts({}, 0)
    index = evaluation.index
    values = index.values[facet.field]
    counts = np.zeros(len(values), np.int64)
    heads, items = index.arrays[f"{facet.field}_heads"], index.arrays[facet.field]
    missing = int(kernels.count_values(passing & matching, heads, items, counts))
    return FacetCounts({value: size for value, size in zip(values, counts.tolist(), strict=True) if size}, missing)
