"""The OpenSearch engine: one round trip a search, and only a whole answer counts.

A timed-out search, a failed shard or an inexact total comes with status 200 and is an error all the same (E3).
"""

from collections.abc import Awaitable, Sequence
from http import HTTPStatus
from typing import Any, Final

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import NotFoundError, OpenSearchException, TransportError

from index_mappings.generations import STAMP, STAMP_ID, Stamp, alias_name, index_name
from service.search.failures import BackendUnavailable, GenerationGone, NothingPublished
from service.search.opensearch_queries import presence_bodies, search_body, tier_of
from service.search.plan import Clause, Plan
from service.search.planned import Hit, Page, PlannedBackend

_WHOLE_OR_NOTHING: Final = {"allow_partial_search_results": "false"}


class OpenSearchBackend(PlannedBackend):
    """Search in the indices of an OpenSearch cluster."""

    def __init__(self, urls: Sequence[str], prefix: str, category_cap: int = 50, timeout: float = 1.5) -> None:
        """Connect lazily.

        Args:
            urls: the cluster's nodes.
            prefix: what all index names begin with.
            category_cap: how many categories a word may mean (M5).
            timeout: seconds that one request may take.
        """
        super().__init__(OpenSearchEngine(urls, prefix, timeout), category_cap)


class OpenSearchEngine:
    """Runs plans on a cluster."""

    def __init__(self, urls: Sequence[str], prefix: str, timeout: float) -> None:
        self._prefix = prefix
        self._timeout_ms = int(timeout * 1000)
        # The client would retry three times unasked: load and waiting multiply just when the cluster is in trouble.
        self._client = AsyncOpenSearch(list(urls), timeout=timeout, max_retries=0, retry_on_timeout=False)

    async def live(self) -> Stamp:
        """The stamp document behind the alias."""
        try:
            found = await self._client.get(index=alias_name(self._prefix, STAMP), id=STAMP_ID)
        except NotFoundError as error:
            raise NothingPublished("nothing is published under the stamp's alias") from error
        except OpenSearchException as error:
            raise BackendUnavailable("the stamp could not be read") from error
        try:
            return Stamp.from_wire(found["_source"]["stamp"])
        except (KeyError, TypeError, ValueError) as error:
            raise BackendUnavailable("the stamp's document is damaged") from error

    async def search(self, stamp: Stamp, plan: Plan, *, offset: int, limit: int, total: bool) -> Page:
        """Run a plan in one search."""
        body = search_body(plan, offset=offset, limit=limit, total=total, timeout_ms=self._timeout_ms)
        answer = await self._ask(stamp, plan.kind, body)
        hits = tuple(Hit(tier_of(plan, hit["_score"]), hit["_source"]) for hit in answer["hits"]["hits"])
        if not total:
            return Page(hits=hits, total=None)
        counted = answer["hits"]["total"]
        if counted["relation"] != "eq":
            raise BackendUnavailable("the engine counted only in part")
        return Page(hits=hits, total=counted["value"])

    async def present(self, stamp: Stamp, kind: str, clauses: Sequence[Clause]) -> tuple[bool, ...]:
        """Ask for one document of each clause, in one round trip."""
        index = index_name(self._prefix, kind, stamp.generation)
        header = {"index": index, "allow_partial_search_results": False}
        body = [line for search in presence_bodies(clauses, timeout_ms=self._timeout_ms) for line in (header, search)]
        answers = (await self._answered(stamp, index, self._client.msearch(body=body)))["responses"]
        return tuple([bool((await self._whole(stamp, index, answer))["hits"]["hits"]) for answer in answers])

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _ask(self, stamp: Stamp, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        index = index_name(self._prefix, kind, stamp.generation)
        answer = await self._answered(
            stamp, index, self._client.search(index=index, body=body, params=_WHOLE_OR_NOTHING)
        )
        return await self._whole(stamp, index, answer)

    async def _answered(self, stamp: Stamp, index: str, answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The answer, however incomplete, or our own failure."""
        try:
            return await answer
        except OpenSearchException as error:
            status = error.status_code if isinstance(error, TransportError) else None
            raise await self._failure(stamp, index, status) from error

    async def _whole(self, stamp: Stamp, index: str, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, if nothing of it is missing."""
        if "error" in answer:
            raise await self._failure(stamp, index, answer.get("status")) from ValueError(str(answer["error"]))
        if answer["timed_out"] or answer["_shards"]["failed"] or answer.get("terminated_early"):
            raise BackendUnavailable(f"a search in {index} came back incomplete")
        return answer

    async def _failure(self, stamp: Stamp, index: str, status: object) -> BackendUnavailable:
        """What the status of a failed search in a generation says."""
        if status == HTTPStatus.NOT_FOUND:
            return GenerationGone(f"{index} is no longer there")
        # While an index is being deleted its shards go first: the status is then that of a cluster in trouble.
        if status == HTTPStatus.SERVICE_UNAVAILABLE and (await self.live()).generation != stamp.generation:
            return GenerationGone(f"{index} is on its way out")
        return BackendUnavailable(f"a search in {index} failed")
