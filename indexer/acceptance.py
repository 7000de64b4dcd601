"""Acceptance queries: the operator's queries that a new generation must answer before it is published (G1).

It asks the engines as the service does, with the bounds that callers have (M8, M9).

Wrong lines and failed queries are reported by file, line and field, not by value: a shop that an operator expects may
be secret by now (V1). A query passes only with a complete answer. A failing engine is retried, then an error (E3).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from index_mappings.documents import SCHEMA_VERSION, Shop
from index_mappings.forms import query_forms
from index_mappings.generations import Stamp
from index_mappings.hosts import MAX_REFERENCE
from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.jobs.build import AcceptanceFailedError
from indexer.records.problems import CatalogueError, Problem, ProblemLog
from indexer.records.related import Country
from indexer.records.shop import Slug, clean, reasons
from indexer.sinks.failures import SinkError
from indexer.sources.lines import BYTE_ORDER_MARK
from shop_directory.search.bounds import (
    DEFAULT_LIMIT,
    DEFAULT_SUGGESTIONS,
    MAX_LIMIT,
    MAX_Q,
    MAX_QUERY,
    MAX_QUERY_WORDS,
    MAX_SUGGESTIONS,
    reduce_reference,
    spaced,
)
from shop_directory.search.embedded.engine import TantivyEngine
from shop_directory.search.failures import BackendUnavailable
from shop_directory.search.opensearch.engine import OpenSearchEngine
from shop_directory.search.opensearch.folder import DEFAULT_FOLDER, FolderLocation
from shop_directory.search.planned_backend import PlannedSnapshot, snapshot_of
from shop_directory.search.protocol import FindQuery, Snapshot
from shop_directory.settings.locations import LocationSettings
from shop_directory.typeahead.suggestions import SuggestedShop, SuggestQuery

MAX_QUERIES: Final = 10_000
MAX_BYTES: Final = 16 * 1024 * 1024

_NAMED: Final = 20
# Advice in the reasons of a catalogue's record; this file has no such option.
_LENIENT: Final = " (--lenient passes over unknown fields)"
# No caller waits, and nothing is cached yet: a request may take longer than in service.
_REQUEST_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 30.0
# The cluster may lose a node for a short time.
_RETRY_SECONDS: Final = 60.0
_LONGEST_WAIT_SECONDS: Final = 5.0

AskedTool = Literal["find_shop", "suggest"]
T = TypeVar("T")
# The file and line of a query, and one way in which an answer fails it, which names a field and no value.
Failure = tuple[str, str]

# The number of shops in an answer when the caller names none, and the largest that a caller can ask for.
_FIRST_PAGE: Final = {"find_shop": DEFAULT_LIMIT, "suggest": DEFAULT_SUGGESTIONS}
_LARGEST_PAGE: Final = {"find_shop": MAX_LIMIT, "suggest": MAX_SUGGESTIONS}


class AcceptanceFileError(CatalogueError):
    """The file of acceptance queries has wrong lines; `problems` lists them."""

    def __init__(self, problems: ProblemLog) -> None:
        super().__init__(f"{problems.records} acceptance queries are wrong: correct them")
        self.problems = problems


def _shop(text: str) -> str:
    reference = reduce_reference(clean(text))
    if reference is None:
        raise ValueError("must be the id or the domain of a shop")
    return reference


_Shops = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_REFERENCE), AfterValidator(_shop)], ...], Field(strict=False)
]


class AcceptanceQuery(BaseModel):
    """An acceptance query as an operator writes it. A field is checked against the fields above it.

    A blank query browses. The shops of `expect`, by ids or reduced domains, must all be among the first `within`, those
    of `absent` not on the first page; without `within` the first page counts. `category` and `minimum_total`, the least
    number of matches, are of find_shop only.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    tool: AskedTool
    query: Annotated[str, AfterValidator(clean)]
    country: Country | None = None
    category: Slug | None = None
    expect: _Shops = ()
    within: Annotated[int, Field(ge=1)] | None = None
    absent: _Shops = ()
    minimum_total: Annotated[int, Field(ge=1)] | None = None

    @property
    def first(self) -> int:
        """How many first shops count."""
        return self.within or _FIRST_PAGE[self.tool]

    @field_validator("query")
    @classmethod
    def _as_callers_may(cls, query: str, info: ValidationInfo) -> str:
        tool = info.data.get("tool")
        most = MAX_Q if tool == "suggest" else MAX_QUERY
        if tool is not None and len(query) > most:
            raise ValueError(f"is longer than {most} characters")
        if tool == "find_shop" and len(query_forms(query).words) > MAX_QUERY_WORDS:
            raise ValueError(f"has more than {MAX_QUERY_WORDS} words")
        return query

    @field_validator("category", "minimum_total")
    @classmethod
    def _of_find_shop(cls, value: str | int | None, info: ValidationInfo) -> str | int | None:
        if value is not None and info.data.get("tool") == "suggest":
            raise ValueError("is for find_shop only")
        return value

    @field_validator("within")
    @classmethod
    def _on_one_page(cls, within: int | None, info: ValidationInfo) -> int | None:
        tool = info.data.get("tool")
        if within is not None and tool is not None and within > (most := _LARGEST_PAGE[tool]):
            raise ValueError(f"must be at most {most}")
        return within

    @field_validator("absent")
    @classmethod
    def _not_expected(cls, absent: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not set(absent).isdisjoint(info.data.get("expect", ())):
            raise ValueError("names a shop that expect names")
        return absent

    @model_validator(mode="after")
    def _states_something(self) -> Self:
        if not (self.expect or self.absent or self.minimum_total):
            raise ValueError("states nothing to check: give expect, absent or minimum_total")
        if len(set(self.expect)) > self.first:
            raise ValueError("expects more shops than within allows")
        return self


# Queries by their file and line.
Queries = Mapping[str, AcceptanceQuery]


def acceptance_check(path: Path, index: LocationSettings, typeaheads: Path | None) -> Callable[[Stamp], None]:
    """Read a file of acceptance queries, as `read_acceptance`, and return the check of a sealed generation.

    `typeaheads` holds a folder with the typeahead's files for each generation in OpenSearch; None fetches them. The
    check blocks until all queries are answered, and is not to be called in a running event loop. It raises
    AcceptanceFailedError if an answer fails its query, and SinkError if not all were answered.
    """
    queries = read_acceptance(path)

    def check(stamp: Stamp) -> None:
        failures = failures_of(queries, index, stamp, typeaheads)
        if failures:
            failed = len({location for location, _ in failures})
            named = "; ".join(f"{location}: {reason}" for location, reason in failures[:_NAMED])
            more = f"; and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
            raise AcceptanceFailedError(f"{failed} of {len(queries)} acceptance queries failed: {named}{more}")

    return check


def read_acceptance(path: Path) -> Queries:
    """Read a file of acceptance queries: NDJSON, one query a line.

    Raises AcceptanceFileError if lines are wrong, after a check of the whole file, or CatalogueError if the file cannot
    be read, or holds no query or too many.
    """
    problems = ProblemLog()
    queries: dict[str, AcceptanceQuery] = {}
    for number, raw in _lines(path):
        try:
            queries[f"{path.name}:{number}"] = AcceptanceQuery.model_validate(strict_loads(raw))
        except NotStrictJsonError as error:
            problems.add(Problem(path.name, number, None, f"the line {error}"))
        except ValidationError as error:
            found = [(field, reason.removesuffix(_LENIENT)) for field, reason in reasons(error)]
            problems.add(*(Problem(path.name, number, field, reason) for field, reason in found))
    if problems.count:
        raise AcceptanceFileError(problems)
    return queries


def _lines(path: Path) -> list[tuple[int, bytes]]:
    """The lines that are not blank, each with its number."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > MAX_BYTES:
        raise CatalogueError(f"{path} is larger than {MAX_BYTES} bytes")
    every = raw.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    lines = [(number, line) for number, line in enumerate(every, 1) if line.strip()]
    if not 1 <= len(lines) <= MAX_QUERIES:
        raise CatalogueError(f"{path} holds {len(lines)} acceptance queries: it may hold 1 to {MAX_QUERIES}")
    return lines


def failures_of(
    queries: Queries,
    index: LocationSettings,
    stamp: Stamp,
    typeaheads: Path | None = None,
    patience: float = _RETRY_SECONDS,
) -> tuple[Failure, ...]:
    """Ask all queries of a generation, published or not; returns the failures in their order.

    Without `typeaheads`, its files are fetched first. A failing engine is retried for `patience` seconds. Raises
    SinkError if at least one query was not answered.
    """
    try:
        return asyncio.run(_ask(queries, index, stamp, typeaheads, patience))
    except (BackendUnavailable, TimeoutError) as error:
        reason = "an answer took too long" if isinstance(error, TimeoutError) else error
        raise SinkError(f"the acceptance queries were not answered: {reason}") from error


async def _ask(
    queries: Queries, index: LocationSettings, stamp: Stamp, typeaheads: Path | None, patience: float
) -> tuple[Failure, ...]:
    if not stamp.readable:
        raise BackendUnavailable(f"it has schema version {stamp.schema_version}, the service reads {SCHEMA_VERSION}")
    # A generation that is not live looks removed while its shards are relocated, so that is retried, too.
    attempts = AsyncRetrying(
        retry=retry_if_exception_type((BackendUnavailable, TimeoutError)),
        stop=stop_after_delay(patience),
        wait=wait_random_exponential(max=_LONGEST_WAIT_SECONDS),
        reraise=True,
    )
    engine: TantivyEngine | OpenSearchEngine
    if index.engine == "embedded":
        engine = TantivyEngine(index.data_dir)
    else:
        folder = DEFAULT_FOLDER if typeaheads is None else FolderLocation(typeaheads / stamp.generation)
        access = index.cluster_access
        engine = OpenSearchEngine(index.opensearch_urls, index.index_prefix, _REQUEST_SECONDS, access, location=folder)
    failures: list[Failure] = []
    try:
        snapshot: PlannedSnapshot = await attempts(_in_time, partial(snapshot_of, engine, stamp))
        for location, query in queries.items():
            found: tuple[str, ...] = await attempts(_in_time, partial(_reasons, snapshot, query))
            failures += [(location, reason) for reason in found]
    finally:
        await engine.close()
    return tuple(failures)


async def _in_time(call: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(_ANSWER_SECONDS):
        return await call()


async def _reasons(snapshot: PlannedSnapshot, query: AcceptanceQuery) -> tuple[str, ...]:
    """Why the answer to a query fails, by the query's fields; empty if it passes."""
    if query.category is not None and query.category not in {found.slug for found in await snapshot.categories()}:
        # To callers this is an error and not an empty answer (E4).
        return ("category is carried by no shop",)
    return tuple(_failures(query, *await _page(snapshot, query)))


async def _page(snapshot: Snapshot, query: AcceptanceQuery) -> tuple[Sequence[Shop | SuggestedShop], int]:
    """The shops of one page, and the total that the tool reports."""
    limit = max(query.first, _FIRST_PAGE[query.tool])
    text = spaced(query.query)
    if query.tool == "find_shop":
        countries = () if query.country is None else (query.country,)
        categories = () if query.category is None else (query.category,)
        found = await snapshot.find(FindQuery(text, countries, categories, offset=0, limit=limit))
        return found.shops, found.total
    suggested = snapshot.suggest(SuggestQuery.of(text, query.country, limit))
    return tuple(suggestion.shop for suggestion in suggested.shops), len(suggested.shops)


def _failures(query: AcceptanceQuery, shops: Sequence[Shop | SuggestedShop], total: int) -> Iterator[str]:
    ranks = {name: rank for rank, shop in enumerate(shops, 1) for name in (shop.id, shop.domain)}
    for number, name in enumerate(query.expect):
        rank = ranks.get(name)
        if rank is None or rank > query.first:
            # The message for unknown shops and for those under review is the same.
            found = "" if rank is None else f", but in place {rank}"
            yield f"expect.{number} is not among the first {query.first}{found}"
    for number, name in enumerate(query.absent):
        rank = ranks.get(name)
        if rank is not None and rank <= _FIRST_PAGE[query.tool]:
            yield f"absent.{number} is in place {rank}"
    if query.minimum_total is not None and total < query.minimum_total:
        yield f"minimum_total is {query.minimum_total}, but there are {total}"
