"""Columns and paths of the embedded engine's indices, derived from the document classes.

The stored part of a document is one JSON blob; text columns hold raw terms (X4).
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import DOCUMENTS, Form, Role, engine_fields, fields_with
from index_mappings.generations import OPERATIONS_FILE, POINTER_FILE, RETIRED_FILE, STAMP_FILE, is_generation
from index_mappings.ngrams import (
    IndexedFields,
    indexed_fields,
    indexed_values,
    run_row,
    runs_field,
    short_field,
)

STORED_COLUMN: Final = "stored"
# An integer by which hits are sorted much faster than by their rank. A lower band always means a better rank; within
# a band, hits are sorted by the rank, which is stored as well.
BAND_COLUMN: Final = "band"
ANCHORS_FILE: Final = "anchors.json"
# The distance of consecutive values of a document's column, in the positions that phrase queries count.
RUN_STEP: Final = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be looked up or sorted by.

    Attributes:
        name: the field's name.
        whole: whether it holds integers; otherwise raw terms.
        sortable: whether hits can be sorted by it; such a column has one value per document.
        ordered: whether it also holds the positions of a document's terms.
    """

    name: str
    whole: bool = False
    sortable: bool = False
    ordered: bool = False


@cache
def columns(kind: str) -> tuple[Column, ...]:
    """The columns of one kind's documents, in order, without STORED_COLUMN."""
    document = DOCUMENTS[kind]
    infixes = fields_with(document, Role.INFIX)
    return (
        *(
            Column(field.name, field.form is Form.WHOLE, field.sortable)
            for field in engine_fields(document)
            if field.indexed or field.sortable
        ),
        *(Column(short_field(name)) for name in (*fields_with(document, Role.PREFIX), *infixes)),
        *(Column(runs_field(name), ordered=True) for name in infixes),
        Column(BAND_COLUMN, whole=True, sortable=True),
    )


def column_values(kind: str, document: object) -> dict[str, Any]:
    """The values of a document's columns, except the band."""
    return indexed_values(document, _indexed_fields(kind), run_row)


@cache
def _indexed_fields(kind: str) -> IndexedFields:
    document = DOCUMENTS[kind]
    own = (field for field in engine_fields(document) if field.indexed or field.sortable)
    return indexed_fields(document, own, runs_field)


def anchors_path(root: Path, generation: str, kind: str) -> Path:
    """The file of the ranks at which the bands of an index begin."""
    return index_directory(root, generation, kind) / ANCHORS_FILE


def generation_directory(root: Path, generation: str) -> Path:
    """The folder of a generation."""
    return root / "generations" / generation


def index_directory(root: Path, generation: str, kind: str) -> Path:
    """The folder of one index of a generation."""
    return generation_directory(root, generation) / kind


def stamp_path(root: Path, generation: str) -> Path:
    """The file of a generation's stamp."""
    return generation_directory(root, generation) / STAMP_FILE


def operations_path(root: Path, generation: str) -> Path:
    """The file of a generation's operations document."""
    return generation_directory(root, generation) / OPERATIONS_FILE


def pointer_path(root: Path) -> Path:
    """The file that names the live generation: the embedded engine's alias."""
    return root / POINTER_FILE


def retired_path(root: Path, generation: str) -> Path:
    """The file with the time since which a generation is no longer live."""
    return generation_directory(root, generation) / RETIRED_FILE


def pointer_text(live: str, previous: str | None) -> str:
    """The pointer file's text."""
    return f"{live}\n{previous}\n" if previous else f"{live}\n"


def pointed_to(text: str) -> tuple[str, str | None]:
    """The live and the previous generation that a pointer file names; ValueError if the text is not of such a file."""
    lines = text.splitlines()
    if not lines or not all(map(is_generation, lines)) or len(lines) > 2:  # noqa: PLR2004 - the live one and one before
        raise ValueError("names no generation")
    return lines[0], lines[1] if len(lines) > 1 else None
