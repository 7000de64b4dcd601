"""What the embedded engine is told of the indices: columns derived from the document classes.

The stored part of a document travels as one blob of JSON; text columns hold raw terms (X4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import POINTER_FILE, RETIRED_FILE, STAMP_FILE, is_generation
from index_mappings.operations import OPERATIONS_FILE
from index_mappings.roles import Form, edges_field, engine_fields

STORED_COLUMN: Final = "stored"
# A whole number by which hits are ordered much faster than by their rank: a lower band is a better rank, always. Which
# of one band comes first, the rank itself says, which is stored as well.
BAND_COLUMN: Final = "band"
# The best shops' shortest beginnings once more: a prefix that very many shops begin with is mostly answered by them.
HEAD_EDGE_MAX: Final = 3
ANCHORS_FILE: Final = "anchors.json"

_HEADS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"shops": ("full", "keys")})
_MISSPELT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"shops": ("keys",)})
# The shortest text that is looked for with a typing error is longer by one.
_TAIL_MIN: Final = 3


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be looked up or sorted by.

    Attributes:
        name: the field's name.
        whole: whether it holds whole numbers; otherwise raw terms.
        sortable: whether hits can be ordered by it; such a column has one value a document.
        parted: whether its terms lie apart by their first character, at `part_of`.
    """

    name: str
    whole: bool
    sortable: bool
    parted: bool = False


def columns(kind: str) -> tuple[Column, ...]:
    """The columns of a document's own values, in order; STORED_COLUMN and `placing_columns` come on top of them."""
    parted = {edges_field(name) for name in misspelt(kind)}
    return tuple(
        Column(field.name, field.form is Form.WHOLE, field.sortable, field.name in parted)
        for field in engine_fields(DOCUMENTS[kind])
        if field.indexed or field.sortable
    )


def placing_columns(kind: str) -> tuple[Column, ...]:
    """The columns that say where in the order a document stands: its band, and beginnings only if it is in the head.

    And those of beginnings without their first character.
    """
    heads = (Column(head_field(field), whole=False, sortable=False) for field in headed(kind))
    tails = (Column(tails_field(field), whole=False, sortable=False) for field in misspelt(kind))
    return (Column(BAND_COLUMN, whole=True, sortable=True), *heads, *tails)


def misspelt(kind: str) -> tuple[str, ...]:
    """The PREFIX fields of a kind that are looked into with typing errors.

    That is a walk through the dictionary of their beginnings, which is many times shorter where the first character is
    given: so these lie apart by it. An error in the first character itself needs no walk: the rest is the same.
    """
    return _MISSPELT.get(kind, ())


def part_of(name: str, text: str) -> str:
    """Where in a parted column the terms are that begin as this text does."""
    return f"{name}.{ord(text[0]):x}"


def parts_of(terms: Iterable[str]) -> dict[str, list[str]]:
    """The terms of a parted column as its document holds them, each part by its name."""
    parts: dict[str, list[str]] = {}
    for term in terms:
        parts.setdefault(f"{ord(term[0]):x}", []).append(term)
    return parts


def tails_field(name: str) -> str:
    """Where the beginnings of a PREFIX field are without their first character."""
    return f"{name}_tails"


def tails(beginnings: Iterable[str]) -> list[str]:
    """What is left of beginnings without their first character, where it is long enough to be looked for."""
    return sorted({text[1:] for text in beginnings if len(text) > _TAIL_MIN})


def headed(kind: str) -> tuple[str, ...]:
    """The PREFIX fields of a kind whose shortest beginnings are kept for the head."""
    return _HEADS.get(kind, ())


def head_field(name: str) -> str:
    """Where the beginnings of up to HEAD_EDGE_MAX characters of a PREFIX field are, of documents in the head only.

    The empty beginning is among them: all of the head have it.
    """
    return f"{name}_head"


def anchors_path(root: Path, generation: str, kind: str) -> Path:
    """The ranks at which the bands of an index begin, and the first band that is not in the head."""
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
