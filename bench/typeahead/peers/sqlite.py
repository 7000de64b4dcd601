"""SQLite FTS5 with its trigram tokenizer, the search that needs no server and is in Python already.

As its manual has it, the trigram index answers substrings of three characters and more. Around it stands what one adds
for typeahead: folded texts (the trigram tokenizer of this version folds case only), a B-tree for beginnings of whole
texts, a table of prefixes for one and two characters, and row ids in order of popularity, so that the first rows found
are the most popular and a scan ends early.
"""

import sqlite3
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final

from bench.built_indices import size_mb
from bench.typeahead.peers.folding import fold
from bench.typeahead.peers.shops import Shop, public_shops
from bench.typeahead.peers.starting import python_transport, uvicorn_version
from bench.typeahead.system import BuildStats, RunningServer, System

FILE: Final = "shops.sqlite"
SHORT: Final = 2
_WHOLE, _BEGINS, _WORD_BEGINS = 0, 1, 2
_TABLES: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE shops (pop_rank INTEGER PRIMARY KEY, id TEXT, name TEXT, domain TEXT, category TEXT, countries TEXT);
CREATE TABLE texts (folded TEXT, pop_rank INTEGER, PRIMARY KEY (folded, pop_rank)) WITHOUT ROWID;
CREATE TABLE short (prefix TEXT, kind INTEGER, pop_rank INTEGER, PRIMARY KEY (prefix, kind, pop_rank)) WITHOUT ROWID;
CREATE VIRTUAL TABLE grams USING fts5 (words, categories, tokenize = 'trigram');
"""


class SqliteTrigram(System):
    """The index is one file; statements run in the server's own process, on its event loop."""

    name = "sqlite-trigram"
    about = (
        "SQLite FTS5, trigram tokenizer: beginnings by B-tree, words and infixes by trigrams in order of popularity, "
        "typos by any trigram in common (bm25) when nothing else is found; raw ASGI on uvicorn."
    )

    def missing(self) -> str | None:
        """Python's SQLite has FTS5 almost everywhere."""
        with closing(sqlite3.connect(":memory:")) as connection:
            try:
                connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'trigram')")
            except sqlite3.OperationalError as error:
                return f"this Python's SQLite {sqlite3.sqlite_version} has no FTS5 with trigrams: {error}"
        return None

    def version(self) -> str:
        """Of SQLite and uvicorn."""
        return f"FTS5 of SQLite {sqlite3.sqlite_version}, {uvicorn_version()}"

    def build(self, corpus: Path, folder: Path) -> BuildStats:
        """Write the file."""
        started = time.perf_counter()
        with closing(sqlite3.connect(folder / FILE)) as connection:
            connection.executescript(_TABLES)
            for shop in public_shops(corpus):
                _add(connection, shop)
            connection.execute("INSERT INTO grams (grams) VALUES ('optimize')")
            connection.commit()
            connection.executescript("ANALYZE; VACUUM;")
        return BuildStats(time.perf_counter() - started, size_mb(folder))

    def serving(self, folder: Path) -> AbstractContextManager[RunningServer]:
        """Serve the file."""
        return python_transport("bench.typeahead.peers.sqlite_transport", folder)


def _add(connection: sqlite3.Connection, shop: Shop) -> None:
    folded = [text for text in dict.fromkeys(fold(text) for text in shop.texts) if text]
    markets = f",{','.join(shop.countries)}," if shop.countries else None
    connection.execute(
        "INSERT INTO shops VALUES (?, ?, ?, ?, ?, ?)",
        (shop.pop_rank, shop.id, shop.name, shop.domain, shop.category, markets),
    )
    connection.executemany("INSERT INTO texts VALUES (?, ?)", [(text, shop.pop_rank) for text in folded])
    rows = [(prefix, kind, shop.pop_rank) for (prefix, kind) in sorted(_short(folded))]
    connection.executemany("INSERT INTO short VALUES (?, ?, ?)", rows)
    # A space begins every word, so that a word's beginning is a substring too.
    connection.execute(
        "INSERT INTO grams (rowid, words, categories) VALUES (?, ?, ?)",
        (
            shop.pop_rank,
            "".join(f" {text}" for text in folded),
            "".join(f" {fold(n)}" for n in shop.category_names),
        ),
    )


def _short(folded: list[str]) -> set[tuple[str, int]]:
    """The prefixes of one and two characters with the best kind of each."""
    best: dict[str, int] = {}
    for text in folded:
        begins = [(text, _BEGINS), *((word, _WORD_BEGINS) for word in text.split()[1:])]
        for whole, kind in begins:
            for length in range(1, SHORT + 1):
                prefix = whole[:length].rstrip()
                found = _WHOLE if prefix == text else kind
                best[prefix] = min(best.get(prefix, found), found)
    return set(best.items())
