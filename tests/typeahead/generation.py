"""A generation of the embedded engine that is changed through its sink, asked by its texts and by its index alone."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import CategoryDocument, ShopDocument
from index_mappings.embedded import generation_directory
from index_mappings.rank import rank_key
from index_mappings.typeahead import Moment
from indexer.sinks.embedded import EmbeddedSink
from service.search.embedded import TantivyEngine
from service.search.planned import PlannedSnapshot, snapshot_of
from service.search.protocol import Suggested, SuggestQuery
from service.search.reference import ReferenceBackend
from tests.conformance.strategies import SLUGS
from tests.embedded_engines import by_index, by_texts
from tests.integration.generations import Documents, publish

_CATEGORIES: Final = tuple(
    CategoryDocument(slug, rank_key(1.0, slug), slug.replace("-", " & ").title(), 1) for slug in SLUGS
)


class Changed:
    """A generation, and the shops that must be in it."""

    def __init__(self, root: Path, built: Sequence[ShopDocument]) -> None:
        """Build and publish it."""
        self.root = root
        self.sink = EmbeddedSink(root)
        self._kinds: dict[str, tuple[Any, ...]] = {"categories": _CATEGORIES, "coupons": (), "offers": (), "facts": ()}
        self.stamp = publish(self.sink, Documents({"shops": tuple(built), **self._kinds}))
        self.shops = {shop.id: shop for shop in built}

    @property
    def directory(self) -> Path:
        """Where the texts are."""
        return generation_directory(self.root, self.stamp.generation) / "typeahead"

    @property
    def files(self) -> list[str]:
        """What is there."""
        return sorted(path.name for path in self.directory.iterdir())

    def moment(self, sequence: int) -> Moment:
        """What belongs to a sequence; its files are there."""
        moment = Moment.from_wire(_json(self.directory / f"at-{sequence}.json"))
        for name in moment:
            assert name is None or (self.directory / f"{name}.texts").is_file()
        return moment

    def change(self, shops: Iterable[ShopDocument] = (), removed: Iterable[str] = ()) -> None:
        """Commit a micro-batch, as an update does."""
        shops, removed = list(shops), list(removed)
        editor = self.sink.edit(self.stamp.generation)
        try:
            editor.write("shops", shops, removed)
            editor.show()
            later = replace(self.stamp, sequence=self.stamp.sequence + 1)
            editor.commit(later)
        finally:
            editor.close()
        self.stamp = later
        self.shops = {key: shop for key, shop in self.shops.items() if key not in removed}
        self.shops.update({shop.id: shop for shop in shops})

    async def suggested(self, queries: Iterable[SuggestQuery]) -> list[Suggested]:
        """The answers: by its texts, which are really open, and the same by its index alone and by the plain rules."""
        listed = list(queries)
        texts, index = TantivyEngine(self.root), by_index(TantivyEngine(self.root), self.root)
        one = await snapshot_of(by_texts(texts, self.stamp), self.stamp)
        other = await snapshot_of(index, self.stamp)
        plain = ReferenceBackend(self.stamp, {"shops": list(self.shops.values()), **self._kinds})
        answers = [one.suggest_at_once(query) for query in listed]
        for query, answer in zip(listed, answers, strict=True):
            assert answer == other.suggest_at_once(query), query
            assert answer == plain.suggest_at_once(query), query
        by_texts(texts, self.stamp)
        await texts.close()
        await index.close()
        return answers

    async def names(self, typed: str, country: str | None = None, limit: int = 20) -> list[str]:
        """The names that one query finds."""
        (answer,) = await self.suggested([SuggestQuery(typed, country, limit)])
        return [found.shop.name for found in answer.shops]

    async def index_only(self) -> PlannedSnapshot:
        """The stamp's generation without texts."""
        return await snapshot_of(by_index(TantivyEngine(self.root), self.root), self.stamp)


def _json(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
