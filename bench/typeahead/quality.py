"""How good the answers of a typeahead are: the same queries, the same measures, whoever answers.

Every request is asked once, ten deep, and only what comes back is judged. A session is asked as its client sends it,
country included.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.typeahead.workload import Session, Sought, Typed, classes, sessions
from tests.engines.relevance.metrics import DEPTH, Quality, by_kind, keystrokes_until, rank_of_first

Answers = Mapping[Typed, Sequence[str]]
# The query, the country or None, how many: the ids of the shops in order.
Ask = Callable[[str, str | None, int], Sequence[str]]
AskLater = Callable[[str, str | None, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Judged:
    """The quality of one engine's answers.

    Attributes:
        classes: success@1, success@8 and MRR@10, class by class.
        keystrokes: the mean number of key presses of the development sessions until the target is among the first
            eight; one more than all where it never is.
    """

    classes: Mapping[str, Quality]
    keystrokes: float


@dataclass(frozen=True, slots=True)
class QuerySet:
    """What is asked: the classes of queries, and the sessions."""

    classes: Mapping[str, Sequence[Sought]]
    sessions: Sequence[Session]

    @property
    def requests(self) -> tuple[Typed, ...]:
        """Each different request once."""
        queries = (sought.typed for queries in self.classes.values() for sought in queries)
        presses = (press for session in self.sessions for press in session.presses)
        return tuple(dict.fromkeys((*queries, *presses)))

    def judge(self, answers: Answers) -> Judged:
        """The figures of the answers to all requests, each at least ten deep where there are so many."""
        ranks = [
            (kind, rank_of_first(answers[sought.typed], sought.relevant, sought.acceptable))
            for kind, queries in self.classes.items()
            for sought in queries
        ]
        counts = [
            keystrokes_until([answers[press] for press in session.presses], session.target) for session in self.sessions
        ]
        return Judged(by_kind(ranks), sum(counts) / len(counts))


def query_set(dev_data: Path) -> QuerySet:
    """All that is asked: the development queries by kind, beginnings of names by length, and the sessions."""
    return QuerySet(classes(dev_data), sessions(dev_data))


def judged(ask: Ask, dev_data: Path) -> Judged:
    """Ask everything, one request after the other, and judge the answers."""
    asked = query_set(dev_data)
    return asked.judge({typed: ask(typed.q, typed.country, DEPTH) for typed in asked.requests})


async def judged_later(ask: AskLater, dev_data: Path) -> Judged:
    """The same of an engine that is asked asynchronously."""
    asked = query_set(dev_data)
    return asked.judge({typed: await ask(typed.q, typed.country, DEPTH) for typed in asked.requests})
