"""What the embedded engine is told of the indices: columns derived from the document classes.

The stored part of a document travels as one blob of JSON; text columns hold raw terms (X4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from index_mappings.documents import DOCUMENTS
from index_mappings.generations import POINTER_FILE, RETIRED_FILE, STAMP_FILE, is_generation
from index_mappings.operations import OPERATIONS_FILE
from index_mappings.roles import LACKING, Form, Role, declared_fields, edges_field, engine_fields
from index_mappings.tiers import TWO_TYPOS_MIN

STORED_COLUMN: Final = "stored"
# A whole number by which hits are ordered much faster than by their rank: a lower band is a better rank, always. Which
# of one band comes first, the rank itself says, which is stored as well.
BAND_COLUMN: Final = "band"
# The best shops' shortest beginnings once more: a prefix that very many shops begin with is mostly answered by them.
HEAD_EDGE_MAX: Final = 3
ANCHORS_FILE: Final = "anchors.json"

_HEADS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"shops": ("leading", "full", "keys")})
# Beginnings that a text with two errors is compared with: it may be longer by two.
_FAR_MIN: Final = TWO_TYPOS_MIN - 2
# By how many first characters terms lie apart that are looked into with one error, and with two.
_NEAR_PARTS: Final = len(LACKING)
_FAR_PARTS: Final = 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be looked up or sorted by.

    Attributes:
        name: the field's name.
        whole: whether it holds whole numbers; otherwise raw terms.
        sortable: whether hits can be ordered by it; such a column has one value a document.
        parted: by how many of their first characters its terms lie apart, at `part_of`; 0 where they don't.
    """

    name: str
    whole: bool
    sortable: bool
    parted: int = 0


def columns(kind: str) -> tuple[Column, ...]:
    """The columns of a document's own values, in order; STORED_COLUMN and `placing_columns` come on top of them."""
    parted = {edges_field(name) for name in misspelt(kind)}
    return tuple(
        Column(field.name, field.form is Form.WHOLE, field.sortable, _NEAR_PARTS if field.name in parted else 0)
        for field in engine_fields(DOCUMENTS[kind])
        if field.indexed or field.sortable
    )


def placing_columns(kind: str) -> tuple[Column, ...]:
    """The columns that say where in the order a document stands, and what is looked into with typing errors.

    That is its band, beginnings only if it is in the head, and beginnings once more as `misspelt` says.
    """
    heads = (Column(head_field(field), whole=False, sortable=False) for field in headed(kind))
    walked = (Column(far_field(field), whole=False, sortable=False, parted=_FAR_PARTS) for field in misspelt(kind))
    return (Column(BAND_COLUMN, whole=True, sortable=True), *heads, *walked)


@cache
def misspelt(kind: str) -> tuple[str, ...]:
    """The MISSPELT fields of a kind: the terms that are walked through lie apart by their first characters.

    By the first two of them: an error there needs no walk (`lacking_field`). Two errors are walked for among beginnings
    apart by the first character only, as the second one may be one of the two.
    """
    return tuple(field.name for field in declared_fields(DOCUMENTS[kind]) if Role.MISSPELT in field.roles)


def near_part(field: str, text: str) -> str:
    """Where the beginnings of a misspelt field are that begin with the first characters of this one."""
    return part_of(edges_field(field), _NEAR_PARTS, text)


def far_part(field: str, text: str) -> str:
    """Where those beginnings of it are that two errors are walked for among."""
    return part_of(far_field(field), _FAR_PARTS, text)


def part_of(name: str, parted: int, text: str) -> str:
    """Where in a column, parted by so many characters, the terms are that begin as this text does."""
    return f"{name}.{_part(parted, text)}"


def parts_of(parted: int, terms: Iterable[str]) -> dict[str, list[str]]:
    """The terms of a parted column as its document holds them, each part by its name."""
    parts: dict[str, list[str]] = {}
    for term in terms:
        parts.setdefault(_part(parted, term), []).append(term)
    return parts


def _part(parted: int, text: str) -> str:
    return "_".join([f"{ord(character):x}" for character in text[:parted]])


def far_field(name: str) -> str:
    """Where the longer beginnings of a PREFIX field are once more, apart by their first character."""
    return f"{name}_far"


def far(beginnings: Iterable[str]) -> list[str]:
    """Those beginnings that are long enough to be looked for with two errors."""
    return [text for text in beginnings if len(text) >= _FAR_MIN]


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
