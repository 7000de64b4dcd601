"""The tables of a catalogue in an operator's database, and the statements that select from them (G3).

A row is converted to the object of an NDJSON line, and validated by the same model. A mapping file holds names only,
never SQL (docs/sql-source.md); whatever does not fit is reported by name before a row is read.

The changes of a table are followed by one column, read as one ascending integer for each row. A position holds only
such numbers and no keys, as it may be published where keys of hidden shops must not be (V1).
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Self, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    DateTime,
    FromClause,
    Select,
    Text,
    and_,
    cast,
    column,
    func,
    inspect,
    or_,
    select,
    table,
    types,
)
from sqlalchemy.dialects.postgresql import DOMAIN

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from index_mappings.values import microseconds
from indexer.records.faults import FieldFault, RefusedRecordError
from indexer.records.problems import CatalogueError
from indexer.records.related import KEYS, RECORDS
from indexer.records.shop import Record, StrictModel, validated
from indexer.sources.lines import MAX_LINE
from indexer.sources.protocol import Change

OVERLAP_VERSIONS: Final = 1_000
OVERLAP_SECONDS: Final = 60
_MAX_BYTES: Final = 64 * 1024

_NAME = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
_KEYS: Final = "table, columns, version, deleted, overlap"
_REASONS: Final = {
    "extra_forbidden": f"is not known: a type has {_KEYS}",
    "string_type": "must be a name in quotation marks",
    "string_too_short": "must not be empty",
    "string_too_long": "is longer than a name may be",
    "string_pattern_mismatch": "is no name",
    "int_type": "must be a whole number",
    "greater_than_equal": "must not be negative",
    "less_than_equal": "is too large",
    "model_type": "must be a table of TOML, such as [shops]",
    "dict_type": "must be a table of TOML, such as [shops.columns]",
}
_SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Times outside are ignored (databases know infinity): one of them would hide all later changes.
_EARLIEST: Final = datetime(1000, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
_Types = Mapping[str, types.TypeEngine[Any]]
# A time as databases write it: without a time zone, or in UTC, which was requested.
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(?:\+00)?")


class TableMapping(StrictModel):
    """The table and columns that hold the records of one type.

    `table` may have its schema before a dot; without it, the type is the name. `columns` are those of fields whose
    column has another name. `version` grows with every change of the table, by which changes are followed; `deleted`
    marks the record of a row as deleted: true, or a time. Rows are read again that are `overlap` below the highest
    version: versions, or seconds of a time, by default OVERLAP_VERSIONS or OVERLAP_SECONDS.
    """

    table: Annotated[_NAME, Field(pattern=r"^[^.\x00-\x1f\x7f]+(\.[^.\x00-\x1f\x7f]+)?$")] | None = None
    columns: dict[str, _NAME] = Field(default_factory=dict)
    version: _NAME | None = None
    deleted: _NAME | None = None
    overlap: Annotated[int, Field(ge=0, le=2**53)] | None = None

    @model_validator(mode="after")
    def _has_version_for_overlap(self) -> Self:
        if self.overlap is not None and self.version is None:
            raise ValueError("has an overlap but no version column to follow")
        return self


_DEFAULTS: Final = {kind: TableMapping() for kind in RECORDS}
_FILE: Final = TypeAdapter(dict[str, TableMapping])


def load_mapping(path: Path) -> Mapping[str, TableMapping]:
    """The types that a mapping file names; exactly these are read. CatalogueError names the problem in the file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise CatalogueError(f"{path} is longer than {_MAX_BYTES} bytes: that is no mapping file")
    try:
        stated = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise CatalogueError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{path} is no valid TOML: {error}") from error
    if not (faults := _unknown_types(stated)):
        try:
            mapping = _FILE.validate_python(stated)
        except ValidationError as error:
            faults = _faults(error)
        else:
            faults = [
                f"{kind}.columns.{field!a} is no field of {kind} ({', '.join(RECORDS[kind].model_fields)})"
                for kind, table in mapping.items()
                for field in table.columns
                if field not in RECORDS[kind].model_fields
            ]
            if not faults:
                return {kind: mapping[kind] for kind in RECORDS if kind in mapping}
    raise CatalogueError(f"{path}: {'; '.join(faults)}")


def _unknown_types(stated: Mapping[str, object]) -> list[str]:
    faults = [f"{kind!a} is no known type ({', '.join(RECORDS)})" for kind in stated if kind not in RECORDS]
    return faults if "shops" in stated else [*faults, "[shops] is missing: every catalogue has shops"]


def _faults(error: ValidationError) -> list[str]:
    faults = []
    for detail in error.errors(include_url=False, include_input=False):
        key = ".".join(str(part) if str(part).isidentifier() else ascii(part) for part in detail["loc"])
        if detail["type"] == "value_error":
            faults.append(f"{key} {detail['ctx']['error']}")
        else:
            faults.append(f"{key} {_REASONS.get(detail['type'], 'has the wrong form')}")
    return faults


class ValueForm(Enum):
    """The kind of value that a field takes."""

    TEXT = "a text"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    TIMESTAMP = "a time"
    STRUCTURE = "a list or an object"
    TEXT_OR_LIST = "a text or a list"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column that holds a field; a JSON column is selected as text."""

    name: str
    field: str
    form: ValueForm
    holds_json: bool
    holds_time: bool

    def read(self, value: object) -> object:
        """The JSON-like value of a field, None if it is absent; RefusedRecordError if it has to be JSON and is not."""
        if isinstance(value, str):
            return self._from_text(value)
        if value is None or isinstance(value, (list, dict)):
            return value
        if isinstance(value, Decimal):
            value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
        if self.form is ValueForm.BOOLEAN and value in (0, 1):
            return bool(value)
        if isinstance(value, datetime) and value.tzinfo is None:
            value = value.replace(tzinfo=UTC)
        if isinstance(value, date):
            return value.isoformat()
        if self.form in (ValueForm.TEXT, ValueForm.TEXT_OR_LIST) and type(value) in (int, UUID):
            return str(value)
        return value

    def _from_text(self, text: str) -> object:
        is_list = self.form is ValueForm.TEXT_OR_LIST and text.lstrip().startswith("[")
        if self.holds_json or self.form is ValueForm.STRUCTURE or is_list:
            try:
                return strict_loads(text.encode("utf-8", "surrogateescape"))
            except NotStrictJsonError as error:
                raise RefusedRecordError((self.field, str(error))) from None
        if self.holds_time and self.form is ValueForm.TIMESTAMP and (time := _TIME.fullmatch(text)):
            return f"{time[1]}T{time[2]}Z"
        return text


def form_of(model: type[Record], field: str) -> ValueForm:
    """The kind of value that a field of a model takes, by its annotation."""
    leaves = _leaves(model.model_fields[field].annotation)
    structures: set[type] = {tuple, dict, BaseModel}
    is_structure = bool(leaves & structures)
    if is_structure:
        return ValueForm.TEXT_OR_LIST if str in leaves else ValueForm.STRUCTURE
    if datetime in leaves:
        return ValueForm.TIMESTAMP
    if bool in leaves:
        return ValueForm.BOOLEAN
    return ValueForm.NUMBER if leaves & {int, float} else ValueForm.TEXT


def _leaves(annotation: Any) -> set[type]:  # noqa: ANN401 - any annotation
    origin = get_origin(annotation)
    if origin in {tuple, dict}:
        return {origin}
    if isinstance(annotation, type):
        return {BaseModel if issubclass(annotation, BaseModel) else annotation}
    return {leaf for part in get_args(annotation) for leaf in _leaves(part)}


@dataclass(frozen=True, slots=True)
class VersionColumn:
    """The column that orders the changes of a table, by integers or by times.

    `by` names table and column. A row that is not `usable` has no valid version and can't be followed; `overlap` is how
    far below the newest version rows are read again, in versions or microseconds. `comparable` is the form in which the
    database compares a time; None for integers.
    """

    by: str
    expression: ColumnElement[Any]
    usable: ColumnElement[bool]
    overlap: int
    comparable: Callable[[datetime], object] | None = None

    def bound(self, number: int) -> object:
        """The value of a number for comparisons in the database."""
        if self.comparable is None:
            return number
        inside = min(max(number, microseconds(_EARLIEST)), microseconds(_LATEST))
        return self.comparable(_EPOCH + timedelta(microseconds=inside))

    def number(self, value: Any) -> int:  # noqa: ANN401 - an integer, a time, or a time as text
        """The number of a value that the database selected."""
        if self.comparable is None:
            return int(value)
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        return microseconds(time if time.tzinfo else time.replace(tzinfo=UTC))

    def floor(self, top: int) -> int:
        """The first version of the next pass, when `top` was the newest: the overlap below it.

        A time in the future counts as now, so that one wrong clock does not hide later changes.
        """
        newest = top if self.comparable is None else min(top, microseconds(datetime.now(UTC)))
        return newest - self.overlap


def version_column(kind: str, stated: TableMapping, found: _Types, dialect: str) -> VersionColumn | None:
    """The column that the mapping names; without one, `updated_at` if it is a time, else None.

    An integer is followed only if the mapping names it: it may count the changes of each record, not of the table.
    Raises CatalogueError if the named column is neither an integer nor a time.
    """
    name = stated.version or stated.columns.get("updated_at", "updated_at")
    by, of = f"{stated.table or kind}.{name}", found.get(name)
    if isinstance(of, types.DateTime) or (dialect == "sqlite" and isinstance(of, types.String)):
        overlap = (OVERLAP_SECONDS if stated.overlap is None else stated.overlap) * _SECOND
        time, comparable = _time_column(name, of, dialect)
        within = time.between(comparable(_EARLIEST), comparable(_LATEST))
        return VersionColumn(by, time, within, overlap, comparable)
    if stated.version is None:
        return None
    is_whole = isinstance(of, types.Integer) or (isinstance(of, types.Numeric) and not of.scale)
    if not is_whole or isinstance(of, types.Float):
        raise CatalogueError(
            f"the version column {name} of the catalogue's database is neither a whole number nor a time"
        )
    number: ColumnElement[Any] = column(name, BigInteger())
    # SQLite stores texts in columns of numbers, and sorts them after all numbers.
    usable = func.typeof(number) == "integer" if dialect == "sqlite" else number.is_not(None)
    return VersionColumn(by, number, usable, OVERLAP_VERSIONS if stated.overlap is None else stated.overlap)


def _time_column(
    name: str, of: types.TypeEngine[Any], dialect: str
) -> tuple[ColumnElement[Any], Callable[[datetime], object]]:
    if dialect == "sqlite":
        # It stores times as texts of several formats, which sort when they are converted to one (UTC, milliseconds).
        text = func.strftime("%Y-%m-%dT%H:%M:%f", column(name), type_=Text())
        return text, lambda time: time.replace(tzinfo=None).isoformat(timespec="milliseconds")
    zoned = bool(getattr(of, "timezone", False))
    return column(name, DateTime(timezone=zoned)), lambda time: time if zoned else time.replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table that holds the records of a type; it is followed if it has a version column.

    A row has `columns` first, in this order, and may be longer. `deleted` is the index in it of the mark of deletion;
    None if there is none. The other indexes are those of the key's columns, and of a record's version and time.
    """

    kind: str
    name: str
    columns: tuple[TableColumn, ...]
    deleted: int | None
    version: VersionColumn | None
    selected: tuple[ColumnElement[Any], ...]
    key_indexes: tuple[int, ...]
    version_indexes: tuple[int, ...]
    source: FromClause
    lenient: bool

    @property
    def keys(self) -> tuple[ColumnElement[Any], ...]:
        """The columns of the key; NULL in one of an optional field counts as an empty text, as NULL has no order."""
        fields = RECORDS[self.kind].model_fields
        return tuple(
            column(part.name) if fields[part.field].is_required() else func.coalesce(cast(column(part.name), Text), "")
            for part in (self.columns[index] for index in self.key_indexes)
        )

    def change(self, row: Sequence[Any], location: str) -> Change:
        """The change that a row states; RefusedRecordError if it is not valid.

        Of a deleted record only key and version are read, whatever its other columns hold.
        """
        if self.is_deleted(row):
            model = KEYS[self.kind]
            deleted = validated(model, self._values(row, frozenset(model.model_fields)), lenient=self.lenient)
            return Change(self.kind, deleted.key, deleted.order, None, location)
        record = self.record(row)
        return Change(self.kind, record.key, record.order, record, location)

    def is_deleted(self, row: Sequence[Any]) -> bool:
        """Whether the row marks its record as deleted; RefusedRecordError if the mark is neither true nor false."""
        if self.deleted is None or row[self.deleted] is None:
            return False
        stated = row[self.deleted]
        if isinstance(stated, (int, Decimal)):
            return stated != 0
        raise RefusedRecordError((None, "the column of deletions holds neither true nor false"))

    def record(self, row: Sequence[Any]) -> Record:
        """The row's record; RefusedRecordError if it is not valid."""
        return validated(RECORDS[self.kind], self._values(row), lenient=self.lenient)

    def raw(self, row: Sequence[Any]) -> str:
        """The row as JSON, which is as private as the row."""
        fields = (column.field for column in self.columns)
        return json.dumps(dict(zip(fields, row, strict=False)), default=str)

    def readable(self, row: Sequence[Any]) -> dict[str, object]:
        """The fields of a row that can be read, and the cells of the others as they are."""
        values: dict[str, object] = {}
        for stated, cell in zip(self.columns, row, strict=False):
            values[stated.field] = cell
            with suppress(RefusedRecordError):
                values[stated.field] = stated.read(cell)
        return values

    def _values(self, row: Sequence[Any], only: frozenset[str] | None = None) -> dict[str, object]:
        if sum(len(part) for part in row if isinstance(part, str)) > MAX_LINE:
            raise RefusedRecordError((None, f"the row is longer than {MAX_LINE} characters"))
        faults: list[FieldFault] = []
        values: dict[str, object] = {}
        for stated, cell in zip(self.columns, row, strict=False):
            if only is None or stated.field in only:
                try:
                    values[stated.field] = stated.read(cell)
                except RefusedRecordError as error:
                    faults.extend(error.faults)
        if faults:
            raise RefusedRecordError(*faults)
        return {field: value for field, value in values.items() if value is not None}  # NULL is an absent field

    def count(self) -> Select[Any]:
        """Selects the number of rows."""
        return select(func.count()).select_from(self.source)

    def rows(self) -> Select[Any]:
        """Selects all rows, always in the same order."""
        return select(*self.selected).select_from(self.source).order_by(*self.keys)

    def newest(self, version: VersionColumn) -> Select[Any]:
        """Selects the highest version."""
        return select(func.max(version.expression)).select_from(self.source).where(version.usable)

    def page(
        self, version: VersionColumn, low: int | None, top: int, after: Sequence[Any] | None, limit: int
    ) -> Select[Any]:
        """Selects rows by version, from `low` (None for all) to `top`, and key, with the version as the last column.

        `after` is the selected version and key of the row before the page; None for the first page.
        """
        order = (version.expression, *self.keys)
        conditions = [
            version.usable,
            *(key.is_not(None) for key in self.keys),
            version.expression <= version.bound(top),
        ]
        if after is not None:
            # The first condition follows from the second; it lets the database use an index.
            conditions += [version.expression >= after[0], _is_after(order, after)]
        elif low is not None:
            conditions.append(version.expression >= version.bound(low))
        rows = select(*self.selected, version.expression).select_from(self.source)
        return rows.where(*conditions).order_by(*order).limit(limit)


def _is_after(order: Sequence[ColumnElement[Any]], after: Sequence[Any]) -> ColumnElement[bool]:
    """Whether a row comes after another one; written out, as not every database compares tuples."""
    first, *rest = order
    later: ColumnElement[bool] = first > after[0]
    return or_(later, and_(first == after[0], _is_after(rest, after[1:]))) if rest else later


def read_tables(
    connection: Connection, mapping: Mapping[str, TableMapping] | None, *, lenient: bool
) -> dict[str, SqlTable]:
    """The tables of a catalogue by type, shops first.

    Of the default names, without a mapping, only `shops` must exist. CatalogueError lists all faults.
    """
    inspector = inspect(connection)
    tables: dict[str, SqlTable] = {}
    faults: list[str] = []
    for kind, stated in (_DEFAULTS if mapping is None else mapping).items():
        name = stated.table or kind
        schema, _, bare = name.rpartition(".")
        if inspector.has_table(bare, schema=schema or None):
            types_of = {entry["name"]: entry["type"] for entry in inspector.get_columns(bare, schema or None)}
            found = {field: of.data_type if isinstance(of, DOMAIN) else of for field, of in types_of.items()}
            faults += [f"table {name} {fault}" for fault in _misfits(kind, stated, found, lenient=lenient)]
            if not faults:
                source = table(bare, schema=schema or None)
                tables[kind] = _table(kind, stated, found, source, connection.dialect.name, lenient=lenient)
        elif mapping is not None or kind == "shops":
            faults.append(f"there is no table {name}")
    if faults:
        raise CatalogueError(f"the catalogue's database does not fit: {'; '.join(faults)}")
    return tables


def _names(kind: str, stated: TableMapping, found: _Types) -> dict[str, str]:
    """The column of each field. The version column holds `updated_at` or `version`, by its type."""
    names = {field: stated.columns.get(field, field) for field in RECORDS[kind].model_fields}
    if stated.version is not None and stated.version not in names.values():
        is_time = isinstance(found.get(stated.version), (types.DateTime, types.String))
        names["updated_at" if is_time else "version"] = stated.version
    return names


def _misfits(kind: str, stated: TableMapping, found: _Types, *, lenient: bool) -> list[str]:
    names = _names(kind, stated, found)
    named = {*stated.columns.values(), *(name for name in (stated.version, stated.deleted) if name)}
    faults = [f"has no column {name}" for name in sorted(named - found.keys())]
    faults += [
        f"has no column for {field}"
        for field, details in RECORDS[kind].model_fields.items()
        if details.is_required() and names[field] not in found and names[field] not in named
    ]
    unknown = found.keys() - names.values() - named
    if unknown and not lenient:
        faults.append(f"has columns that are no fields ({', '.join(sorted(unknown))}): map them, or use --lenient")
    numbers = (types.Boolean, types.Integer, types.Numeric)
    mark = None if stated.deleted is None else found.get(stated.deleted)
    if mark is not None and not isinstance(mark, (*numbers, types.Date, types.DateTime)):
        faults.append(f"has a column {stated.deleted} of another type than a boolean, a number or a time")
    return faults


def _table(
    kind: str, stated: TableMapping, found: _Types, source: FromClause, dialect: str, *, lenient: bool
) -> SqlTable:
    columns = tuple(
        TableColumn(
            name,
            field,
            form_of(RECORDS[kind], field),
            isinstance(found[name], types.JSON),
            isinstance(found[name], types.DateTime),
        )
        for field, name in _names(kind, stated, found).items()
        if name in found
    )
    selected = [_selected(field, found[field.name], dialect) for field in columns]
    if stated.deleted is not None:
        is_time = isinstance(found[stated.deleted], (types.Date, types.DateTime))
        mark: ColumnElement[Any] = column(stated.deleted)
        selected.append(mark.is_not(None) if is_time else mark)
    indexes = {field.field: index for index, field in enumerate(columns)}
    return SqlTable(
        kind=kind,
        name=stated.table or kind,
        columns=columns,
        deleted=None if stated.deleted is None else len(columns),
        version=version_column(kind, stated, found, dialect),
        selected=tuple(selected),
        key_indexes=tuple(indexes[field] for field in RECORDS[kind].key_fields if field in indexes),
        version_indexes=tuple(indexes[field] for field in ("version", "updated_at") if field in indexes),
        source=source,
        lenient=lenient,
    )


def _selected(field: TableColumn, kind: types.TypeEngine[Any], dialect: str) -> ColumnElement[Any]:
    """The column without a type, so that values are those of the driver; on PostgreSQL some types as text.

    Its driver parses JSON less strictly, fails on times outside the calendar, and knows no arrays of users' types.
    """
    plain: ColumnElement[Any] = column(field.name)
    if dialect != "postgresql":
        return plain
    # The label must not be a column's name: PostgreSQL would sort by the selected expression, not by the column.
    label = f"{field.field} as text"
    if isinstance(kind, (types.JSON, types.DateTime, types.Date)):
        return cast(plain, Text()).label(label)
    if isinstance(kind, types.ARRAY) and field.form in (ValueForm.STRUCTURE, ValueForm.TEXT_OR_LIST):
        return cast(plain, ARRAY(Text())).label(label)
    return plain
