"""The SQL catalogue on real databases: the records and the indices of NDJSON, read as of one time."""

import json
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    DateTime,
    Numeric,
    Text,
    delete,
    event,
    insert,
    make_url,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

from index_mappings.documents import DOCUMENTS
from indexer.jobs.build import BuildOptions, build
from indexer.jobs.following import Following, FollowOptions
from indexer.jobs.update import ChangeCounts
from indexer.progress import Advance
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.records.related import RECORDS
from indexer.records.shop import Record
from indexer.sinks.embedded.sink import EmbeddedSink
from indexer.sinks.protocol import Sink, scan
from indexer.sources.ndjson import NdjsonCatalogue
from indexer.sources.protocol import ChangeSource, NumberedRecord, Source
from indexer.sources.sql.catalogue import ROWS_PER_PAGE, SqlCatalogue, SqlChanges
from indexer.sources.sql.tables import TableMapping, load_mapping
from indexer.state.state import States
from tests.engines.conftest import Engine
from tests.support.sql_databases import CUT_OFF, FIELDS, Database, shop_row

SAMPLE = Path(__file__).parents[3] / "indexer" / "sample"
LISTS = {"countries", "aliases", "checkout_hosts", "blocked_channels", "blocked_countries", "destinations", "excluded",
         "methods", "network_hosts"}  # fmt: skip
OBJECTS = {"categories", "discount", "min_order", "price", "delivery_time", "free_shipping_threshold", "value", "names",
           "synonyms"}  # fmt: skip
TIMES = {"updated_at", "checked_at", "last_verified_at", "observed_at", "resets_at"}
NUMBERS = {"popularity", "days", "used", "limit"}
MAPPING = """
[shops]
version = "version"
[coupons]
[offers]
[shipping]
[policies]
[trust]
[affiliate_programs]
[redirects]
[resource_accounts]
[categories]
"""


def _column(field: str, *, is_postgres: bool) -> TypeEngine[Any]:
    if field in LISTS:
        return ARRAY(Text()) if is_postgres else Text()
    if field in OBJECTS:
        return JSONB() if is_postgres else Text()
    if field in TIMES:
        return DateTime(timezone=True) if is_postgres else Text()
    if field in NUMBERS:
        return Numeric() if is_postgres else Numeric(asdecimal=False)
    if field == "destinations_exhaustive":
        return Boolean()
    return BigInteger() if field == "version" else Text()


def _value(field: str, value: Any, *, is_postgres: bool) -> object:  # noqa: ANN401 - JSON values
    if value is None:
        return None
    if not is_postgres:
        is_json = isinstance(value, (list, dict))
        return json.dumps(value, ensure_ascii=False) if is_json else value
    if field in TIMES:
        return datetime.fromisoformat(value)
    return Decimal(str(value)) if field in NUMBERS else value


def load(database: Database, catalogue: Path) -> None:
    for kind, model in RECORDS.items():
        lines = [json.loads(line) for line in (catalogue / f"{kind}.ndjson").read_text().splitlines()]
        stated = [field for field in model.model_fields if any(field in line for line in lines)]
        made = database.table(kind, {field: _column(field, is_postgres=database.is_postgres) for field in stated})
        rows = [
            {field: _value(field, line.get(field), is_postgres=database.is_postgres) for field in stated}
            for line in lines
        ]
        with database.engine.begin() as connection:
            if kind == "trust" and database.is_postgres:
                # What JSON null would say in a column of JSON, NULL says in an operator's table.
                made.c.value.type = JSONB(none_as_null=True)
            connection.execute(insert(made), rows)


def _all(source: SqlCatalogue | NdjsonCatalogue, kind: str) -> tuple[list[Record], list[str]]:
    log = ProblemLog()
    read: list[Record] = [record for _, record in source.records(kind, log, lambda _: None)]
    return read, [str(problem) for problem in log.listed]


def test_everything_is_read_as_of_the_begin_of_the_reading(database: Database) -> None:
    shops = database.table("shops", FIELDS)
    coupons = database.table(
        "coupons", {"id": Text(), "shop_id": Text(), "code": Text(), "verification_status": Text()}
    )
    rows = [shop_row(number) for number in range(3 * ROWS_PER_PAGE)]
    coupon = {"id": "c1", "shop_id": "s00001", "code": "TEN", "verification_status": "unverified"}
    database.run(insert(shops).values(rows), insert(coupons).values(coupon))
    source = SqlCatalogue(database.url)
    with source.reading():
        reading = source.records("shops", ProblemLog(), lambda _: None)
        _, first = next(reading)
        database.run(
            update(shops).values(name="Changed"),
            delete(shops).where(shops.c.id > "s00100"),
            insert(shops).values(shop_row(99_999)),
            delete(coupons),
        )
        names = [first.model_dump()["name"], *(record.model_dump()["name"] for _, record in reading)]
        assert names == [f"Shop {number}" for number in range(3 * ROWS_PER_PAGE)]
        assert (source.size("shops"), source.size("coupons"), len(_all(source, "coupons")[0])) == (1_500, 1, 1)
    assert (source.size("shops"), source.size("coupons"), len(_all(source, "shops")[0])) == (102, 0, 102)


def test_postgresql_keeps_the_rows_until_they_are_asked_for(postgres_database: Database) -> None:
    shops = postgres_database.table("shops", FIELDS)
    postgres_database.run(insert(shops).values([shop_row(number) for number in range(4 * ROWS_PER_PAGE)]))
    source = SqlCatalogue(postgres_database.url)
    with source.reading():
        gone_through: list[int] = []
        reading = source.records("shops", ProblemLog(), gone_through.append)
        next(reading)
        with source._connection("shops") as connection:
            cursors = connection.execute(text("SELECT statement FROM pg_cursors WHERE NOT is_holdable")).scalars().all()
            # The cursor itself says where it stands: the server has given out no more than one page.
            (name,) = connection.execute(text("SELECT name FROM pg_cursors")).scalars().all()
            left = connection.exec_driver_sql(f'MOVE FORWARD ALL IN "{name}"').rowcount
        assert sum(gone_through) == 1
        assert len(cursors) == 1
        assert left >= 3 * ROWS_PER_PAGE
        reading.close()


def test_an_error_of_the_database_is_reported_without_its_text(postgres_database: Database) -> None:
    shops = postgres_database.table("shops", FIELDS)
    source = SqlCatalogue(postgres_database.url)
    shops.drop(postgres_database.engine)
    with pytest.raises(CatalogueError) as gone, source.reading():
        pass
    assert str(gone.value) == "the table shops cannot be read: a table is gone (SQLSTATE 42P01)"
    url = make_url(postgres_database.url).set(database="nosuch", password="zqsecretzq")
    with pytest.raises(CatalogueError) as unknown:
        SqlCatalogue(url.render_as_string(hide_password=False))
    assert (
        str(unknown.value) == "the catalogue's database cannot be reached: there is no such database, or no such user"
    )


@pytest.mark.fast
@pytest.mark.rule("V1.silent")
def test_what_only_postgresql_can_hold_is_a_problem_of_its_row_alone(postgres_database: Database) -> None:
    postgres_database.run(
        text("CREATE TYPE sight AS ENUM ('public', 'under_review')"),
        text("CREATE DOMAIN labels AS jsonb"),
        text(
            "CREATE TABLE shops (id uuid, name varchar(50), domain text, categories labels, countries char(2)[], "
            "popularity numeric, visibility sight, source json, updated_at timestamp)"
        ),
        text(
            "INSERT INTO shops SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, 'Shop ' || n, "
            "'s' || n || '.internal', '[{\"slug\": \"a\", \"name\": \"A\"}]', '{DE,AT}', n / 4.0, 'public', "
            "'\"feed\"', '2031-05-06 07:08:09.5' FROM generate_series(1, 4) n"
        ),
        text("UPDATE shops SET updated_at = 'infinity' WHERE name = 'Shop 2'"),
        text("UPDATE shops SET popularity = 'NaN' WHERE name = 'Shop 3'"),
        text("UPDATE shops SET source = '{\"zqcanaryzq\": 1, \"zqcanaryzq\": 2}' WHERE name = 'Shop 4'"),
    )
    ((shop,), problems) = _all(SqlCatalogue(postgres_database.url), "shops")
    assert shop.model_dump(exclude_defaults=True) == {
        "updated_at": datetime(2031, 5, 6, 7, 8, 9, 500_000, tzinfo=UTC),
        "id": "00000000-0000-0000-0000-000000000001",
        "name": "Shop 1",
        "domain": "s1.internal",
        "categories": ({"slug": "a", "name": "A"},),
        "countries": ("DE", "AT"),
        "popularity": 0.25,
        "visibility": "public",
        "source": "feed",
    }
    assert problems == [
        "shops:2: updated_at must be a date and time as in RFC 3339",
        "shops:3: popularity must be a finite number",
        "shops:4: source has the same key twice in one object",
    ]


def _held(sink: Sink) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    live = sink.live()
    assert live is not None
    editor = sink.edit(live.generation)
    return {kind: list(scan(editor, kind)) for kind in DOCUMENTS}


def _built(source: Source, sink: Sink, states: States) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    summary = build(source, sink, states, BuildOptions(allow_shrink=True, fresh_state=True))
    held = _held(sink)
    assert {kind: len(documents) for kind, documents in held.items()} == summary.stamp.counts
    assert all(summary.stamp.counts.values())
    return held


def _followed(changes: ChangeSource | None, sink: Sink, states: States) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    assert changes is not None
    summary = Following(sink, states, changes, FollowOptions(once=True)).run(threading.Event())
    assert summary.changes.applied == 2
    changes.close()
    return _held(sink)


@pytest.mark.rule("G1", "G3")
def test_the_same_catalogue_through_sql_and_ndjson_gives_identical_indices(
    database: Database, engine: Engine, tmp_path: Path
) -> None:
    load(database, SAMPLE)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(MAPPING, encoding="utf-8")
    folder = tmp_path / "catalogue"
    folder.mkdir()
    for file in SAMPLE.glob("*.ndjson"):
        (folder / file.name).write_bytes(file.read_bytes())
    rows = SqlCatalogue(database.url, load_mapping(mapping))
    states = States(tmp_path / "state", "the test's")
    shops = [json.loads(line) for line in (SAMPLE / "shops.ndjson").read_text().splitlines()]
    shown = [line for line in shops if line["visibility"] == "public"]
    renamed, hidden = shown[0], shown[1]
    newer = max(line.get("version") or 0 for line in shops) + 1

    from_rows = _built(rows, engine.sink, states)
    statement = "UPDATE shops SET name = 'Renamed', version = :version WHERE id = :id"
    hide = "UPDATE shops SET visibility = 'removed', version = :version WHERE id = :id"
    database.run(
        text(statement).bindparams(version=newer, id=renamed["id"]),
        text(hide).bindparams(version=newer + 1, id=hidden["id"]),
    )
    changed_rows = _followed(rows.changes(), engine.sink, states)

    assert _built(NdjsonCatalogue(folder), engine.sink, states) == from_rows
    records = ({**renamed, "name": "Renamed"}, {**hidden, "visibility": "removed"})
    with (folder / "changes.ndjson").open("w", encoding="utf-8") as lines:
        for number, record in enumerate(records):
            record.pop("version", None)
            record.pop("updated_at", None)
            change = {"op": "upsert", "type": "shops", "record": record, "version": newer + number}
            lines.write(f"{json.dumps(change)}\n")
    changed_lines = _followed(NdjsonCatalogue(folder).changes(), engine.sink, states)
    assert changed_lines == changed_rows != from_rows


class _CutOff(SqlCatalogue):
    """A catalogue whose transaction the server ends before it counts or while it reads the rows of a table."""

    def __init__(self, database: Database, kind: str, *, within: bool) -> None:
        super().__init__(database.url, {kind: TableMapping() for kind in ("shops", "coupons")})
        self._database, self._kind, self._within = database, kind, within

    def size(self, kind: str) -> int:
        if kind == self._kind and not self._within:
            self._database.run(CUT_OFF)
        return super().size(kind)

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Generator[NumberedRecord, None, None]:
        for number, record in enumerate(super().records(kind, problems, advance)):
            if kind == self._kind and self._within and number == 0:
                self._database.run(CUT_OFF)
            yield record


@pytest.mark.rule("G1", "G3")
@pytest.mark.parametrize(("kind", "within"), [("coupons", False), ("shops", True)], ids=["between", "within"])
def test_a_build_whose_transaction_is_ended_publishes_nothing_and_the_next_one_all(
    postgres_database: Database, tmp_path: Path, kind: str, *, within: bool
) -> None:
    shops = postgres_database.table("shops", FIELDS)
    coupons = postgres_database.table(
        "coupons", {name: Text() for name in ("id", "shop_id", "code", "verification_status")}
    )
    rows = range(2 * ROWS_PER_PAGE + 1)
    postgres_database.run(
        insert(shops).values([shop_row(number) for number in rows]),
        insert(coupons).values(
            [{"id": f"c{at}", "shop_id": f"s{at:05}", "code": "A", "verification_status": "unverified"} for at in rows]
        ),
    )
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    live = build(SqlCatalogue(postgres_database.url), sink, states).stamp
    assert (live.counts["shops"], live.counts["coupons"]) == (len(rows), len(rows))
    with pytest.raises(CatalogueError, match=rf"^the table {kind} cannot be read: the server ended the connection"):
        build(_CutOff(postgres_database, kind, within=within), sink, states)
    assert (sink.live(), [path.stem for path in states.directory.glob("*.sqlite")]) == (live, [live.generation])
    assert build(SqlCatalogue(postgres_database.url), sink, states).stamp.counts == live.counts


@pytest.mark.rule("G3")
def test_a_follower_whose_transaction_is_ended_tries_again_and_loses_no_change(
    postgres_database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shops = postgres_database.table("shops", {**FIELDS, "version": BigInteger()})
    postgres_database.run(insert(shops).values([shop_row(number, version=number) for number in range(3)]))
    source = SqlCatalogue(postgres_database.url, {"shops": TableMapping(version="version")})
    sink = EmbeddedSink(tmp_path / "index")
    states = States(tmp_path / "state", sink.location)
    build(source, sink, states)
    postgres_database.run(insert(shops).values([shop_row(number, version=number) for number in range(3, 40)]))
    changes = source.changes()
    assert isinstance(changes, SqlChanges)
    cuts = list[str]()

    def cut_off(_connection: Any, _cursor: Any, statement: str, *_others: object) -> None:  # noqa: ANN401 - SQLAlchemy
        if "FROM shops" in statement and len(cuts) < 3:
            cuts.append(statement)
            postgres_database.run(CUT_OFF)

    event.listen(changes._engine, "before_cursor_execute", cut_off)
    stop = threading.Event()

    def stop_at_the_end(_: ChangeCounts) -> None:
        if sink.edit(build_of(sink)).count("shops") == 40:
            stop.set()

    options = FollowOptions(interval=0.01, micro_batch=10)
    summary = Following(sink, states, changes, options, on_batch=stop_at_the_end).run(stop)
    changes.close()
    assert (len(cuts), summary.failures, summary.changes.applied) == (3, 3, 37)
    assert all("the server ended the connection (SQLSTATE 57P01)" in message for message in caplog.messages)


def build_of(sink: Sink) -> str:
    live = sink.live()
    assert live is not None
    return live.generation
