"""What the embedded engine is told of the indices: columns derived from the document classes.

The stored part of a document travels as one blob of JSON; text columns hold raw terms (X4).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import POINTER_FILE, RETIRED_FILE, STAMP_FILE, is_generation
from index_mappings.operations import OPERATIONS_FILE
from index_mappings.roles import Form, engine_fields

STORED_COLUMN: Final = "stored"


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be looked up or sorted by.

    Attributes:
        name: the field's name.
        whole: whether it holds whole numbers; otherwise raw terms.
        sortable: whether hits can be ordered by it; such a column has one value a document.
    """

    name: str
    whole: bool
    sortable: bool


def columns(kind: str) -> tuple[Column, ...]:
    """The columns of one index kind, in order; STORED_COLUMN comes on top of them."""
    return tuple(
        Column(field.name, whole=field.form is Form.WHOLE, sortable=field.sortable)
        for field in engine_fields(DOCUMENTS[kind])
        if field.indexed or field.sortable
    )


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
