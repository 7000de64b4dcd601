"""Acceptance queries: the operator's queries that a new generation must answer before it is published (G1).

The write side and the read side never import each other: the read side registers a function as an entry point under the
group and the name below, and the write side loads it from there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from index_mappings.generations import Stamp
from shop_directory.settings.locations import OPEN_ACCESS, ClusterAccess

ANSWERS_GROUP: Final = "shop_directory.answers"
ANSWERS_ENTRY: Final = "acceptance"

# The bounds of callers (M8, M9): a file is refused before its build starts.
MAX_FIND_QUERY: Final = 200
MAX_FIND_WORDS: Final = 12
MAX_SUGGEST_QUERY: Final = 256


class AcceptanceTool(StrEnum):
    """The tools that acceptance queries can call."""

    FIND_SHOP = "find_shop"
    SUGGEST = "suggest"


# The number of shops in an answer when the caller names none, and the largest that a caller can ask for.
FIRST_PAGE: Final[Mapping[AcceptanceTool, int]] = MappingProxyType(
    {AcceptanceTool.FIND_SHOP: 50, AcceptanceTool.SUGGEST: 8}
)
LARGEST_PAGE: Final[Mapping[AcceptanceTool, int]] = MappingProxyType(
    {AcceptanceTool.FIND_SHOP: 100, AcceptanceTool.SUGGEST: 20}
)


@dataclass(frozen=True, slots=True)
class AcceptanceQuery:
    """A query, and what its answer must contain.

    Attributes:
        location: file and line, for reports.
        tool: the tool to call.
        query: as a caller types it; blank browses.
        country: an upper-case ISO code, or None.
        category: a slug, or None; of find_shop only.
        expect: ids or reduced domains of shops that must all be among the first `within`.
        within: the number of first shops that count, from 1 to LARGEST_PAGE.
        absent: ids or reduced domains of shops that must not be on the first page.
        minimum_total: the least number of matches, or None; of find_shop only.
    """

    location: str
    tool: AcceptanceTool
    query: str
    country: str | None
    category: str | None
    expect: tuple[str, ...]
    within: int
    absent: tuple[str, ...]
    minimum_total: int | None


@dataclass(frozen=True, slots=True)
class AcceptanceFailure:
    """One way in which an answer fails its query.

    Attributes:
        location: of the query.
        reason: the field of the query, and what is wrong with it. It holds no value of the query, as the shop that is
            expected may have become secret since (V1).
    """

    location: str
    reason: str


class AnswersUnavailableError(Exception):
    """The generation did not answer completely in time: no acceptance query has passed or failed."""


class Answers(Protocol):
    """The answers of one generation, published or not."""

    def ask(self, queries: Sequence[AcceptanceQuery]) -> tuple[AcceptanceFailure, ...]:
        """Ask all queries, and block until all are answered; not to be called in a running event loop.

        Returns:
            The failures in the order of the queries; empty when all queries pass.

        Raises:
            AnswersUnavailableError: at least one query was not answered.
        """


@dataclass(frozen=True, slots=True)
class EmbeddedLocation:
    """The embedded engine's index directory."""

    root: Path


@dataclass(frozen=True, slots=True)
class OpenSearchLocation:
    """A cluster.

    Attributes:
        urls: of its nodes.
        prefix: of all index names.
        access: credentials and certificates.
        typeaheads: the folder that holds a folder with the typeahead's files for each generation; None where they have
            to be fetched first.
    """

    urls: tuple[str, ...]
    prefix: str
    access: ClusterAccess = OPEN_ACCESS
    typeaheads: Path | None = None


IndexLocation = EmbeddedLocation | OpenSearchLocation
# The registered function: the answers of the generation of this stamp. It opens nothing before they are asked.
OpenAnswers = Callable[[IndexLocation, Stamp], Answers]
