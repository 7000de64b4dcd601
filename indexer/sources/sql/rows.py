"""Converts a row of a table to the object of an NDJSON line, which is validated by the same model.

Problems are reported by field, never by value (V1).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, ValidationError

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.records.related import KEYS, RECORDS
from indexer.records.shop import Record, reasons
from indexer.sources.lines import MAX_LINE

# A time as databases write it: without a time zone, or in UTC, which was requested.
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00)?")


class RowRefusedError(Exception):
    """The row is no valid record; `reasons` are pairs of a field (None for the row as a whole) and what is wrong."""

    def __init__(self, *reasons: tuple[str | None, str]) -> None:
        super().__init__(f"{len(reasons)} reasons")
        self.reasons = reasons


class Form(Enum):
    """The kind of value that a field takes."""

    TEXT = "a text"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    TIMESTAMP = "a time"
    STRUCTURE = "a list or an object"
    TEXT_OR_LIST = "a text or a list"


@dataclass(frozen=True, slots=True)
class Column:
    """A column that holds a field; a JSON column is selected as text."""

    name: str
    field: str
    form: Form
    holds_json: bool
    holds_time: bool

    def read(self, value: object) -> object:
        """The JSON-like value of a field, None if it is absent; RowRefusedError if it has to be JSON and is not."""
        if isinstance(value, str):
            return self._from_text(value)
        if value is None or isinstance(value, (list, dict)):
            return value
        if isinstance(value, Decimal):
            value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
        if self.form is Form.BOOLEAN and value in (0, 1):
            return bool(value)
        if isinstance(value, date):
            return _iso(value)
        if self.form in (Form.TEXT, Form.TEXT_OR_LIST) and type(value) in (int, UUID):
            return str(value)
        return value

    def _from_text(self, text: str) -> object:
        is_list = self.form is Form.TEXT_OR_LIST and text.lstrip().startswith("[")
        if self.holds_json or self.form is Form.STRUCTURE or is_list:
            try:
                return strict_loads(text.encode("utf-8", "surrogateescape"))
            except NotStrictJsonError as error:
                raise RowRefusedError((self.field, str(error))) from None
        if self.holds_time and self.form is Form.TIMESTAMP and (time := _TIME.fullmatch(text)):
            return f"{time[1]}T{time[2]}Z"
        return text


def form_of(model: type[Record], field: str) -> Form:
    """The kind of value that a field of a model takes, by its annotation."""
    leaves = _leaves(model.model_fields[field].annotation)
    structures: set[type] = {tuple, dict, BaseModel}
    is_structure = bool(leaves & structures)
    if is_structure:
        return Form.TEXT_OR_LIST if str in leaves else Form.STRUCTURE
    if datetime in leaves:
        return Form.TIMESTAMP
    if bool in leaves:
        return Form.BOOLEAN
    return Form.NUMBER if leaves & {int, float} else Form.TEXT


def _leaves(annotation: Any) -> set[type]:  # noqa: ANN401 - any annotation
    origin = get_origin(annotation)
    if origin in {tuple, dict}:
        return {origin}
    if isinstance(annotation, type):
        return {BaseModel if issubclass(annotation, BaseModel) else annotation}
    return {leaf for part in get_args(annotation) for leaf in _leaves(part)}


@dataclass(frozen=True, slots=True)
class RowForm:
    """How the rows of a table are read: the columns come first, in this order, and a row may be longer.

    `deleted` is the index in the row of the mark of deletion; None if there is none.
    """

    kind: str
    columns: tuple[Column, ...]
    deleted: int | None
    lenient: bool

    def is_deleted(self, row: Sequence[Any]) -> bool:
        """Whether the row marks its record as deleted; RowRefusedError if the mark is neither true nor false."""
        if self.deleted is None or row[self.deleted] is None:
            return False
        stated = row[self.deleted]
        if isinstance(stated, (int, Decimal)):
            return stated != 0
        raise RowRefusedError((None, "the column of deletions holds neither true nor false"))

    def record(self, row: Sequence[Any]) -> Record:
        """The row's record; RowRefusedError if it is not valid."""
        return self._validated(RECORDS[self.kind], self._values(row))

    def key_record(self, row: Sequence[Any]) -> Record:
        """Key and version of a row whose record is deleted, whatever its other columns hold."""
        model = KEYS[self.kind]
        return self._validated(model, self._values(row, frozenset(model.model_fields)))

    def raw(self, row: Sequence[Any]) -> str:
        """The row as JSON, which is as private as the row."""
        fields = (column.field for column in self.columns)
        return json.dumps(dict(zip(fields, row, strict=False)), default=str)

    def _values(self, row: Sequence[Any], only: frozenset[str] | None = None) -> dict[str, object]:
        if sum(len(part) for part in row if isinstance(part, str)) > MAX_LINE:
            raise RowRefusedError((None, f"the row is longer than {MAX_LINE} characters"))
        faults: list[tuple[str | None, str]] = []
        values: dict[str, object] = {}
        for column, cell in zip(self.columns, row, strict=False):
            if only is not None and column.field not in only:
                continue
            try:
                value = column.read(cell)
            except RowRefusedError as error:
                faults.extend(error.reasons)
            else:
                # NULL is an absent field.
                if value is not None:
                    values[column.field] = value
        if faults:
            raise RowRefusedError(*faults)
        return values

    def _validated(self, model: type[Record], values: dict[str, object]) -> Record:
        try:
            return model.model_validate(values, extra="ignore" if self.lenient else None)
        except ValidationError as error:
            raise RowRefusedError(*reasons(error)) from None


def _iso(value: date) -> str:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return value.isoformat()
