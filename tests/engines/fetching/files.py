"""A typeahead of any bytes in a real OpenSearch, as the indexer writes it, and fetchers of it."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from opensearchpy import OpenSearch

from index_mappings.generations import index_name
from index_mappings.opensearch import TYPEAHEAD, chunk_id, mapping, settings
from indexer.sinks.opensearch.typeahead import OpenSearchTypeahead
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.search.opensearch.nodes import connect
from shop_directory.search.opensearch.typeahead import TypeaheadFetcher
from shop_directory.typeahead.manifest import SegmentUse, TypeaheadManifest, manifest_path
from shop_directory.typeahead.segment import segment_path
from tests.support.emptying import unused_prefix

GENERATION = "20250101t000000000000-abcdef"


@dataclass(frozen=True, slots=True)
class Files:
    """A generation's files in the cluster, an operator's own client of it, and the store as the indexer writes."""

    client: OpenSearch
    url: str
    prefix: str
    store: OpenSearchTypeahead

    @property
    def index(self) -> str:
        return index_name(self.prefix, TYPEAHEAD, GENERATION)

    def segment(self, size: int, seed: int = 0) -> SegmentUse:
        """Write a file of so many bytes; the same seed gives the same file."""
        data = random.Random(seed).randbytes(size)  # noqa: S311 - seeded chance, not a secret
        name = sha256(data).hexdigest()
        path = segment_path(self.store.directory, name)
        path.write_bytes(data)
        self.store.put(path)
        return SegmentUse(name, size, 1)

    def manifest(self, *coverings: tuple[SegmentUse, ...]) -> str:
        data = TypeaheadManifest(coverings).to_bytes()
        name = sha256(data).hexdigest()
        path = manifest_path(self.store.directory, name)
        path.write_bytes(data)
        self.store.put(path)
        return name

    def chunk(self, name: str, number: int = 0) -> dict[str, Any]:
        document: dict[str, Any] = self.client.get(index=self.index, id=chunk_id(name, number))["_source"]
        return document

    def replace_chunk(self, name: str, document: dict[str, Any], number: int = 0) -> None:
        self.client.index(index=self.index, id=chunk_id(name, number), body=document)

    def remove_chunk(self, name: str, number: int = 0) -> None:
        self.client.delete(index=self.index, id=chunk_id(name, number))

    def gets(self) -> int:
        stats = self.client.indices.stats(index=self.index, metric="get")
        return int(stats["indices"][self.index]["total"]["get"]["total"])

    @asynccontextmanager
    async def fetcher(
        self, folder: Path, *, most_bytes: int = 1 << 30, metrics: Metrics = NO_METRICS
    ) -> AsyncIterator[TypeaheadFetcher]:
        client = connect([self.url], timeout=10.0)
        fetcher = TypeaheadFetcher(client, self.prefix, folder, most_bytes, metrics)
        try:
            yield fetcher
        finally:
            await fetcher.close()
            await client.close()


@contextmanager
def written_to(url: str, directory: Path) -> Iterator[Files]:
    with unused_prefix(url) as prefix, OpenSearch([url]) as client:
        body = {"settings": settings(TYPEAHEAD, shards=1, replicas=0), "mappings": mapping(TYPEAHEAD)}
        client.indices.create(index=index_name(prefix, TYPEAHEAD, GENERATION), body=body)
        store = OpenSearchTypeahead(client, prefix, GENERATION, directory, grace=0.0)
        yield Files(client, url, prefix, store)
