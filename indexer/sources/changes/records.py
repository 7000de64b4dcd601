"""One line of a change stream, read into a change or refused with the reasons.

No reason repeats a value: a change may be about a shop under review (V1).
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Protocol, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from index_mappings.timestamps import microseconds
from indexer.records.related import RECORDS
from indexer.records.shop import Record, Timestamp, reasons
from indexer.sources.changes.keys import MAX_KEY, reduced_key
from indexer.sources.lines import Line, LineCutter
from indexer.sources.protocol import NO_ORDER, UPDATED_AT, VERSION, Change, Order, RefusedChange, order_of

# What a batch holds in memory, however long its lines are.
_MAX_BATCH: Final = 4 * 1024 * 1024


def _known(kind: str) -> str:
    if kind not in RECORDS:
        raise ValueError(f"must be one of {', '.join(RECORDS)}")
    return kind


class StatedChange(BaseModel):
    """A line as it states itself; what fits together is seen after."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", hide_input_in_errors=True)

    op: Literal["upsert", "delete"]
    type: Annotated[str, AfterValidator(_known)]
    record: dict[str, Any] | None = None
    key: Annotated[str, Field(max_length=MAX_KEY)] | None = None
    version: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    updated_at: Timestamp = None


# A field's path, or None for the line as a whole, and what is wrong with it.
Fault = tuple[str | None, str]


class _Keyed(Protocol):
    @property
    def key(self) -> str: ...


class _WrongError(Exception):
    """What is wrong with a change: fields (None for the line as a whole) and reasons."""

    def __init__(self, *found: Fault) -> None:
        super().__init__()
        self.found = found


def read_change(text: bytes, place: str, *, lenient: bool = False) -> Change | RefusedChange:
    """Read one line.

    Args:
        text: the line.
        place: where it stands.
        lenient: pass over unknown fields of the change and of its record.
    """
    try:
        return _read(text, place, lenient=lenient)
    except _WrongError as error:
        return refuse(text, place, *(reason if field is None else f"{field} {reason}" for field, reason in error.found))


def change_faults(text: bytes, *, lenient: bool = False) -> tuple[Fault, ...]:
    """What is wrong with one line; empty where it can be applied. Arguments as for `read_change`."""
    try:
        _read(text, "", lenient=lenient)
    except _WrongError as error:
        return error.found
    return ()


def _read(text: bytes, place: str, *, lenient: bool) -> Change:
    stated = _stated(text, lenient=lenient)
    record = None if stated.record is None else _record(stated.type, stated.record, lenient=lenient)
    key = _key(stated.type, stated.key or "") if record is None else cast("_Keyed", record).key
    return Change(stated.type, key, _order(stated, record), record, place)


def refuse(text: bytes, place: str, *found: str) -> RefusedChange:
    """A line that cannot be applied; bytes that are not UTF-8 stay to be seen as escapes."""
    return RefusedChange(place, found, text.decode(errors="backslashreplace"))


def gather(
    cutter: LineCutter, refill: Callable[[], bool], name: str, most: int, *, lenient: bool
) -> tuple[tuple[Change, ...], tuple[RefusedChange, ...]]:
    """Consume lines until there are no more of them, or enough of them or of their bytes.

    Args:
        cutter: gives the lines.
        refill: feeds it with what is there; whether there was anything.
        name: what reports call the source.
        most: the lines to consume at most; a blank one is one too.
        lenient: as for `read_change`.
    """
    changes: list[Change] = []
    refused: list[RefusedChange] = []
    lines, enough = 0, cutter.consumed + _MAX_BATCH
    while lines < most and cutter.consumed < enough:
        line = cutter.cut()
        if line is None:
            if not refill():
                break
            continue
        lines += 1
        change = None if line.blank else _placed(line, name, cutter.longest, lenient=lenient)
        if isinstance(change, Change):
            changes.append(change)
        elif change is not None:
            refused.append(change)
    return tuple(changes), tuple(refused)


def _placed(line: Line, name: str, longest: int, *, lenient: bool) -> Change | RefusedChange:
    place = f"{name}:{line.number}"
    if line.too_long:
        return refuse(line.text, place, f"the line is longer than {longest} bytes")
    return read_change(line.text, place, lenient=lenient)


def _stated(text: bytes, *, lenient: bool) -> StatedChange:
    try:
        value = strict_loads(text)
        if not isinstance(value, dict):
            raise _WrongError((None, "the line must be an object"))
        stated = StatedChange.model_validate(value, extra="ignore" if lenient else None)
    except NotStrictJsonError as error:
        raise _WrongError((None, f"the line {error}")) from None
    except ValidationError as error:
        raise _WrongError(*reasons(error)) from None
    wanted, other = ("record", "key") if stated.op == "upsert" else ("key", "record")
    found: list[Fault] = [(wanted, "is missing")] if getattr(stated, wanted) is None else []
    if getattr(stated, other) is not None:
        found.append((other, f"must not be given with {stated.op}"))
    if stated.op == "upsert" and stated.updated_at is not None:
        found.append(("updated_at", "must stand in the record of an upsert"))
    if found:
        raise _WrongError(*found)
    return stated


def _record(kind: str, value: dict[str, Any], *, lenient: bool) -> Record:
    try:
        return RECORDS[kind].model_validate(value, extra="ignore" if lenient else None)
    except ValidationError as error:
        found = [("record" if field == "record" else f"record.{field}", reason) for field, reason in reasons(error)]
        raise _WrongError(*found) from None


def _key(kind: str, key: str) -> str:
    try:
        return reduced_key(kind, key)
    except ValueError as error:
        raise _WrongError(("key", str(error))) from None


def _order(stated: StatedChange, record: Record | None) -> Order:
    own = None if record is None else record.version
    if stated.version is not None:
        if own not in (None, stated.version):
            raise _WrongError(("version", "must be the same in the change and in its record"))
        return Order(VERSION, stated.version)
    order = NO_ORDER if record is None else order_of(record)
    if stated.updated_at is not None:
        order = Order(UPDATED_AT, microseconds(stated.updated_at))
    if order == NO_ORDER:
        raise _WrongError((None, "the change needs a version or an updated_at"))
    return order
