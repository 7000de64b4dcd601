"""A value of a column becomes the value that a line of NDJSON would hold."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf

import pytest

from indexer.records.problems import RefusedRecordError
from indexer.records.related import RECORDS
from indexer.sources.sql.tables import Column, Form


@pytest.mark.parametrize(
    ("form", "value", "read"),
    [
        (Form.TEXT, "[a]", "[a]"),
        (Form.TEXT, 17, "17"),
        (Form.TEXT, True, True),
        (Form.NUMBER, Decimal("5.000"), 5),
        (Form.NUMBER, Decimal(9_007_199_254_740_993), 9_007_199_254_740_993),
        (Form.NUMBER, Decimal("inf"), inf),
        (Form.BOOLEAN, 1, True),
        (Form.BOOLEAN, Decimal(1), True),
        (Form.BOOLEAN, 2, 2),
        (
            Form.TIMESTAMP,
            datetime(2031, 5, 6, 7, 8, 9, tzinfo=timezone(timedelta(hours=2))),
            "2031-05-06T07:08:09+02:00",
        ),
        (Form.TIMESTAMP, datetime(2031, 5, 6, 7, 8, 9, 10), "2031-05-06T07:08:09.000010+00:00"),  # noqa: DTZ001 - of a column without zone
        (Form.TIMESTAMP, date(2031, 5, 6), "2031-05-06"),
        (Form.STRUCTURE, "null", None),
        (Form.TEXT_OR_LIST, ' ["card"]', ["card"]),
        (Form.TEXT_OR_LIST, "2015", "2015"),
    ],
)
def test_a_value_is_read_as_its_field_takes_it(form: Form, value: object, read: object) -> None:
    found = Column("c", "f", form, holds_json=False, holds_time=False).read(value)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2031-05-06 07:08:09", "2031-05-06T07:08:09Z"),
        ("2031-05-06 07:08:09.123456+00", "2031-05-06T07:08:09.123456Z"),
        ("2031-05-06T07:08:09+02:00", "2031-05-06T07:08:09+02:00"),
        ("infinity", "infinity"),
    ],
)
def test_a_column_of_times_without_a_zone_is_in_utc(text: str, read: str) -> None:
    assert Column("c", "f", Form.TIMESTAMP, holds_json=False, holds_time=True).read(text) == read
    assert Column("c", "f", Form.TIMESTAMP, holds_json=False, holds_time=False).read(text) == text


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("zqcanaryzq", "is not valid JSON"),
        ('{"a": "zqcanaryzq", "a": 1}', "has the same key twice in one object"),
        ('["zqcanaryzq\udcff"]', "is not UTF-8"),
        ('["zqcanaryzq", NaN]', "holds NaN or Infinity, which JSON does not have"),
    ],
)
def test_a_text_that_should_be_json_and_is_not_is_reported_by_field_alone(text: str, reason: str) -> None:
    with pytest.raises(RefusedRecordError) as refused:
        Column("c", "discount", Form.STRUCTURE, holds_json=False, holds_time=False).read(text)
    assert refused.value.faults == (("discount", reason),)
    assert "zqcanaryzq" not in repr(refused.value)


def test_every_type_has_a_key_of_fields_that_it_must_state() -> None:
    for model in RECORDS.values():
        assert all(model.model_fields[field].is_required() for field in model.key_fields)
