"""The mapping file: which tables and columns of an operator's database hold which records.

Without one, tables and columns are named like types and fields. It holds names only, never SQL: for an expression or a
condition, the operator creates a view (docs/sql-source.md).
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from indexer.records.problems import CatalogueError
from indexer.records.related import RECORDS
from indexer.records.shop import StrictModel

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


class TableMapping(StrictModel):
    """The table and columns that hold the records of one type.

    Attributes:
        table: the name of a table or view, with its schema before a dot if it has one; None for the type's name.
        columns: the columns of the fields whose column has another name.
        version: the column that grows with every change of the table, by which changes are followed.
        deleted: the column that marks the record of a row as deleted: true, or a time.
        overlap: how far below the highest version rows are read again: versions, or seconds of a time. None for
            OVERLAP_VERSIONS or OVERLAP_SECONDS.
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


_FILE: Final = TypeAdapter(dict[str, TableMapping])


def load_mapping(path: Path) -> Mapping[str, TableMapping]:
    """The types that a mapping file names; exactly these are read.

    Raises:
        CatalogueError: it can't be read, is not TOML, or has unknown keys; the message names the key.
    """
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
    if faults := _unknown_types(stated):
        raise CatalogueError(f"{path}: {'; '.join(faults)}")
    try:
        mapping = _FILE.validate_python(stated)
    except ValidationError as error:
        raise CatalogueError(f"{path}: {'; '.join(_faults(error))}") from None
    if faults := _unknown_fields(mapping):
        raise CatalogueError(f"{path}: {'; '.join(faults)}")
    return {kind: mapping[kind] for kind in RECORDS if kind in mapping}


def _unknown_types(stated: Mapping[str, object]) -> list[str]:
    faults = [f"{kind!a} is no known type ({', '.join(RECORDS)})" for kind in stated if kind not in RECORDS]
    return faults if "shops" in stated else [*faults, "[shops] is missing: every catalogue has shops"]


def _unknown_fields(mapping: Mapping[str, TableMapping]) -> list[str]:
    return [
        f"{kind}.columns.{field!a} is no field of {kind} ({', '.join(RECORDS[kind].model_fields)})"
        for kind, table in mapping.items()
        for field in table.columns
        if field not in RECORDS[kind].model_fields
    ]


def _faults(error: ValidationError) -> list[str]:
    faults = []
    for detail in error.errors(include_url=False, include_input=False):
        key = ".".join(str(part) if str(part).isidentifier() else ascii(part) for part in detail["loc"])
        if detail["type"] == "value_error":
            faults.append(f"{key} {detail['ctx']['error']}")
        else:
            faults.append(f"{key} {_REASONS.get(detail['type'], 'has the wrong form')}")
    return faults
