"""The tables of a catalogue as they are in the database, and what is selected from them.

Everything that does not fit (a missing table, an unknown column) is told by name before a row is read.
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
from indexer.sources.sql.rows import KEY_FIELDS, Column, Form, RowForm, form_of
from indexer.sources.sql.versions import VersionColumn, version_column

_DEFAULTS: Final = {kind: TableMapping() for kind in RECORDS}
_Types = Mapping[str, types.TypeEngine[Any]]


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table that holds the records of a type.

    Attributes:
        kind: a key of RECORDS.
        name: what reports call it.
        form: how its rows are read.
        version: by what its changes are followed; None when they can't be.
        selected: what is selected, the columns of `form` first.
        keys: its key's columns.
        key_places: where these are in a row.
        version_places: where a record's version and time are in a row.
        source: the table itself.
    """

    kind: str
    name: str
    form: RowForm
    version: VersionColumn | None
    selected: tuple[ColumnElement[Any], ...]
    keys: tuple[ColumnElement[Any], ...]
    key_places: tuple[int, ...]
    version_places: tuple[int, ...]
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
        self, version: VersionColumn, low: int | None, top: int, after: Sequence[Any] | None, most: int
    ) -> Select[Any]:
        """Selects rows by version and key; the last column of a row is its version as it was compared.

        Args:
            version: this table's.
            low: the first version; None for all.
            top: the last version.
            after: version and key of the row before the page, as they were selected; None for the first page.
            most: how many.
        """
        order = (version.expression, *self.keys)
        wanted = [version.usable, *(key.is_not(None) for key in self.keys), version.expression <= version.bound(top)]
        if after is not None:
            # The first clause follows from the second; it is what an index is entered by.
            wanted += [version.expression >= after[0], _beyond(order, after)]
        elif low is not None:
            wanted.append(version.expression >= version.bound(low))
        chosen = select(*self.selected, version.expression).select_from(self.source)
        return chosen.where(*wanted).order_by(*order).limit(most)


def _beyond(order: Sequence[ColumnElement[Any]], after: Sequence[Any]) -> ColumnElement[bool]:
    """Whether a row comes after another one; spelt out, as not every database compares tuples."""
    first, *rest = order
    later: ColumnElement[bool] = first > after[0]
    return or_(later, and_(first == after[0], _beyond(rest, after[1:]))) if rest else later


def read_tables(
    connection: Connection, mapping: Mapping[str, TableMapping] | None, *, lenient: bool
) -> dict[str, SqlTable]:
    """The tables of a catalogue by type, shops first.

    Args:
        connection: to the database.
        mapping: what the mapping file says; None for tables of the default names, of which only `shops` must be there.
        lenient: pass over columns that are no fields.

    Raises:
        CatalogueError: with all that does not fit.
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
    """The column of each field; the version column is the field of its own kind."""
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
    gone = None if stated.deleted is None else found.get(stated.deleted)
    if gone is not None and not isinstance(gone, (*numbers, types.Date, types.DateTime)):
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
    selected = [_selected(one, found[one.name], dialect) for one in columns]
    if stated.deleted is not None:
        is_time = isinstance(found[stated.deleted], (types.Date, types.DateTime))
        gone: ColumnElement[Any] = column(stated.deleted)
        selected.append(gone.is_not(None) if is_time else gone)
    form = RowForm(kind, columns, None if stated.deleted is None else len(columns), lenient)
    places = {one.field: place for place, one in enumerate(columns)}
    return SqlTable(
        kind=kind,
        name=stated.table or kind,
        form=form,
        version=version_column(stated, found, dialect),
        selected=tuple(selected),
        keys=tuple(column(columns[places[field]].name) for field in KEY_FIELDS[kind]),
        key_places=tuple(places[field] for field in KEY_FIELDS[kind]),
        version_places=tuple(places[field] for field in ("version", "updated_at") if field in places),
        source=source,
    )


def _selected(one: Column, kind: types.TypeEngine[Any], dialect: str) -> ColumnElement[Any]:
    """The column without a type, so that values come as the driver has them; on PostgreSQL as text where that is more.

    The driver reads JSON less strictly than we do, fails on times beyond the calendar, and does not know arrays of
    an operator's own types.
    """
    plain: ColumnElement[Any] = column(one.name)
    if dialect != "postgresql":
        return plain
    # No column's name: PostgreSQL would sort by what is selected under a name, not by the column.
    label = f"{one.field} as text"
    if isinstance(kind, (types.JSON, types.DateTime, types.Date)):
        return cast(plain, Text()).label(label)
    if isinstance(kind, types.ARRAY) and one.form in (Form.STRUCTURE, Form.TEXT_OR_LIST):
        return cast(plain, ARRAY(Text())).label(label)
    return plain
