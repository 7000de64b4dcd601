"""What can be read of a bad record of a shop that is not public, or has a visibility that is not known.

Whatever else is wrong with it, the shop must not be shown by another record of it (V1).
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from index_mappings.hosts import reduce_host
from indexer.records.shop import NO_ORDER, Order, Record

HIDES: Final = "its visibility is not public, so its shop is hidden all the same"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWS: Final = frozenset({"", "public"})
# A field of a line that is not JSON: a string, or all up to the next field.
_FIELD: Final = r'"{}"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s",}}\]]+)'
_NOTHING: Final = "null"


@dataclass(frozen=True, slots=True)
class Hiding:
    """The shops that a bad record hides: by their ids, or by the reduced domain where it has no id that can be read.

    `order` is None where it can't be read; `line` is the record's.
    """

    line: int
    ids: tuple[str, ...]
    domain: str | None
    order: Order | None

    @property
    def is_certain(self) -> bool:
        """Whether it says which records of a shop are newer."""
        return bool(self.ids) and self.order is not None


def hiding_of(line: int, record: object) -> Hiding | None:
    """What a bad record of a shop hides; None if it says that the shop is public, or not which shop it is.

    `record` is its JSON, or the bytes of a line that is not JSON.
    """
    order = None
    if isinstance(record, bytes):
        stated = {name: list(_values(record.decode(errors="replace"), name)) for name in ("visibility", "id", "domain")}
    elif isinstance(record, Mapping):
        stated = {name: [_text(record.get(name))] for name in ("visibility", "id", "domain")}
        with suppress(ValidationError):
            order = Record.model_validate({name: record.get(name) for name in ("version", "updated_at")}).order
    else:
        return None
    if all(text.casefold() in _SHOWS for text in stated["visibility"]):
        return None
    ids = tuple(text for text in stated["id"] if _ID.fullmatch(text))
    domain = None if ids else next(filter(None, map(reduce_host, stated["domain"])), None)
    return Hiding(line, ids, domain, order) if ids or domain else None


def hiding_of_change(line: int, change: object) -> Hiding | None:
    """What a change that can't be applied hides; `change` is as of `hiding_of`. Without an order, `order` is None."""
    if isinstance(change, bytes):
        text = change.decode(errors="replace")
        is_shop = "shops" in _values(text, "type") and "delete" not in _values(text, "op")
        return hiding_of(line, change) if is_shop else None
    if not isinstance(change, Mapping) or change.get("type") != "shops" or change.get("op") == "delete":
        return None
    record = change.get("record")
    if not isinstance(record, Mapping):
        return None
    stated = {name: change[name] for name in ("version", "updated_at") if change.get(name) is not None}
    hiding = hiding_of(line, {**record, **stated})
    if hiding is None or hiding.order != NO_ORDER:
        return hiding
    return Hiding(line, hiding.ids, hiding.domain, None)


def _values(text: str, name: str) -> Iterator[str]:
    for found in re.finditer(_FIELD.format(name), text):
        value: object = found[1]
        with suppress(ValueError):
            value = json.loads(found[1], strict=False)
        yield _text(value).strip('"')


def _text(value: object) -> str:
    return "" if value is None or value == _NOTHING else str(value).strip()
