"""Acceptance queries, answered by the service's search on a generation that need not be live.

A query passes only with a complete answer. A failing engine is retried for a while, and is then an error (E3).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from index_mappings.documents import SCHEMA_VERSION, Shop
from index_mappings.generations import Stamp
from service.search.embedded.engine import TantivyEngine
from service.search.engine import Engine
from service.search.failures import BackendUnavailable
from service.search.opensearch.engine import OpenSearchEngine
from service.search.opensearch.folder import DEFAULT_FOLDER, FolderLocation
from service.search.planned_backend import PlannedSnapshot, snapshot_of
from service.search.protocol import FindQuery, Snapshot, SuggestedShop, SuggestQuery
from service.tools.fields import spaced
from shop_directory.acceptance import (
    FIRST_PAGE,
    AcceptanceFailure,
    AcceptanceQuery,
    AcceptanceTool,
    AnswersUnavailableError,
    EmbeddedLocation,
    IndexLocation,
)

# No caller waits, and nothing is cached yet: a request may take longer than in service.
_REQUEST_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 30.0
# The cluster may lose a node for a short time.
_RETRY_SECONDS: Final = 60.0
_LONGEST_WAIT_SECONDS: Final = 5.0

T = TypeVar("T")


def open_answers(location: IndexLocation, stamp: Stamp) -> "GenerationAnswers":
    """The answers of a stamp's generation; the index is opened by the first query."""
    return GenerationAnswers(location, stamp)


@dataclass(frozen=True, slots=True)
class GenerationAnswers:
    """The answers of one generation.

    Attributes:
        location: of the index.
        stamp: of the generation.
        patience: seconds for which a failing engine is retried.
    """

    location: IndexLocation
    stamp: Stamp
    patience: float = _RETRY_SECONDS

    def ask(self, queries: Sequence[AcceptanceQuery]) -> tuple[AcceptanceFailure, ...]:
        """Run all queries in sequence, on new connections; see `Answers`."""
        return asyncio.run(self._ask(queries))

    async def _ask(self, queries: Sequence[AcceptanceQuery]) -> tuple[AcceptanceFailure, ...]:
        if not self.stamp.readable:
            version = self.stamp.schema_version
            raise AnswersUnavailableError(f"it has schema version {version}, the service reads {SCHEMA_VERSION}")
        failures: list[AcceptanceFailure] = []
        async with _opened(self.location, self.stamp.generation) as engine:
            snapshot = await self._retried(partial(snapshot_of, engine, self.stamp))
            for query in queries:
                reasons = await self._retried(partial(_reasons, snapshot, query))
                failures += [AcceptanceFailure(query.location, reason) for reason in reasons]
        return tuple(failures)

    async def _retried(self, call: Callable[[], Awaitable[T]]) -> T:
        # A generation that is not live looks removed while its shards are relocated, so that is retried, too.
        attempts = AsyncRetrying(
            retry=retry_if_exception_type((BackendUnavailable, TimeoutError)),
            stop=stop_after_delay(self.patience),
            wait=wait_random_exponential(max=_LONGEST_WAIT_SECONDS),
            reraise=True,
        )
        try:
            return await attempts(_in_time, call)
        except TimeoutError as error:
            raise AnswersUnavailableError("an answer took too long") from error
        except BackendUnavailable as error:
            raise AnswersUnavailableError(str(error)) from error


async def _in_time(call: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(_ANSWER_SECONDS):
        return await call()


@asynccontextmanager
async def _opened(location: IndexLocation, generation: str) -> AsyncIterator[Engine]:
    engine: Engine
    if isinstance(location, EmbeddedLocation):
        engine = TantivyEngine(location.root)
    else:
        folder = DEFAULT_FOLDER if location.typeaheads is None else FolderLocation(location.typeaheads / generation)
        engine = OpenSearchEngine(location.urls, location.prefix, _REQUEST_SECONDS, location.access, location=folder)
    try:
        yield engine
    finally:
        await engine.close()


async def _reasons(snapshot: PlannedSnapshot, query: AcceptanceQuery) -> tuple[str, ...]:
    """Why the answer to a query fails, by the query's fields; empty if it passes."""
    if query.category is not None and query.category not in {found.slug for found in await snapshot.categories()}:
        # To callers this is an error and not an empty answer (E4).
        return ("category is carried by no shop",)
    shops, total = await _page(snapshot, query)
    return (*_rank_failures(query, shops), *_too_few(query, total))


async def _page(snapshot: Snapshot, query: AcceptanceQuery) -> tuple[Sequence[Shop | SuggestedShop], int]:
    """The shops of one page, and the total that the tool reports."""
    limit = max(query.within, FIRST_PAGE[query.tool])
    text = spaced(query.query)
    if query.tool is AcceptanceTool.FIND_SHOP:
        found = await snapshot.find(FindQuery(text, query.country, query.category, offset=0, limit=limit))
        return found.shops, found.total
    suggested = snapshot.suggest(SuggestQuery.of(text, query.country, limit))
    return tuple(suggestion.shop for suggestion in suggested.shops), len(suggested.shops)


def _rank_failures(query: AcceptanceQuery, shops: Sequence[Shop | SuggestedShop]) -> Iterator[str]:
    ranks = {name: rank for rank, shop in enumerate(shops, 1) for name in (shop.id, shop.domain)}
    for number, name in enumerate(query.expect):
        rank = ranks.get(name)
        if rank is None or rank > query.within:
            # The message for unknown shops and for those under review is the same.
            found = "" if rank is None else f", but in place {rank}"
            yield f"expect.{number} is not among the first {query.within}{found}"
    for number, name in enumerate(query.absent):
        rank = ranks.get(name)
        if rank is not None and rank <= FIRST_PAGE[query.tool]:
            yield f"absent.{number} is in place {rank}"


def _too_few(query: AcceptanceQuery, total: int) -> Iterator[str]:
    if query.minimum_total is not None and total < query.minimum_total:
        yield f"minimum_total is {query.minimum_total}, but there are {total}"
