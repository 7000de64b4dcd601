"""OpenSearch without anything of this project: its own fields for typeahead, asked straight at the node.

Two ways of its guides are two peers: `search_as_you_type` with fuzzy matching, and the completion suggester. The search
stands in the target of a GET, so that the same load generator drives it without a server in between.
"""

import json
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import quote, urlencode

from opensearchpy import OpenSearch
from opensearchpy.helpers import bulk

from bench.opensearch_node import opensearch_node
from bench.typeahead.peers.opensearch_fields import (
    AS_YOU_TYPE,
    COMPLETION,
    SETTINGS,
    as_you_type_document,
    as_you_type_query,
    completion_document,
    completion_query,
)
from bench.typeahead.peers.shops import Shop, public_shops
from bench.typeahead.system import LIMIT, BuildStats, RunningServer, System
from tests.support.real.sources import LocalNodes, Missing, find_local_nodes

_HEAP: Final = "1g"
_BATCH: Final = 2_000
_TIMEOUT_S: Final = 600
_NODE_SETTINGS: Final = {
    # The search is in the target of the request.
    "http.max_initial_line_length": "64kb",
}


class RawOpenSearch(System):
    """A node of its own, and one index in it."""

    mappings: ClassVar[dict[str, Any]]

    def missing(self) -> str | None:
        """A JDK, and Maven for its jars."""
        nodes = find_local_nodes()
        return f"no OpenSearch can be started: {nodes.reason}" if isinstance(nodes, Missing) else None

    def version(self) -> str:
        """Of OpenSearch, by the name of its jar."""
        jars = _nodes().build().class_path.split(":")
        (core,) = {Path(jar).stem for jar in jars if Path(jar).stem.startswith("opensearch-3")}
        return core.replace("opensearch-", "OpenSearch ")

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Fill an index in a node that is stopped afterwards."""
        shops = public_shops(corpus)
        with (
            opensearch_node(folder, _HEAP, _NODE_SETTINGS) as node,
            closing(OpenSearch([node.url], timeout=_TIMEOUT_S)) as client,
        ):
            started = time.perf_counter()
            self.fill(client, shops)
            seconds = time.perf_counter() - started
            stored: int = client.indices.stats(index=self.index_name)["_all"]["total"]["store"]["size_in_bytes"]
        return BuildStats(seconds, stored / 1_000_000)

    @property
    def index_name(self) -> str:
        """The index's name."""
        return f"raw-{self.name}"

    def fill(self, client: OpenSearch, shops: Sequence[Shop]) -> None:
        """Make the index, fill it and merge it into one segment."""
        client.indices.create(index=self.index_name, body={"settings": SETTINGS, "mappings": self.mappings})
        bulk(
            client,
            ({"_index": self.index_name, "_id": shop.id, "_source": self.document(shop)} for shop in shops),
            chunk_size=_BATCH,
        )
        client.indices.refresh(index=self.index_name)
        client.indices.forcemerge(index=self.index_name, max_num_segments=1)
        client.indices.flush(index=self.index_name)

    @contextmanager
    def serving(self, folder: Path) -> Iterator[RunningServer]:
        """The node itself is the server."""
        with opensearch_node(folder, _HEAP, _NODE_SETTINGS) as node:
            yield RunningServer(node.allocation.http_port, (node.process.pid,))

    def path(self, query: str, country: str | None, limit: int = LIMIT) -> str:
        """A search as the target of a GET."""
        source = json.dumps(self.search(query, country, limit), ensure_ascii=False, separators=(",", ":"))
        asked = {"source": source, "source_content_type": "application/json"}
        return f"/{self.index_name}/_search?{urlencode(asked, quote_via=quote)}"

    @abstractmethod
    def document(self, shop: Shop) -> dict[str, Any]:
        """A shop as it is indexed."""

    @abstractmethod
    def search(self, query: str, country: str | None, limit: int) -> dict[str, Any]:
        """The body of a search."""


class OpenSearchAsYouType(RawOpenSearch):
    """Its field for typeahead, with fuzzy matching in addition."""

    name = "opensearch-as-you-type"
    about = (
        "OpenSearch's search_as_you_type with bool_prefix, whole texts before words, AUTO:4,8 fuzziness over edge "
        "n-grams, popularity as rank_feature; asked straight at the node."
    )
    mappings = AS_YOU_TYPE

    def document(self, shop: Shop) -> dict[str, Any]:
        """With its words, their beginnings and its popularity."""
        return as_you_type_document(shop)

    def search(self, query: str, country: str | None, limit: int) -> dict[str, Any]:
        """By words."""
        return as_you_type_query(query, country, limit)

    def ids(self, body: bytes) -> list[str]:
        """Of the hits."""
        return [hit["_id"] for hit in json.loads(body)["hits"]["hits"]]


class OpenSearchCompletion(RawOpenSearch):
    """Its suggester in memory."""

    name = "opensearch-completion"
    about = (
        "OpenSearch's completion suggester: each text from each of its words on, weighted by popularity, and the same "
        "with AUTO:4,8 fuzziness after it; asked straight at the node."
    )
    mappings = COMPLETION

    def document(self, shop: Shop) -> dict[str, Any]:
        """With what it completes."""
        return completion_document(shop)

    def search(self, query: str, country: str | None, limit: int) -> dict[str, Any]:
        """By beginnings."""
        return completion_query(query, country, limit)

    def ids(self, body: bytes) -> list[str]:
        """Of what begins as typed, then of what nearly does."""
        suggested = json.loads(body)["suggest"]
        options = [option for kind in ("begins", "near") for option in suggested[kind][0]["options"]]
        return list(dict.fromkeys(option["_id"] for option in options))[:LIMIT]


def _nodes() -> LocalNodes:
    nodes = find_local_nodes()
    if isinstance(nodes, Missing):
        raise FileNotFoundError(nodes.reason)
    return nodes
