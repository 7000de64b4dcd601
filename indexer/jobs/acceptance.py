"""The operator's acceptance queries: read from a file before a build, asked of the new generation before it is live.

A line of the file has the bounds that callers have (M8, M9). Wrong lines and failed queries are reported by file, line
and field, never by a value: an operator may expect a shop that has become secret since (V1).
"""

import re
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Final, Literal, Self

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

from index_mappings.countries import COUNTRY_CODES
from index_mappings.forms import query_forms
from index_mappings.hosts import MAX_REFERENCE, has_dot, reduce_host
from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.records.problems import CatalogueError, Problem, ProblemLog
from indexer.records.shop import Slug, clean, reasons
from indexer.sinks.failures import SinkError
from shop_directory.acceptance import (
    ANSWERS_ENTRY,
    ANSWERS_GROUP,
    FIRST_PAGE,
    LARGEST_PAGE,
    MAX_FIND_QUERY,
    MAX_FIND_WORDS,
    MAX_SUGGEST_QUERY,
    AcceptanceFailure,
    AcceptanceQuery,
    AcceptanceTool,
    Answers,
    AnswersUnavailableError,
    OpenAnswers,
)

_ID: Final = re.compile("[A-Za-z0-9_-]{1,64}")
MAX_QUERIES: Final = 10_000
MAX_BYTES: Final = 16 * 1024 * 1024

_NAMED: Final = 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# Advice in the reasons of a catalogue's record; this file has no such option.
_LENIENT: Final = " (--lenient passes over unknown fields)"


def _country(code: str) -> str:
    if code not in COUNTRY_CODES:
        raise ValueError("must be an assigned ISO 3166-1 alpha-2 code (or XK) in capitals")
    return code


def _shop(text: str) -> str:
    """A shop's id, or its domain reduced in the same way as a caller's (R1)."""
    name = clean(text).strip()
    if not has_dot(name):
        if _ID.fullmatch(name):
            return name
    elif (host := reduce_host(name)) is not None and has_dot(host):
        return host
    raise ValueError("must be the id or the domain of a shop")


_Shops = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_REFERENCE), AfterValidator(_shop)], ...], Field(strict=False)
]


class AcceptanceLine(BaseModel):
    """An acceptance query as an operator writes it. A field is checked against the fields above it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    tool: Literal["find_shop", "suggest"]
    query: Annotated[str, AfterValidator(clean)]
    country: Annotated[str, AfterValidator(_country)] | None = None
    category: Slug | None = None
    expect: _Shops = ()
    within: Annotated[int, Field(ge=1)] | None = None
    absent: _Shops = ()
    minimum_total: Annotated[int, Field(ge=1)] | None = None

    def to_query(self, location: str) -> AcceptanceQuery:
        """The query of this line, whose file and line number are its location."""
        tool = AcceptanceTool(self.tool)
        return AcceptanceQuery(
            location=location,
            tool=tool,
            query=self.query,
            country=self.country,
            category=self.category,
            expect=self.expect,
            within=self.within or FIRST_PAGE[tool],
            absent=self.absent,
            minimum_total=self.minimum_total,
        )

    @field_validator("query")
    @classmethod
    def _as_callers_may(cls, query: str, info: ValidationInfo) -> str:
        tool = info.data.get("tool")
        most = MAX_SUGGEST_QUERY if tool == AcceptanceTool.SUGGEST else MAX_FIND_QUERY
        if tool is not None and len(query) > most:
            raise ValueError(f"is longer than {most} characters")
        if tool == AcceptanceTool.FIND_SHOP and len(query_forms(query).words) > MAX_FIND_WORDS:
            raise ValueError(f"has more than {MAX_FIND_WORDS} words")
        return query

    @field_validator("category", "minimum_total")
    @classmethod
    def _of_find_shop(cls, value: str | int | None, info: ValidationInfo) -> str | int | None:
        if value is not None and info.data.get("tool") == AcceptanceTool.SUGGEST:
            raise ValueError("is for find_shop only")
        return value

    @field_validator("within")
    @classmethod
    def _on_one_page(cls, within: int | None, info: ValidationInfo) -> int | None:
        tool = info.data.get("tool")
        if within is not None and tool is not None and within > (most := LARGEST_PAGE[tool]):
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
        if len(set(self.expect)) > (self.within or FIRST_PAGE[AcceptanceTool(self.tool)]):
            raise ValueError("expects more shops than within allows")
        return self


class AcceptanceFileError(CatalogueError):
    """The file of acceptance queries has wrong lines; `problems` lists them."""

    def __init__(self, problems: ProblemLog) -> None:
        super().__init__(f"{problems.records} acceptance queries are wrong: correct them")
        self.problems = problems


class AcceptanceFailedError(SinkError):
    """Answers of the new generation fail acceptance queries; `failures` has all, the text the first."""

    def __init__(self, failures: Sequence[AcceptanceFailure], asked: int) -> None:
        failed = len({failure.location for failure in failures})
        named = "; ".join(f"{failure.location}: {failure.reason}" for failure in failures[:_NAMED])
        more = f"; and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
        super().__init__(f"{failed} of {asked} acceptance queries failed: {named}{more}")
        self.failures = tuple(failures)


def read_acceptance(path: Path) -> tuple[AcceptanceQuery, ...]:
    """Read a file of acceptance queries: NDJSON, one query a line.

    Raises:
        AcceptanceFileError: lines are wrong; the whole file was checked.
        CatalogueError: the file cannot be read, or holds no query or too many.
    """
    problems = ProblemLog()
    queries: list[AcceptanceQuery] = []
    for number, raw in _lines(path):
        try:
            queries.append(AcceptanceLine.model_validate(strict_loads(raw)).to_query(f"{path.name}:{number}"))
        except NotStrictJsonError as error:
            problems.add(Problem(path.name, number, None, f"the line {error}"))
        except ValidationError as error:
            found = [(field, reason.removesuffix(_LENIENT)) for field, reason in reasons(error)]
            problems.add(*(Problem(path.name, number, field, reason) for field, reason in found))
    if problems.count:
        raise AcceptanceFileError(problems)
    return tuple(queries)


def installed_answers(entry: str = ANSWERS_ENTRY) -> OpenAnswers:
    """The function of the read side that opens the answers of a generation, found by its entry point."""
    found = tuple(entry_points(group=ANSWERS_GROUP, name=entry))
    if not found:
        raise SinkError("acceptance queries can't be asked: install the service's package alongside the indexer")
    try:
        opened: OpenAnswers = found[0].load()
    except ImportError as error:
        name = error.name or "a part of the service"
        raise SinkError(f"acceptance queries can't be asked: {name} is not installed") from error
    return opened


def check_acceptance(queries: Sequence[AcceptanceQuery], answers: Answers) -> None:
    """Ask the acceptance queries of a generation.

    Raises:
        AcceptanceFailedError: an answer fails its query.
        SinkError: the generation did not answer, so no query has passed or failed.
    """
    try:
        failures = answers.ask(queries)
    except AnswersUnavailableError as error:
        raise SinkError(f"the acceptance queries were not answered: {error}") from error
    if failures:
        raise AcceptanceFailedError(failures, len(queries))


def _lines(path: Path) -> list[tuple[int, bytes]]:
    """The lines that are not blank, each with its number."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > MAX_BYTES:
        raise CatalogueError(f"{path} is larger than {MAX_BYTES} bytes")
    every = raw.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    lines = [(number, line) for number, line in enumerate(every, 1) if line.strip()]
    if not 1 <= len(lines) <= MAX_QUERIES:
        raise CatalogueError(f"{path} holds {len(lines)} acceptance queries: it may hold 1 to {MAX_QUERIES}")
    return lines
