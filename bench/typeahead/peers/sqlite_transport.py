"""Answers typeahead from the file that `sqlite` has built; statements run one after another until there is enough.

They are short and in memory, so they run on the event loop: on one core threads cost more than they gain.
"""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from bench.typeahead.peers.folding import fold
from bench.typeahead.peers.sqlite import FILE, SHORT
from bench.typeahead.peers.transport import Answer, Asked, Row, main

_TRIGRAM: Final = 3
_COLUMNS: Final = "pop_rank, id, name, domain, category"
_MARKET: Final = "(:country IS NULL OR countries IS NULL OR instr(countries, :country))"
_POPULAR: Final = f"SELECT {_COLUMNS} FROM shops WHERE {_MARKET} ORDER BY pop_rank LIMIT :limit"  # noqa: S608 - constants
_SHORT: Final = (
    f"SELECT {_COLUMNS} FROM short CROSS JOIN shops USING (pop_rank) WHERE prefix = :q AND {_MARKET} "  # noqa: S608 - constants
    "ORDER BY kind, pop_rank LIMIT :limit"
)
_BEGINS: Final = (
    f"SELECT {_COLUMNS} FROM texts CROSS JOIN shops USING (pop_rank) "  # noqa: S608 - constants
    f"WHERE folded >= :q AND folded < :end AND {_MARKET} "
    "ORDER BY folded <> :q, pop_rank LIMIT 3 * :limit"
)
_GRAMS: Final = (
    f"SELECT {_COLUMNS} FROM grams CROSS JOIN shops ON pop_rank = grams.rowid WHERE grams MATCH :match AND {_MARKET} "  # noqa: S608 - constants
    "{order} LIMIT 2 * :limit"
)
_POPULAR_GRAMS: Final = _GRAMS.format(order="ORDER BY grams.rowid")
_ALIKE: Final = _GRAMS.format(order="ORDER BY bm25(grams, 4, 1)")


@asynccontextmanager
async def opening(folder: Path) -> AsyncIterator[Answer]:
    """Open the file for reading, with all of it mapped into memory."""
    connection = sqlite3.connect(f"file:{folder / FILE}?mode=ro&immutable=1", uri=True, cached_statements=16)
    connection.executescript("PRAGMA mmap_size = 8589934592; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;")

    async def answer(asked: Asked) -> Sequence[Row]:
        return _found(connection, asked)

    yield answer
    connection.close()


def _found(connection: sqlite3.Connection, asked: Asked) -> Sequence[Row]:
    q = fold(asked.q)
    country = None if asked.country is None else f",{asked.country},"
    given = {"q": q, "end": f"{q}\U0010ffff", "country": country, "limit": asked.limit}
    found: dict[int, Row] = {}

    def look(statement: str, match: str | None = None) -> None:
        for pop_rank, *row in connection.execute(statement, {**given, "match": match}):
            if len(found) < asked.limit:
                found.setdefault(pop_rank, tuple(row))

    if len(q) <= SHORT:
        look(_SHORT if q else _POPULAR)
        return list(found.values())
    look(_BEGINS)
    for match in _matches(q):
        if len(found) < asked.limit:
            look(_POPULAR_GRAMS, match)
    if not found and len(q) > _TRIGRAM:
        look(_ALIKE, " OR ".join(f'"{q[at : at + _TRIGRAM]}"' for at in range(len(q) - _TRIGRAM + 1)))
    return list(found.values())


def _matches(q: str) -> list[str]:
    """The searches in order: beginnings of words, the same with words of categories allowed, substrings.

    What is too short for a trigram is left out.
    """
    words = q.split()
    begin = " AND ".join(f'" {word}"' for word in words if len(word) + 1 >= _TRIGRAM)
    within = " AND ".join(f'"{word}"' for word in words if len(word) >= _TRIGRAM)
    with_categories = [begin] if begin and len(words) > 1 else []
    return [*(f"words : ({begin})" for _ in begin[:1]), *with_categories, *(f"words : ({within})" for _ in within[:1])]


if __name__ == "__main__":
    main(opening)
