"""Writing a file of texts for key presses: `index_mappings.typeahead` tells what is in it.

Sorting is SQLite's, in a database that is gone when it is closed: memory stays small however many shops there are.
"""

import os
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import orjson

from index_mappings.documents import ANY_MARKET, WORLDWIDE
from index_mappings.tiers import ONE_TYPO_MIN
from index_mappings.typeahead import FULL, KEY, LACKING, LEADING, NAME, POSTING_BITS, TYPEAHEAD_VERSION, WORD
from indexer.sinks.embedded_files import FRESH
from indexer.sinks.parts_file import PartsFile
from indexer.sinks.typeahead_arrays import (
    NOBODY,
    WORD_SIZE,
    Numbers,
    best_tree,
    bits_of,
    by_shop,
    first_characters,
)
from indexer.sinks.typeahead_shop import Findable

_ITEM: Final = "<i4"
_LONG: Final = "<i8"
_BYTES: Final = "|u1"
_TABLES: Final = """
CREATE TABLE shops(place INTEGER PRIMARY KEY, rank TEXT, id TEXT, shown BLOB, markets TEXT);
CREATE TABLE evidence(text TEXT, place INTEGER, marks INTEGER);
CREATE TABLE keys(number INTEGER PRIMARY KEY, text TEXT);
"""
# So many shops are looked at a time; whole words of bits.
_SHOPS: Final = 1_024 * WORD_SIZE
# So many rows are given to SQLite at a time.
_ROWS: Final = 10_000


class TextsBuild:
    """A file of texts that is being made; a context, as it needs a database meanwhile."""

    def __init__(self, path: Path) -> None:
        """Name the file; the database lies beside it."""
        self._path = path
        self._database = path.with_name(f"{path.name}.sqlite.{os.getpid()}{FRESH}")
        self._count = 0

    def __enter__(self) -> Self:
        self._database.unlink(missing_ok=True)
        try:
            self._db = _begun(self._database)
        except sqlite3.Error as error:
            self._database.unlink(missing_ok=True)
            raise OSError(f"{self._database} could not be written: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._db.close()
        self._database.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise OSError(f"{self._database} could not be written: {error}") from error

    def add(self, shop: Findable) -> None:
        """Take a shop in; they may come in any order, each once."""
        marks: dict[str, int] = {}
        marked = (
            (FULL, shop.full), (KEY, shop.keys), (WORD, shop.words), (NAME, shop.names), (LEADING, shop.leading)
        )  # fmt: skip
        for mark, texts in marked:
            for text in texts:
                marks[text] = marks.get(text, 0) | mark
        place = self._count
        self._count += 1
        self._db.execute(
            "INSERT INTO shops VALUES (?, ?, ?, ?, ?)",
            (place, shop.rank, shop.id, orjson.dumps(shop.shown), " ".join(shop.markets)),
        )
        self._db.executemany("INSERT INTO evidence VALUES (?, ?, ?)", [(text, place, marks[text]) for text in marks])

    def write(self, gone: Collection[int] = (), notes: bytes = b"") -> None:
        """Write the file, which is there whole or not at all.

        Args:
            gone: numbers of the base's shops that are no longer what they were, for a file of changes.
            notes: what the writer wants to find there again.

        Raises:
            OSError: it can't be written.
        """
        with PartsFile(self._path) as file:
            numbers = self._numbers()
            heads, postings, best_leading, best_key = self._texts(file, numbers)
            file.part("heads", _ITEM, heads)
            file.part("postings", _ITEM, postings)
            own_heads, own = by_shop(self._count, heads, postings)
            file.part("own_heads", _ITEM, own_heads)
            file.part("own", _ITEM, own)
            file.part("best_leading", _ITEM, best_tree(best_leading))
            file.part("best_key", _ITEM, best_tree(best_key))
            for lacking in LACKING:
                order, firsts = self._without(lacking)
                file.part(f"rests_{lacking}", _ITEM, order)
                file.part(f"firsts_{lacking}", _LONG, firsts)
                file.part(f"best_{lacking}", _ITEM, best_tree(best_key[order]))
            countries = self._markets(file)
            file.part("gone", _ITEM, bits_of(gone))
            self._shown(file)
            file.part("notes", _BYTES, np.frombuffer(notes, np.uint8))
            file.end({"version": TYPEAHEAD_VERSION, "shops": self._count, "countries": countries})

    def _numbers(self) -> "array[int]":
        """The number of each shop by the place at which it came: its place in the order of ranks (M1)."""
        numbers = array("i", bytes(4 * self._count))
        for number, (place,) in enumerate(self._rows("SELECT place FROM shops ORDER BY rank")):
            numbers[place] = number
        return numbers

    def _texts(self, file: PartsFile, numbers: "array[int]") -> "tuple[array[int], array[int], Numbers, Numbers]":
        """Write the texts themselves. Returns their postings, and the best one of each text by either mark."""
        offsets, heads, postings, firsts = array("i", [0]), array("i", [0]), array("i"), array("q")
        best = {LEADING: array("i"), KEY: array("i")}
        keys: list[tuple[int, str]] = []
        file.begin("letters", _ITEM)
        for text, found in self._grouped():
            own = sorted(numbers[place] << POSTING_BITS | marks for place, marks in found)
            postings.extend(own)
            heads.append(len(postings))
            for mark, bests in best.items():
                bests.append(next((posting for posting in own if posting & mark), NOBODY))
            file.write(text.encode("utf-32-le"))
            firsts.append(first_characters(text))
            offsets.append(offsets[-1] + len(text))
            # What is compared with it may be longer by one.
            if best[KEY][-1] != NOBODY and len(text) >= ONE_TYPO_MIN:
                keys.append((len(offsets) - 2, text))
            if len(keys) >= _ROWS:
                self._db.executemany("INSERT INTO keys VALUES (?, ?)", keys)
                keys.clear()
        self._db.executemany("INSERT INTO keys VALUES (?, ?)", keys)
        file.part("offsets", _ITEM, offsets)
        file.part("firsts", _LONG, firsts)
        return heads, postings, np.array(best[LEADING], np.int32), np.array(best[KEY], np.int32)

    def _grouped(self) -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """The texts in order, each with the places and marks of its shops."""
        before: str | None = None
        found: list[tuple[int, int]] = []
        for text, place, marks in self._rows("SELECT text, place, marks FROM evidence ORDER BY text"):
            if text != before:
                if before is not None:
                    yield before, found
                before, found = text, []
            found.append((place, marks))
        if before is not None:
            yield before, found

    def _without(self, lacking: int) -> "tuple[array[int], array[int]]":
        """The numbers of the keys in the order of what is left of them without the character at a place.

        Returns:
            the numbers, and what the first characters of that are.
        """
        rows = self._rows(
            "SELECT number, substr(text, 1, ?) || substr(text, ? + 2) AS rest FROM keys ORDER BY rest, number",
            lacking,
            lacking,
        )
        order, firsts = array("i"), array("q")
        for number, rest in rows:
            order.append(number)
            firsts.append(first_characters(rest))
        return order, firsts

    def _markets(self, file: PartsFile) -> list[str]:
        """Write which filters each shop passes, and where it is known to sell. Returns the countries in order."""
        named: set[str] = set()
        for (markets,) in self._rows("SELECT DISTINCT markets FROM shops"):
            named.update(markets.split())
        # The first one stands for all that no shop names.
        countries = ["", *sorted(named - {ANY_MARKET, WORLDWIDE})]
        places = {country: place for place, country in enumerate(countries)}
        everywhere = {"markets": {ANY_MARKET}, "known": {WORLDWIDE}}
        packed: dict[str, list[Numbers]] = {name: [] for name in everywhere}
        rows = self._rows("SELECT markets FROM shops ORDER BY rank")
        while some := list(islice(rows, _SHOPS)):
            for name, codes in everywhere.items():
                passing = np.zeros((len(countries), -(-len(some) // WORD_SIZE) * WORD_SIZE), np.bool_)
                for number, (markets,) in enumerate(some):
                    for code in markets.split():
                        if code in places:
                            passing[places[code], number] = True
                        elif code in codes:
                            passing[:, number] = True
                packed[name].append(np.packbits(passing, axis=1, bitorder="little").view(_ITEM))
        for name, words in packed.items():
            file.part(name, _ITEM, np.concatenate(words, axis=1) if words else words)
        return countries

    def _shown(self, file: PartsFile) -> None:
        ends, ids = array("q", [0]), []
        file.begin("shown", _BYTES)
        for shop_id, shown in self._rows("SELECT id, shown FROM shops ORDER BY rank"):
            file.write(shown)
            ends.append(ends[-1] + len(shown))
            ids.append(shop_id)
        file.part("shown_ends", _LONG, ends)
        names = np.array(ids, dtype="S")
        order = np.argsort(names)
        file.part("ids", names.dtype.str, names[order])
        file.part("numbers", _ITEM, order)

    def _rows(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with closing(self._db.cursor()) as cursor:
            yield from cursor.execute(statement, values)


def _begun(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    try:
        # Nobody needs it after a crash.
        db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; {_TABLES}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def write_texts(path: Path, shops: Iterable[Findable], gone: Collection[int] = (), notes: bytes = b"") -> None:
    """Write a file of some shops. Arguments and errors as in `TextsBuild.write`."""
    with TextsBuild(path) as build:
        for shop in shops:
            build.add(shop)
        build.write(gone, notes)
