"""Following a SQL catalogue on real databases: each change is delivered, however late it was committed."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import BigInteger, Boolean, DateTime, Table, Text, insert, text, update

from indexer.records.problems import ProblemLog
from indexer.records.shop import UPDATED_AT, VERSION, Order, Record
from indexer.sources.protocol import Change, ChangeBatch
from indexer.sources.sql.catalogue import SqlCatalogue, SqlChanges
from indexer.sources.sql.tables import TableMapping
from tests.support.sql_databases import FIELDS, Database, shop_row

START = datetime(2021, 5, 6, 7, 8, 9, tzinfo=UTC)


def _shops(source: SqlCatalogue) -> list[Record]:
    log = ProblemLog()
    shops = [record for _, record in source.records("shops", log, lambda _: None)]
    assert log.listed == []
    return shops


@dataclass(frozen=True, slots=True)
class Followed:
    """A table of shops with a version column, as whole numbers or as times; a step is one version or one second."""

    database: Database
    shops: Table
    mapping: Mapping[str, TableMapping]
    kind: int

    def stamp(self, step: int) -> object:
        timestamp = START + timedelta(seconds=step)
        if self.kind == VERSION:
            return step
        return timestamp if self.database.is_postgres else timestamp.replace(tzinfo=None)

    def order(self, step: int) -> Order:
        if self.kind == VERSION:
            return Order(VERSION, step)
        timestamp = START + timedelta(seconds=step) - datetime(1970, 1, 1, tzinfo=UTC)
        return Order(UPDATED_AT, timestamp // timedelta(microseconds=1))

    def put(self, *shops: tuple[int, int], **more: object) -> None:
        rows = [shop_row(number, stamp=self.stamp(step), **more) for number, step in shops]
        self.database.run(insert(self.shops).values(rows))

    def change(self, number: int, step: int, **more: object) -> None:
        found = self.shops.c.id == f"s{number:05}"
        self.database.run(update(self.shops).where(found).values(stamp=self.stamp(step), **more))

    def catalogue(self) -> SqlCatalogue:
        return SqlCatalogue(self.database.url, self.mapping)


@pytest.fixture(params=[VERSION, UPDATED_AT], ids=["versions", "times"])
def followed(request: pytest.FixtureRequest, database: Database) -> Followed:
    """A table whose changes of the last 10 steps are read again."""
    kind = BigInteger() if request.param == VERSION else DateTime(timezone=True)
    table = database.table("shops", {**FIELDS, "stamp": kind, "gone": Boolean()})
    mapping = {"shops": TableMapping(version="stamp", deleted="gone", overlap=10)}
    return Followed(database, table, mapping, request.param)


@pytest.fixture
def follow(followed: Followed) -> Iterator[Callable[[], SqlChanges]]:
    made: list[SqlChanges] = []

    def make() -> SqlChanges:
        changes = followed.catalogue().changes()
        assert changes is not None
        made.append(changes)
        return changes

    yield make
    for changes in made:
        changes.close()


def _numbers(batch: ChangeBatch) -> list[int]:
    assert batch.refused == ()
    return [int(change.key[1:]) for change in batch.changes]


def _drained(changes: SqlChanges, position: str | None, most: int = 100) -> tuple[list[int], str | None]:
    batch = changes.read(position, most)
    numbers = _numbers(batch)
    while batch.more:
        batch = changes.read(batch.position, most)
        numbers += _numbers(batch)
    return numbers, batch.position


@pytest.mark.rule("G3")
def test_a_change_has_type_key_order_and_record_and_a_deleted_row_has_none(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put((1, 5))
    followed.put((2, 7), gone=True)
    followed.change(2, 7, name=None, domain=None, categories=None, visibility=None)
    changes = follow()
    batch = changes.read(None, 10)
    (record,) = _shops(followed.catalogue())
    assert batch.changes == (
        Change("shops", "s00001", followed.order(5), record, "shops, changed row 1 of this run"),
        Change("shops", "s00002", followed.order(7), None, "shops, changed row 2 of this run"),
    )
    assert (batch.refused, batch.more, changes.ended) == ((), False, False)


@pytest.mark.rule("G3", "F12")
def test_rows_without_the_optional_part_of_their_key_are_read_and_followed_once_across_pages(
    database: Database,
) -> None:
    fields = ("shop_id", "kind", "country", "as_stated", "source", "checked_at")
    table = database.table("policies", {**{field: Text() for field in fields}, "version": BigInteger()})
    database.table("shops", FIELDS)
    stated = ("buyer_protection", "as agreed", "test", "2031-05-06T07:08:09Z")
    rows = [
        dict(zip((*fields, "version"), (shop, stated[0], country, *stated[1:], 5), strict=True))
        for shop in ("a", "b")
        for country in ("DE", None, "AT")
    ]
    database.run(insert(table).values(rows))
    keys = [f"{shop}/buyer_protection{country}" for shop in ("a", "b") for country in ("", "/AT", "/DE")]
    catalogue = SqlCatalogue(database.url, {"shops": TableMapping(), "policies": TableMapping(version="version")})
    read = [record.key for _, record in catalogue.records("policies", ProblemLog(), lambda _: None)]
    changes = catalogue.changes()
    assert changes is not None
    batch = changes.read(None, 1)
    followed = [change.key for change in batch.changes]
    while batch.more:
        batch = changes.read(batch.position, 1)
        followed += [change.key for change in batch.changes]
    changes.close()
    assert (read, followed) == (keys, keys)


@pytest.mark.rule("G3")
def test_rows_of_one_version_are_all_delivered_once_across_pages(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put(*((number, 3) for number in range(25)))
    changes = follow()
    first = changes.read(None, 10)
    second = changes.read(first.position, 10)
    third = changes.read(second.position, 10)
    assert [_numbers(batch) for batch in (first, second, third)] == [
        list(range(10)), list(range(10, 20)), list(range(20, 25)),
    ]  # fmt: skip
    assert [batch.more for batch in (first, second, third)] == [True, True, False]
    assert len({first.position, second.position, third.position}) == 3
    idle = changes.read(third.position, 10)
    assert (idle.changes, idle.more, idle.position) == ((), False, third.position)


@pytest.mark.rule("G3")
def test_a_smaller_version_that_comes_later_is_delivered(followed: Followed, follow: Callable[[], SqlChanges]) -> None:
    followed.put((1, 100), (2, 120))
    changes = follow()
    numbers, position = _drained(changes, None)
    assert numbers == [1, 2]
    followed.put((3, 111))
    numbers, position = _drained(changes, position)
    assert numbers == [3]
    followed.put((4, 130), (5, 119))
    numbers, position = _drained(changes, position)
    assert numbers == [5, 4]
    followed.put((6, 121))
    assert _drained(changes, position)[0] == [6]


@pytest.mark.rule("G3")
def test_a_transaction_that_commits_late_is_seen_though_its_version_is_smaller(postgres_database: Database) -> None:
    shops = postgres_database.table("shops", {**FIELDS, "stamp": BigInteger()})
    changes = SqlCatalogue(postgres_database.url, {"shops": TableMapping(version="stamp")}).changes()
    assert changes is not None
    with postgres_database.engine.connect() as late:
        late.execute(insert(shops).values(shop_row(1, stamp=1)))
        postgres_database.run(insert(shops).values(shop_row(2, stamp=2)))
        numbers, position = _drained(changes, None)
        assert numbers == [2]
        late.commit()
    assert _drained(changes, position)[0] == [1]
    changes.close()


@pytest.mark.rule("G3")
def test_rows_that_are_written_while_a_pass_runs_neither_prolong_it_nor_get_lost(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put(*((number, 50 + number) for number in range(30)))
    changes = follow()
    batch = changes.read(None, 5)
    read = _numbers(batch)
    added = 100
    while batch.more:
        followed.put((added, added))
        # Written before the newest of the pass's beginning, committed behind the position of the pass.
        followed.put((added + 100, 70))
        added += 1
        batch = changes.read(batch.position, 5)
        read += _numbers(batch)
    assert sorted(number for number in read if number < 100) == list(range(30))
    assert added < 120
    rest, _ = _drained(changes, batch.position, 5)
    expected = [*range(30), *range(100, added), *range(200, 100 + added)]
    assert sorted([*read, *rest]) == expected


@pytest.mark.rule("G3")
def test_a_position_outlives_a_restart_within_a_pass_and_after_it(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put(*((number, 100 + number) for number in range(40)))
    first = follow().read(None, 25)
    assert _numbers(first) == list(range(25))
    # The last version again: what follows it within the same version is only known to the process that read it.
    rest, position = _drained(follow(), first.position, 5)
    assert rest == list(range(24, 40))
    followed.change(3, 200)
    again, _ = _drained(follow(), position)
    assert again == [*range(29, 40), 3]


@pytest.mark.rule("G3")
def test_a_batch_whose_position_does_not_come_back_is_delivered_again(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put(*((number, 3) for number in range(9)))
    changes = follow()
    first = changes.read(None, 3)
    lost = changes.read(first.position, 3)
    assert _numbers(lost) == [3, 4, 5]
    assert {3, 4, 5, 6, 7, 8} <= set(_drained(changes, first.position, 3)[0])


@pytest.mark.rule("G3")
def test_from_the_position_of_a_reading_no_change_is_missed(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put(*((number, 100 + number) for number in range(30)))
    source = followed.catalogue()
    with source.reading() as position:
        followed.change(4, 140)
        followed.put((31, 125))
        read = [record.model_dump()["id"] for record in _shops(source)]
    assert read == [f"s{number:05}" for number in range(30)]
    assert _drained(follow(), position)[0] == [19, 20, 21, 22, 23, 24, 25, 31, 26, 27, 28, 29, 4]


@pytest.mark.rule("V1.silent")
def test_bad_rows_are_refused_without_their_values_and_no_position_holds_a_key(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put((1, 5), (2, 5), (3, 5))
    followed.change(2, 5, name="zqcanaryzq\u202e", visibility="under_review")
    batch = follow().read(None, 2)
    assert [change.key for change in batch.changes] == ["s00001"]
    (refused,) = batch.refused
    assert (refused.location, refused.reasons) == (
        "shops, changed row 2 of this run",
        (
            "name holds a bidirectional override or isolate",
            "its visibility is not public, so its shop is hidden all the same",
        ),
    )
    assert json.loads(refused.raw)["name"] == "zqcanaryzq\u202e"
    assert batch.more
    assert "s0000" not in str(batch.position)
    assert "zqcanaryzq" not in str(batch.position)


@pytest.mark.rule("G3")
def test_a_position_of_another_column_or_of_nothing_known_is_the_beginning(
    followed: Followed, follow: Callable[[], SqlChanges]
) -> None:
    followed.put((1, 100), (2, 200))
    other = '{"number":4,"tables":{"shops":{"by":"shops.other","low":1999999999999999}}}'
    for position in (None, "", "no JSON", '{"tables": 3}', other):
        assert _drained(follow(), position)[0] == [1, 2]


@pytest.mark.rule("G3")
def test_versions_that_are_none_hide_nothing(followed: Followed, follow: Callable[[], SqlChanges]) -> None:
    followed.put((1, 5), (2, 6))
    far = followed.database.is_postgres and followed.kind == UPDATED_AT
    stamps = ["'infinity'", "NULL"] if far else ["NULL"] if followed.database.is_postgres else ["'zqcanaryzq'", "NULL"]
    for number, stamp in enumerate(stamps, 10):
        row = {field: value for field, value in shop_row(number).items() if field != "categories"}
        marks = ", ".join(f":{field}" for field in row)
        insertion = f"INSERT INTO shops ({', '.join(row)}, stamp) VALUES ({marks}, {stamp})"  # noqa: S608 - of this file
        followed.database.run(text(insertion).bindparams(**row))
    changes = follow()
    numbers, position = _drained(changes, None)
    assert numbers == [1, 2]
    followed.put((3, 7))
    assert _drained(changes, position)[0] == [3]


@pytest.mark.rule("G3")
def test_a_time_far_ahead_hides_no_later_change(database: Database) -> None:
    shops = database.table("shops", {**FIELDS, "updated_at": DateTime(timezone=True)})
    now = datetime.now(UTC).replace(tzinfo=UTC if database.is_postgres else None)
    database.run(insert(shops).values(shop_row(1, updated_at=now + timedelta(days=3_650))))
    changes = SqlCatalogue(database.url).changes()
    assert changes is not None
    numbers, position = _drained(changes, None)
    assert numbers == [1]
    database.run(insert(shops).values(shop_row(2, updated_at=now)))
    assert _drained(changes, position)[0] == [2]
    changes.close()


def test_a_version_of_single_records_is_not_followed_unasked(database: Database) -> None:
    database.table("shops", {**FIELDS, "version": BigInteger()})
    assert SqlCatalogue(database.url).changes() is None
