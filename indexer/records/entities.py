"""Finds HTML entities in texts, such as `&amp;`, which exports of web shops leave in names."""

import html
import re
from collections.abc import Iterator
from functools import cache
from html.entities import html5
from typing import Final

from pydantic import BaseModel

from indexer.records.shop import Record

_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_CUT: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31})$")
# Some programs encode text twice.
_MOST_ROUNDS: Final = 3
# The fields that people read; in a URL an ampersand before a word is a parameter.
_FIELDS: Final = (
    "name", "title", "aliases", "categories", "code", "as_stated", "delivery_time", "methods", "value", "other_names",
    "commission_stated", "disclosure",
)  # fmt: skip


def has_entity(text: str) -> bool:
    """Whether a text holds an entity that HTML knows."""
    return "&" in text and any(_is_known(found[0]) for found in _ENTITY.finditer(text))


def ends_in_entity(text: str) -> bool:
    """Whether a text ends in an entity that lacks its semicolon, as where that was taken for a delimiter."""
    found = _CUT.search(text) if "&" in text else None
    return found is not None and _is_known(f"{found[0]};")


def decoded(text: str) -> str:
    """The text with the characters that its entities stand for; a non-breaking space is a space."""
    for _ in range(_MOST_ROUNDS):
        if not has_entity(text):
            break
        text = _ENTITY.sub(lambda found: _character(found[0]), text)
    return text


def _is_known(entity: str) -> bool:
    return entity[1] == "#" or entity[1:] in html5


def _character(entity: str) -> str:
    return html.unescape(entity).replace("\u00a0", " ") if _is_known(entity) else entity


def fields_with_entities(record: Record) -> Iterator[str]:
    """The names of the fields of a record that hold an entity."""
    return (name for name in _fields_of(type(record)) if _holds(getattr(record, name)))


@cache
def _fields_of(record: type[Record]) -> tuple[str, ...]:
    """Those of the fields that a type of records has: looking up a missing one in each record is slow."""
    return tuple(name for name in _FIELDS if name in record.model_fields or hasattr(record, name))


def _holds(value: object) -> bool:
    if isinstance(value, str):
        return has_entity(value)
    if isinstance(value, list | tuple):
        return any(map(_holds, value))
    return isinstance(value, BaseModel) and any(map(_holds, value.__dict__.values()))
