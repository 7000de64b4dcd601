"""Acceptance queries answered by the search itself, on a generation that may not be live yet.

A query is passed only by a whole answer: an engine that fails is asked again for a while, and is then an error (E3).
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
from service.search.planned_backend import PlannedSnapshot, snapshot_of
from service.search.protocol import FindQuery, Snapshot, SuggestedShop, SuggestQuery
from service.search.typeahead.folder import DEFAULT_PLACE, FolderLocation
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

# No caller waits, and the indices are fresh from the disk: one request may take longer than in service.
_REQUEST_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 30.0
# The cluster may be without one of its nodes for a moment.
_PATIENCE_SECONDS: Final = 60.0
_LONGEST_WAIT_SECONDS: Final = 5.0

T = TypeVar("T")


def open_answers(place: IndexLocation, stamp: Stamp) -> "GenerationAnswers":
    """The answers of the generation of a stamp; nothing is opened before they are asked."""
    return GenerationAnswers(place, stamp)


@dataclass(frozen=True, slots=True)
class GenerationAnswers:
    """The answers of one generation.

    Attributes:
        place: where it is.
        stamp: which one.
        patience: seconds for which an engine that fails is asked again.
    """

    place: IndexLocation
    stamp: Stamp
    patience: float = _PATIENCE_SECONDS

    def ask(self, queries: Sequence[AcceptanceQuery]) -> tuple[AcceptanceFailure, ...]:
        """Ask all queries, one after the other, on connections of their own; see `Answers`."""
        return asyncio.run(self._ask(queries))

    async def _ask(self, queries: Sequence[AcceptanceQuery]) -> tuple[AcceptanceFailure, ...]:
        if not self.stamp.readable:
            version = self.stamp.schema_version
            raise AnswersUnavailableError(f"it has schema version {version}, the service reads {SCHEMA_VERSION}")
        failures: list[AcceptanceFailure] = []
        async with _opened(self.place, self.stamp.generation) as engine:
            snapshot = await self._answered(partial(snapshot_of, engine, self.stamp))
            for query in queries:
                reasons = await self._answered(partial(_wrong, snapshot, query))
                failures += [AcceptanceFailure(query.location, reason) for reason in reasons]
        return tuple(failures)

    async def _answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        # A generation that is not live looks removed while its shards are on their way: that is no reason to give up.
        attempts = AsyncRetrying(
            retry=retry_if_exception_type((BackendUnavailable, TimeoutError)),
            stop=stop_after_delay(self.patience),
            wait=wait_random_exponential(max=_LONGEST_WAIT_SECONDS),
            reraise=True,
        )
        try:
            return await attempts(_in_time, ask)
        except TimeoutError as error:
            raise AnswersUnavailableError("an answer took too long") from error
        except BackendUnavailable as error:
            raise AnswersUnavailableError(str(error)) from error


async def _in_time(ask: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(_ANSWER_SECONDS):
        return await ask()


@asynccontextmanager
async def _opened(place: IndexLocation, generation: str) -> AsyncIterator[Engine]:
    engine: Engine
    if isinstance(place, EmbeddedLocation):
        engine = TantivyEngine(place.root)
    else:
        folder = DEFAULT_PLACE if place.typeaheads is None else FolderLocation(place.typeaheads / generation)
        engine = OpenSearchEngine(place.urls, place.prefix, _REQUEST_SECONDS, place.access, place=folder)
    try:
        yield engine
    finally:
        await engine.close()


async def _wrong(snapshot: PlannedSnapshot, query: AcceptanceQuery) -> tuple[str, ...]:
    """What the answer to a query does not hold, by the query's fields."""
    if query.category is not None and query.category not in {found.slug for found in await snapshot.categories()}:
        # To callers this is an error and not an empty answer (E4).
        return ("category is carried by no shop",)
    shops, total = await _page(snapshot, query)
    return (*_misplaced(query, shops), *_too_few(query, total))


async def _page(snapshot: Snapshot, query: AcceptanceQuery) -> tuple[Sequence[Shop | SuggestedShop], int]:
    """The shops of one page, and how many there are in all as far as the tool says so."""
    limit = max(query.within, FIRST_PAGE[query.tool])
    text = spaced(query.query)
    if query.tool is AcceptanceTool.FIND_SHOP:
        found = await snapshot.find(FindQuery(text, query.country, query.category, offset=0, limit=limit))
        return found.shops, found.total
    suggested = snapshot.suggest(SuggestQuery(text, query.country, limit))
    return tuple(suggestion.shop for suggestion in suggested.shops), len(suggested.shops)


def _misplaced(query: AcceptanceQuery, shops: Sequence[Shop | SuggestedShop]) -> Iterator[str]:
    places = {name: place for place, shop in enumerate(shops, 1) for name in (shop.id, shop.domain)}
    for number, name in enumerate(query.expect):
        place = places.get(name)
        if place is None or place > query.within:
            # Unknown, under review and too far down read alike.
            found = "" if place is None else f", but in place {place}"
            yield f"expect.{number} is not among the first {query.within}{found}"
    for number, name in enumerate(query.absent):
        place = places.get(name)
        if place is not None and place <= FIRST_PAGE[query.tool]:
            yield f"absent.{number} is in place {place}"


def _too_few(query: AcceptanceQuery, total: int) -> Iterator[str]:
    if query.minimum_total is not None and total < query.minimum_total:
        yield f"minimum_total is {query.minimum_total}, but there are {total}"
