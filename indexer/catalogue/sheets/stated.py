"""What an operator states of a sheet: by options, and by a mapping file, which saves them for the next import.

A mapping file has a table for each kind. Its `columns` are those of the SQL source's mapping file: field = "column".
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from indexer.catalogue.sheets.cells import plain
from indexer.catalogue.sheets.columns import FIELDS, Columns, position_of
from indexer.records.problems import CatalogueError
from indexer.records.shop import StrictModel, reasons

_MAX_BYTES: Final = 64 * 1024
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_Names = Annotated[dict[str, str], Field(default_factory=dict)]


@dataclass(frozen=True, slots=True)
class Stated:
    """What is stated of a sheet.

    Attributes:
        columns: `COLUMN=FIELD` each.
        values: `COLUMN:VALUE=VISIBILITY` each.
        ignored: the columns that are left out.
        constants: by field, the cell of rows that have none.
        dates: the order of days and months in columns that do not settle it, as in `dates.ORDERS`.
        by_name: whether shops may be named by their names.
    """

    columns: Sequence[str] = ()
    values: Sequence[str] = ()
    ignored: Sequence[str] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    dates: str | None = None
    by_name: bool = False


class _Saved(StrictModel):
    """The table of a kind in a mapping file; `values` has the visibility of each value of its column."""

    columns: _Names
    ignore: Annotated[tuple[str, ...], Field(strict=False)] = ()
    set: _Names
    values: _Names
    dates: Literal["dmy", "mdy", "ymd"] | None = None
    by_name: bool = False


def constants_of(pairs: Sequence[str], kind: str, **others: str | None) -> Mapping[str, str]:
    """The constants of `FIELD=VALUE` each, and of `others`; CatalogueError if one has another form or can't be read."""
    constants = {name: text for name, text in others.items() if text is not None and name in FIELDS[kind]}
    for pair in pairs:
        name, _, text = (part.strip() for part in pair.partition("="))
        if name not in FIELDS[kind] or not text:
            raise CatalogueError(
                f"--set {pair!r} is wrong: it must be FIELD=VALUE, with a field ({', '.join(FIELDS[kind])}) and a value"
            )
        constants[name] = text
    return constants


def read_mapping(path: Path, kind: str, options: Stated, header: Sequence[str]) -> Stated:
    """What a mapping file states of a kind, where the options state nothing else.

    Raises CatalogueError if the file can't be read, is wrong, or has no table of the kind.
    """
    tables = _tables(path)
    if kind not in tables:
        raise CatalogueError(f"{path} has no table [{kind}]: --save-mapping writes one")
    try:
        saved = TypeAdapter(_Saved).validate_python(tables[kind])
    except ValidationError as error:
        wrong = "; ".join(f"{kind}.{name} {reason}" for name, reason in reasons(error))
        raise CatalogueError(f"{path}: {wrong}") from None
    if unknown := [name for name in (*saved.columns, *saved.set) if name not in FIELDS[kind]]:
        raise CatalogueError(f"{path}: {', '.join(map(repr, unknown))} is no field ({', '.join(FIELDS[kind])})")
    split = [pair.rpartition("=") for pair in options.columns]
    fields = {name for _, _, name in split}
    settled = {plain(column) for column, _, _ in split} | {plain(column) for column in options.ignored}
    columns = [
        f"{column}={name}"
        for name, column in saved.columns.items()
        if name not in fields and plain(column) not in settled
    ]
    status = saved.columns.get("visibility", "")
    has_status = f"{status}=visibility" in columns
    # A column that a later export lacks needs not be left out.
    known = {plain(name) for name in header}
    ignored = [column for column in saved.ignore if plain(column) in known and plain(column) not in settled]
    return Stated(
        columns=(*columns, *options.columns),
        values=options.values or [f"{status}:{value}={shown}" for value, shown in saved.values.items() if has_status],
        ignored=(*ignored, *options.ignored),
        constants={**saved.set, **options.constants},
        dates=options.dates or saved.dates,
        by_name=options.by_name or saved.by_name,
    )


def save_mapping(path: Path, columns: Columns, stated: Stated, values: Mapping[str, str]) -> None:
    """Write the mapping of an import as the table of its kind; tables of other kinds stay. CatalogueError if not."""
    tables = _tables(path) if path.exists() else {}
    left_out = [columns.header[at] for at in sorted(columns.settled - set(columns.positions.values()))]
    table: dict[str, Any] = {
        "ignore": [name for name in dict.fromkeys(left_out) if name],
        "dates": stated.dates,
        "by_name": stated.by_name,
        "columns": {
            name: columns.header[at]
            for name, at in columns.positions.items()
            if columns.header[at] and position_of(columns.header[at], columns.header) == at
        },
        "set": dict(stated.constants),
        "values": dict(values),
    }
    tables[columns.kind] = {key: said for key, said in table.items() if said}
    try:
        path.write_text("\n".join(_as_toml(kind, table) for kind, table in tables.items()), encoding="utf-8")
    except OSError as error:
        raise CatalogueError(f"{path} cannot be written: {error.strerror}") from error


def _tables(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
        tables = tomllib.loads(content.decode("utf-8")) if len(content) <= _MAX_BYTES else {"": None}
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogueError(f"{path} is no mapping file (TOML): {error}") from error
    if unknown := [kind for kind, table in tables.items() if kind not in FIELDS or not isinstance(table, dict)]:
        raise CatalogueError(f"{path} is no mapping file: {unknown[0]!r} is none of {', '.join(FIELDS)}")
    return tables


def _as_toml(kind: str, table: Mapping[str, Any]) -> str:
    """A table with its sub-tables; texts of TOML are written as in JSON."""
    lines = [f"[{kind}]", *(f"{key} = {_text(said)}" for key, said in table.items() if not isinstance(said, dict))]
    for key, said in table.items():
        if isinstance(said, dict):
            entries = (
                f"{name if _BARE.fullmatch(name) else _text(name)} = {_text(text)}" for name, text in said.items()
            )
            lines += ["", f"[{kind}.{key}]", *entries]
    return "\n".join([*lines, ""])


def _text(said: object) -> str:
    return json.dumps(said, ensure_ascii=False).replace("\x7f", "\\u007f")
