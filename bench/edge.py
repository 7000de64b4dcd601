"""How much of typeahead an edge cache answers, by what people typed: between two bounds, as few of them are known.

An edge keeps an answer for three seconds (C1). Where one query comes m times in that span on average, by chance, a
cycle is one miss and m hits: it answers m / (1 + m) of them.
"""

import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from bench.asked import lines

_KEPT_S: Final = 3.0
_RATES: Final = (10, 100, 300, 1_000, 3_000, 10_000)
_LONG: Final = 5


@dataclass(frozen=True, slots=True)
class Typing:
    """Keystrokes of many people, each with a shop in mind.

    Attributes:
        queries: how often each was sent.
        typists: by how many people.
    """

    queries: Counter[tuple[str, str]]
    typists: Counter[tuple[str, str]]

    @property
    def total(self) -> int:
        """All requests."""
        return self.queries.total()

    def most(self, rate: float) -> float:
        """The share of hits if nobody types anything but this.

        Args:
            rate: requests a second at one edge location.
        """
        return sum(self._hits(count, rate) for count in self.queries.values()) / self.total

    def least(self, rate: float) -> float:
        """The share of hits if what only one of them typed is never typed by anybody else."""
        shared = (count for query, count in self.queries.items() if self.typists[query] > 1)
        # Each is counted without its own typist, who is what is asked about.
        return sum(self._hits(count, rate, others=count - 1) for count in shared) / self.total

    def _hits(self, count: int, rate: float, others: int | None = None) -> float:
        waiting = rate * _KEPT_S * (count if others is None else others) / self.total
        return count * waiting / (1 + waiting)


def typing(data: Path) -> Typing:
    """The streams of keystrokes of the development data; an edge tells countries apart."""
    queries: Counter[tuple[str, str]] = Counter()
    typists: Counter[tuple[str, str]] = Counter()
    for session in lines(data / "dev-sessions.ndjson"):
        sent = [(query, session.get("country", "")) for query in session["keystrokes"]]
        queries.update(sent)
        typists.update(set(sent))
    return Typing(queries, typists)


def hit_table(typed: Typing) -> Table:
    """Shares of hits for people."""
    lengths = Counter({len(query): 0 for query, _ in typed.queries})
    for (query, _), count in typed.queries.items():
        lengths[len(query)] += count
    table = Table("requests a second at one location", "hits at least", "at most", title="Kept by an edge for 3 s")
    for rate in _RATES:
        table.add_row(f"{rate:,}", f"{typed.least(rate):.0%}", f"{typed.most(rate):.0%}")
    shares = [f"{length}: {lengths[length] / typed.total:.0%}" for length in range(1, _LONG + 1)]
    longer = sum(count for length, count in lengths.items() if length > _LONG) / typed.total
    mean = statistics.mean(lengths.elements())
    table.caption = f"{typed.total:,} requests; characters {', '.join(shares)}, more: {longer:.0%}; mean {mean:.1f}"
    return table
