"""Golden queries: what the write side asks of a new generation, and how it reaches the read side's search for that.

The sides never import each other. The read side registers a function under the group and the name below, the write side
finds it there; nothing is published that answers an operator's golden query wrongly (G1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from index_mappings.generations import Stamp
from shop_directory.settings.cluster_access import OPEN_ACCESS, ClusterAccess

ANSWERS_GROUP: Final = "shop_directory.answers"
ANSWERS_ENTRY: Final = "golden"

# The bounds of callers (M8, M9), so that a file can be refused before a build has begun.
MAX_FIND_QUERY: Final = 200
MAX_FIND_WORDS: Final = 12
MAX_SUGGEST_QUERY: Final = 256


class AcceptanceTool(StrEnum):
    """What a golden query is asked of."""

    FIND_SHOP = "find_shop"
    SUGGEST = "suggest"


# The shops of an answer when the caller does not say how many, and the most that one can ask for.
FIRST_PAGE: Final[Mapping[AcceptanceTool, int]] = MappingProxyType(
    {AcceptanceTool.FIND_SHOP: 50, AcceptanceTool.SUGGEST: 8}
)
LARGEST_PAGE: Final[Mapping[AcceptanceTool, int]] = MappingProxyType(
    {AcceptanceTool.FIND_SHOP: 100, AcceptanceTool.SUGGEST: 20}
)


@dataclass(frozen=True, slots=True)
class AcceptanceQuery:
    """A query with what its answer must hold.

    Attributes:
        place: where it stands, for reports: file and line.
        tool: what it is asked of.
        query: as a caller types it; blank browses.
        country: an upper-case ISO code, or None.
        category: a slug, or None; of find_shop only.
        expect: ids or reduced domains of shops that must all be among the first `within`.
        within: how many shops count, from 1 to LARGEST_PAGE.
        absent: ids or reduced domains of shops that must not be on the first page.
        minimum_total: how many matches there must be at least, or None; of find_shop only.
    """

    place: str
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
    """One thing that an answer does not hold.

    Attributes:
        place: of the query.
        reason: the query's field and what is wrong with it. It holds no value of a query: a shop that is expected may
            be one that nobody may know of by now (V1).
    """

    place: str
    reason: str


class AnswersUnavailableError(Exception):
    """The generation did not answer, not wholly, or not in time: nothing is known of the golden queries."""


class Answers(Protocol):
    """The answers of one generation, published or not."""

    def ask(self, queries: Sequence[AcceptanceQuery]) -> tuple[AcceptanceFailure, ...]:
        """Ask all queries; blocks until all are answered. It must not be called where an event loop runs.

        Returns:
            What the answers do not hold, in the order of the queries; empty when all is well.

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
        urls: its nodes'.
        prefix: what all index names begin with.
        access: how it lets its callers in.
        typeaheads: a folder in which a folder for each generation has the files of its typeahead; None where they have
            to be fetched first.
    """

    urls: tuple[str, ...]
    prefix: str
    access: ClusterAccess = OPEN_ACCESS
    typeaheads: Path | None = None


IndexLocation = EmbeddedLocation | OpenSearchLocation
# What is registered: the answers of this stamp's generation in this place. Nothing is opened before they are asked.
OpenAnswers = Callable[[IndexLocation, Stamp], Answers]
