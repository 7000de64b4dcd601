"""A bad record that hides its shop hides it all the same: in NDJSON, in SQL, and in changes (V1)."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from indexer.jobs.build import BuildOptions, BuildSummary, build
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import Source
from indexer.sources.sql.catalogue import SqlCatalogue
from indexer.sources.sql.tables import load_mapping
from tests.support.catalogues import shop
from tests.support.memory_sink import MemorySink

NAME: Final = "zqcanaryzq"
SHOWN: Final = shop("Lamp", "lamp.example", id="lamp")
OTHER: Final = shop("Book", "book.example", id="book")


def hidden(**fields: object) -> dict[str, Any]:
    return {**shop(NAME, "lamp.example", id="lamp", visibility="under_review"), **fields}


def line(**fields: object) -> bytes:
    return json.dumps(hidden(**fields)).encode()


def built(source: Source) -> tuple[set[str], BuildSummary]:
    sink = MemorySink()
    options = BuildOptions(skip_invalid=True, allow_shrink=True)
    summary = build(source, sink, options=options)
    return {document.id for document in sink.documents["shops"]}, summary


BAD: Final[Mapping[str, bytes]] = {
    "a country": line(countries=["Narnia"]),
    "no categories": line(categories=[]),
    "a blank name": line(name=" "),
    "an unknown field": line(colour=NAME),
    "an unknown visibility": line(visibility="blocked"),
    "removed, and no domain": line(visibility="removed", domain="nowhere"),
    "a version that is none": line(version="seven"),
    "space around the id": line(id=" lamp "),
    "no id, the same domain": line(id=None, domain="https://www.LAMP.example/"),
    "an id that is none": line(id="la mp"),
    "a key twice": line()[:-1] + b', "name": "again"}',
    "NaN": line(popularity=float("nan")),
    "no end": line()[:-1],
    "no UTF-8": line().replace(NAME.encode(), b"\xff"),
    "too long": b'{"visibility": "removed", "id": "lamp", "aliases": ["' + b"x" * 1_100_000 + b'"]}',
}


@pytest.mark.rule("V1", "V1.silent")
@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("first", [True, False])
def test_a_bad_line_that_hides_a_shop_hides_it(
    tmp_path: Path, bad: bytes, capsys: pytest.CaptureFixture[str], *, first: bool
) -> None:
    lines = [json.dumps(one).encode() for one in (SHOWN, OTHER)]
    lines.insert(0 if first else 2, bad)
    (tmp_path / "shops.ndjson").write_bytes(b"\n".join(lines))
    shown, summary = built(NdjsonCatalogue(tmp_path))
    assert shown == {"book"}
    notes = [note for note in summary.notes if "its shop is hidden" in note]
    assert [note.partition(": ")[0] for note in notes] == ["shops.ndjson:1" if first else "shops.ndjson:3"]
    assert NAME not in f"{summary}{capsys.readouterr()}"


@pytest.mark.rule("V1")
@pytest.mark.parametrize(
    "other",
    [
        line(visibility="public", countries=["Narnia"]),
        line(id="other", countries=["Narnia"]),
        line(id=None, domain="lamp.example.org"),
        line(visibility=None),
        b'{"id": "lamp", "name": "under_review"',
    ],
)
def test_any_other_bad_line_hides_no_shop(tmp_path: Path, other: bytes) -> None:
    (tmp_path / "shops.ndjson").write_bytes(b"\n".join([json.dumps(SHOWN).encode(), other]))
    shown, summary = built(NdjsonCatalogue(tmp_path))
    assert (shown, summary.notes) == ({"lamp"}, ())


@pytest.mark.rule("V1", "G3")
@pytest.mark.parametrize(
    ("version", "stated", "shown"), [(2, 3, set()), (2, 2, set()), (2, 1, {"lamp"}), (2, "x", set()), (2, None, set())]
)
def test_a_newer_record_shows_a_shop_that_an_older_bad_one_hid(
    tmp_path: Path, version: int, stated: object, shown: set[str]
) -> None:
    of = {"version": stated} if stated is not None else {"updated_at": "2026-01-01T00:00:00Z"}
    # The last one is valid, but for the kind of its version.
    bad = line(**of) if stated is None else line(countries=["Narnia"], **of)
    good = [json.dumps({**one, "version": version}).encode() for one in (OTHER, SHOWN)]
    for lines in ([*good, bad], [good[0], bad, good[1]]):
        (tmp_path / "shops.ndjson").write_bytes(b"\n".join(lines))
        assert built(NdjsonCatalogue(tmp_path))[0] - {"book"} == shown


@pytest.mark.rule("V1")
def test_a_bad_row_of_a_table_that_hides_a_shop_hides_it(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shops.sqlite")) as database:
        database.execute("CREATE TABLE shops (id, name, domain, categories, countries, visibility)")
        category = json.dumps(SHOWN["categories"])
        database.executemany(
            "INSERT INTO shops VALUES (?, ?, ?, ?, ?, ?)",
            [
                ("lamp", "Lamp", "lamp.example", category, None, "public"),
                ("lamp", NAME, "lamp.example", category, '["Narnia"]', "removed"),
                ("toys", NAME, None, "not JSON", None, "under_review"),
                ("toys", "Toys", "toys.example", category, None, "public"),
                ("book", "Book", "book.example", category, None, "public"),
            ],
        )
        database.commit()
    mapping = tmp_path / "mapping.toml"
    mapping.write_text("[shops]\n")
    shown, summary = built(SqlCatalogue(f"sqlite:///{tmp_path / 'shops.sqlite'}", load_mapping(mapping)))
    assert shown == {"book"}
    assert len([note for note in summary.notes if "its shop is hidden" in note]) == 2


UPSERT: Final[dict[str, Any]] = {"op": "upsert", "type": "shops"}


@pytest.mark.rule("V1", "G3")
@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({**UPSERT, "record": hidden(countries=["Narnia"], version=5)}, set()),
        ({**UPSERT, "version": 5, "record": hidden(colour="red")}, set()),
        ({**UPSERT, "record": hidden(countries=["Narnia"])}, set()),
        ({**UPSERT, "record": hidden(version="x")}, set()),
        ({**UPSERT, "record": hidden(id=None, version=5)}, set()),
        ({**UPSERT, "record": hidden(countries=["Narnia"], version=1)}, {"lamp"}),
        ({**UPSERT, "record": {**hidden(countries=["Narnia"], version=5), "visibility": "public"}}, {"lamp"}),
        ({**UPSERT, "type": "offers", "record": hidden(version=5)}, {"lamp"}),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_a_bad_change_that_hides_a_shop_hides_it(
    tmp_path: Path, change: Mapping[str, Any], shown: set[str], *, cut: bool
) -> None:
    text = json.dumps(change)
    lines: Sequence[Mapping[str, Any]] = [{**SHOWN, "version": 2}, {**OTHER, "version": 1}]
    (tmp_path / "shops.ndjson").write_text("\n".join(map(json.dumps, lines)))
    # A line that is cut has no order that can be trusted, and hides.
    (tmp_path / "changes.ndjson").write_text(f"{text[:-1] if cut else text}\n")
    found, summary = built(NdjsonCatalogue(tmp_path))
    is_older = change["record"].get("version") == 1
    assert found - {"book"} == (set() if cut and is_older else shown)
    assert summary.changes.refused == 1
    assert ("its shop is hidden" in summary.changes.first_refused) == (found == {"book"} or is_older)
    assert NAME not in summary.changes.first_refused
