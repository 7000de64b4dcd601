"""The quality of a typeahead: the same queries and metrics for every system.

Every request is sent once, for ten shops. A session is sent as its client sends it, with the country.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.typeahead.workload import LabelledQuery, Session, TypedQuery, classes, sessions
from tests.engines.relevance.metrics import DEPTH, Quality, by_kind, keystrokes_until, rank_of_first

Answers = Mapping[TypedQuery, Sequence[str]]
# Query, country or None, and limit: returns the ids of the shops in order.
Ask = Callable[[str, str | None, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class QualityScores:
    """The quality of one system, class by class.

    `keystrokes` is the mean number in the development sessions until the target is among the first eight; one more than
    all of them where it never is.
    """

    classes: Mapping[str, Quality]
    keystrokes: float


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The queries by class, and the sessions."""

    classes: Mapping[str, Sequence[LabelledQuery]]
    sessions: Sequence[Session]

    @property
    def requests(self) -> tuple[TypedQuery, ...]:
        """The distinct requests."""
        queries = (sought.typed for queries in self.classes.values() for sought in queries)
        keystrokes = (request for session in self.sessions for request in session.requests)
        return tuple(dict.fromkeys((*queries, *keystrokes)))

    def judge(self, answers: Answers) -> QualityScores:
        """The quality of the ids found for each request."""
        ranks = [
            (kind, rank_of_first(answers[sought.typed], sought.relevant, sought.acceptable))
            for kind, queries in self.classes.items()
            for sought in queries
        ]
        counts = [
            keystrokes_until([answers[request] for request in session.requests], session.target)
            for session in self.sessions
        ]
        return QualityScores(by_kind(ranks), sum(counts) / len(counts))


def query_set(dev_data: Path) -> QuerySet:
    """The development queries by kind, prefixes of names by length, and the sessions."""
    return QuerySet(classes(dev_data), sessions(dev_data))


def judged(ask: Ask, dev_data: Path) -> QualityScores:
    """Send all requests one after the other and compute the quality."""
    asked = query_set(dev_data)
    return asked.judge({typed: ask(typed.q, typed.country, DEPTH) for typed in asked.requests})
