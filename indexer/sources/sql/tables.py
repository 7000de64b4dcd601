"""The tables of a catalogue in the database, and the statements that select from them.

Whatever does not fit (a missing table, an unknown column) is reported by name before a row is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
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

from indexer.records.problems import CatalogueError
from indexer.records.related import RECORDS
from indexer.sources.sql.mapping import TableMapping
from indexer.sources.sql.rows import Column, Form, RowForm, form_of
from indexer.sources.sql.versions import VersionColumn, version_column

_DEFAULTS: Final = {kind: TableMapping() for kind in RECORDS}
_Types = Mapping[str, types.TypeEngine[Any]]


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table that holds the records of a type.

    Attributes:
        kind: a key of RECORDS.
        name: its name in reports.
        form: how its rows are read.
        version: the column by which its changes are followed; None if they can't be.
        selected: the selected expressions, the columns of `form` first.
        keys: the columns of its key.
        key_indexes: the indexes of the key's columns in a row.
        version_indexes: the indexes of a record's version and time in a row.
        source: the table itself.
    """

    kind: str
    name: str
    form: RowForm
    version: VersionColumn | None
    selected: tuple[ColumnElement[Any], ...]
    keys: tuple[ColumnElement[Any], ...]
    key_indexes: tuple[int, ...]
    version_indexes: tuple[int, ...]
    source: FromClause

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
        """Selects rows by version and key; the last column of a row is the version that is compared.

        Args:
            version: this table's version column.
            low: the first version; None for all.
            top: the last version.
            after: the selected version and key of the row before the page; None for the first page.
            limit: the highest number of rows.
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

    Args:
        connection: a connection to the database.
        mapping: the contents of the mapping file; None for the default names, of which only `shops` must exist.
        lenient: ignore columns that are not fields.

    Raises:
        CatalogueError: the tables do not fit; the message lists all faults.
    """
    inspector = inspect(connection)
    tables: dict[str, SqlTable] = {}
    faults: list[str] = []
    for kind, stated in (_DEFAULTS if mapping is None else mapping).items():
        name = stated.table or kind
        schema, _, bare = name.rpartition(".")
        if inspector.has_table(bare, schema=schema or None):
            found = {entry["name"]: _plain(entry["type"]) for entry in inspector.get_columns(bare, schema or None)}
            faults += [f"table {name} {fault}" for fault in _misfits(kind, stated, found, lenient=lenient)]
            if not faults:
                source = table(bare, schema=schema or None)
                tables[kind] = _table(kind, stated, found, source, connection.dialect.name, lenient=lenient)
        elif mapping is not None or kind == "shops":
            faults.append(f"there is no table {name}")
    if faults:
        raise CatalogueError(f"the catalogue's database does not fit: {'; '.join(faults)}")
    return tables


def _plain(kind: types.TypeEngine[Any]) -> types.TypeEngine[Any]:
    return kind.data_type if isinstance(kind, DOMAIN) else kind


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
        Column(
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
    form = RowForm(kind, columns, None if stated.deleted is None else len(columns), lenient)
    indexes = {field.field: index for index, field in enumerate(columns)}
    key_indexes = tuple(indexes[field] for field in RECORDS[kind].key_fields)
    return SqlTable(
        kind=kind,
        name=stated.table or kind,
        form=form,
        version=version_column(stated, found, dialect),
        selected=tuple(selected),
        keys=tuple(column(columns[index].name) for index in key_indexes),
        key_indexes=key_indexes,
        version_indexes=tuple(indexes[field] for field in ("version", "updated_at") if field in indexes),
        source=source,
    )


def _selected(field: Column, kind: types.TypeEngine[Any], dialect: str) -> ColumnElement[Any]:
    """The column without a type, so that values are those of the driver; on PostgreSQL some types as text.

    The driver parses JSON less strictly than we do, fails on times outside the calendar, and does not know arrays of
    user-defined types.
    """
    plain: ColumnElement[Any] = column(field.name)
    if dialect != "postgresql":
        return plain
    # The label must not be a column's name: PostgreSQL would sort by the selected expression, not by the column.
    label = f"{field.field} as text"
    if isinstance(kind, (types.JSON, types.DateTime, types.Date)):
        return cast(plain, Text()).label(label)
    if isinstance(kind, types.ARRAY) and field.form in (Form.STRUCTURE, Form.TEXT_OR_LIST):
        return cast(plain, ARRAY(Text())).label(label)
    return plain
