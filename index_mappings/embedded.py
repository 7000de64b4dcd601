"""What the embedded engine is told of the indices: columns derived from the document classes.

The stored part of a document travels as one blob of JSON; text columns hold raw terms (X4).
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import POINTER_FILE, RETIRED_FILE, STAMP_FILE, is_generation
from index_mappings.operations import OPERATIONS_FILE
from index_mappings.parts import rows_of_runs, short_beginnings, short_field, short_parts
from index_mappings.roles import Form, Role, engine_fields, fields_with

STORED_COLUMN: Final = "stored"
# A whole number by which hits are ordered much faster than by their rank: a lower band is a better rank, always. Which
# of one band comes first, the rank itself says, which is stored as well.
BAND_COLUMN: Final = "band"
ANCHORS_FILE: Final = "anchors.json"
# What one value of a column lies behind another one of the same document, as phrase queries count.
RUN_STEP: Final = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be looked up or sorted by.

    Attributes:
        name: the field's name.
        whole: whether it holds whole numbers; otherwise raw terms.
        sortable: whether hits can be ordered by it; such a column has one value a document.
        ordered: whether it holds the order of a document's terms as well.
    """

    name: str
    whole: bool = False
    sortable: bool = False
    ordered: bool = False


@cache
def columns(kind: str) -> tuple[Column, ...]:
    """The columns of one kind's documents, in order; STORED_COLUMN comes on top of them."""
    document = DOCUMENTS[kind]
    parted = fields_with(document, Role.INFIX)
    return (
        *(
            Column(field.name, field.form is Form.WHOLE, field.sortable)
            for field in engine_fields(document)
            if field.indexed or field.sortable
        ),
        *(Column(short_field(name)) for name in (*fields_with(document, Role.PREFIX), *parted)),
        *(Column(runs_field(name), ordered=True) for name in parted),
        Column(BAND_COLUMN, whole=True, sortable=True),
    )


def runs_field(name: str) -> str:
    """Where the runs of characters of an INFIX field are (`index_mappings.parts`)."""
    return f"{name}_runs"


def column_values(kind: str, document: object) -> dict[str, Any]:
    """What the columns of a document hold, all but the band."""
    values: dict[str, Any] = {}
    own, prefixed, parted = _plan(kind)
    for name in own:
        value = getattr(document, name)
        values[name] = list(value) if isinstance(value, tuple) else value
    for name, short in prefixed:
        values[short] = short_beginnings(values[name])
    for name, short, row in parted:
        texts = getattr(document, name)
        values[short] = short_parts(texts)
        values[row] = rows_of_runs(texts)
    return values


@cache
def _plan(kind: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[tuple[str, str, str], ...]]:
    """The columns by what becomes of a field: worked out once a kind, as a build asks it of every document."""
    document = DOCUMENTS[kind]
    own = tuple(field.name for field in engine_fields(document) if field.indexed or field.sortable)
    prefixed = tuple((name, short_field(name)) for name in fields_with(document, Role.PREFIX))
    parted = tuple((name, short_field(name), runs_field(name)) for name in fields_with(document, Role.INFIX))
    return own, prefixed, parted


def anchors_path(root: Path, generation: str, kind: str) -> Path:
    """The ranks at which the bands of an index begin."""
    return index_directory(root, generation, kind) / ANCHORS_FILE


def generation_directory(root: Path, generation: str) -> Path:
    """Where a generation lies."""
    return root / "generations" / generation


def index_directory(root: Path, generation: str, kind: str) -> Path:
    """Where one index of a generation lies."""
    return generation_directory(root, generation) / kind


def stamp_path(root: Path, generation: str) -> Path:
    """The stamp of a generation."""
    return generation_directory(root, generation) / STAMP_FILE


def operations_path(root: Path, generation: str) -> Path:
    """The operations document of a generation."""
    return generation_directory(root, generation) / OPERATIONS_FILE


def pointer_path(root: Path) -> Path:
    """The file that names the live generation: the embedded engine's alias."""
    return root / POINTER_FILE


def retired_path(root: Path, generation: str) -> Path:
    """The file that says since when a generation is not live any more."""
    return generation_directory(root, generation) / RETIRED_FILE


def pointer_text(live: str, previous: str | None) -> str:
    """The pointer file's text."""
    return f"{live}\n{previous}\n" if previous else f"{live}\n"


def pointed_to(text: str) -> tuple[str, str | None]:
    """The live and the previous generation that a pointer file names.

    Raises:
        ValueError: it names none.
    """
    lines = text.splitlines()
    if not lines or not all(map(is_generation, lines)) or len(lines) > 2:  # noqa: PLR2004 - the live one and one before
        raise ValueError("names no generation")
    return lines[0], lines[1] if len(lines) > 1 else None
