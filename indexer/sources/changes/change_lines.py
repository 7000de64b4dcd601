"""Reads a line of a change stream into a change, or refuses it with reasons.

No reason repeats a value, as the shop may not be public (V1).
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from index_mappings.values import microseconds
from indexer.records.related import KEYS, RECORDS
from indexer.records.shop import NO_ORDER, UPDATED_AT, VERSION, Order, Record, StrictModel, Timestamp, reasons
from indexer.sources.lines import Line, LineCutter
from indexer.sources.protocol import Change, RefusedChange

# Two hosts, which people may paste as URLs.
MAX_KEY: Final = 2 * 2_048 + 1
_MAX_BATCH_BYTES: Final = 4 * 1024 * 1024


def _known_type(kind: str) -> str:
    if kind not in RECORDS:
        raise ValueError(f"must be one of {', '.join(RECORDS)}")
    return kind


class StatedChange(StrictModel):
    """The fields of a line; whether they fit together is validated later."""

    op: Literal["upsert", "delete"]
    type: Annotated[str, AfterValidator(_known_type)]
    record: dict[str, Any] | None = None
    key: Annotated[str, Field(max_length=MAX_KEY)] | None = None
    version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    updated_at: Timestamp = None


# A field's path, or None for the line as a whole, and what is wrong with it.
Fault = tuple[str | None, str]


class _InvalidChangeError(Exception):
    def __init__(self, *faults: Fault) -> None:
        super().__init__()
        self.faults = faults


def read_change(text: bytes, location: str, *, lenient: bool = False) -> Change | RefusedChange:
    """Read one line; lenient reading ignores unknown fields of the change and of its record."""
    try:
        return _read(text, location, lenient=lenient)
    except _InvalidChangeError as error:
        return refuse(
            text, location, *(reason if field is None else f"{field} {reason}" for field, reason in error.faults)
        )


def change_faults(text: bytes, *, lenient: bool = False) -> tuple[Fault, ...]:
    """What is wrong with one line; empty if it can be applied. Arguments as for `read_change`."""
    try:
        _read(text, "", lenient=lenient)
    except _InvalidChangeError as error:
        return error.faults
    return ()


def _read(text: bytes, location: str, *, lenient: bool) -> Change:
    stated = _stated(text, lenient=lenient)
    record = None if stated.record is None else _record(stated.type, stated.record, lenient=lenient)
    key = _key(stated.type, stated.key or "") if record is None else record.key
    return Change(stated.type, key, _order(stated, record), record, location)


def refuse(text: bytes, location: str, *messages: str) -> RefusedChange:
    """A line that cannot be applied; bytes that are not UTF-8 are stored as escapes."""
    return RefusedChange(location, messages, text.decode(errors="backslashreplace"))


def gather(
    cutter: LineCutter, refill: Callable[[], bool], name: str, limit: int, *, lenient: bool
) -> tuple[tuple[Change, ...], tuple[RefusedChange, ...]]:
    """Consume lines until none is available, or `limit` lines that are not blank, or a bound on their bytes, are read.

    `refill` feeds the cutter with available bytes, and returns whether there were any.
    """
    changes: list[Change] = []
    refused: list[RefusedChange] = []
    lines, end = 0, cutter.consumed + _MAX_BATCH_BYTES
    while lines < limit and cutter.consumed < end:
        line = cutter.cut()
        if line is None:
            if not refill():
                break
            continue
        lines += 1
        change = _change_of(line, name, cutter.longest, lenient=lenient)
        if isinstance(change, Change):
            changes.append(change)
        else:
            refused.append(change)
    return tuple(changes), tuple(refused)


def _change_of(line: Line, name: str, longest: int, *, lenient: bool) -> Change | RefusedChange:
    location = f"{name}:{line.number}"
    if line.too_long:
        return refuse(line.text, location, f"the line is longer than {longest} bytes")
    return read_change(line.text, location, lenient=lenient)


def _stated(text: bytes, *, lenient: bool) -> StatedChange:
    try:
        value = strict_loads(text)
        if not isinstance(value, dict):
            raise _InvalidChangeError((None, "the line must be an object"))
        stated = StatedChange.model_validate(value, extra="ignore" if lenient else None)
    except NotStrictJsonError as error:
        raise _InvalidChangeError((None, f"the line {error}")) from None
    except ValidationError as error:
        raise _InvalidChangeError(*reasons(error)) from None
    required, other = ("record", "key") if stated.op == "upsert" else ("key", "record")
    faults: list[Fault] = [(required, "is missing")] if getattr(stated, required) is None else []
    if getattr(stated, other) is not None:
        faults.append((other, f"must not be given with {stated.op}"))
    if stated.op == "upsert" and stated.updated_at is not None:
        faults.append(("updated_at", "must be in the record of an upsert"))
    if faults:
        raise _InvalidChangeError(*faults)
    return stated


def _record(kind: str, value: dict[str, Any], *, lenient: bool) -> Record:
    try:
        return RECORDS[kind].model_validate(value, extra="ignore" if lenient else None)
    except ValidationError as error:
        faults = [("record" if field == "record" else f"record.{field}", reason) for field, reason in reasons(error)]
        raise _InvalidChangeError(*faults) from None


def _key(kind: str, key: str) -> str:
    """The key that a delete names, in the form of a record of this type, with reduced hosts.

    A key of another form would delete nothing and leave the record visible, so it is refused.
    """
    model = KEYS[kind]
    for parts in _splits(kind, key, len(model.key_fields)):
        with suppress(ValidationError):
            return model.model_validate(dict(zip(model.key_fields, parts, strict=True))).key
    raise _InvalidChangeError(("key", f"must be {'/'.join(model.key_fields)} as in a record"))


def _splits(kind: str, key: str, parts: int) -> list[tuple[str, ...]]:
    """The ways to split a key into parts: a name may hold a slash, so each slash may be the separator."""
    if parts == 1:
        return [(key,)]
    if kind == "redirects" and key.count("/") > 1:
        return []  # a record may state a host as a URL, a key may not
    return [(key[:at], key[at + 1 :]) for at, character in enumerate(key) if character == "/"]


def _order(stated: StatedChange, record: Record | None) -> Order:
    own = None if record is None else record.version
    if stated.version is not None:
        if own not in (None, stated.version):
            raise _InvalidChangeError(("version", "must be the same in the change and in its record"))
        return Order(VERSION, stated.version)
    order = NO_ORDER if record is None else record.order
    if stated.updated_at is not None:
        order = Order(UPDATED_AT, microseconds(stated.updated_at))
    if order == NO_ORDER:
        raise _InvalidChangeError((None, "the change needs a version or an updated_at"))
    return order
