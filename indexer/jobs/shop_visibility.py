"""Hides and shows single shops, and says what the state knows of them and why one is not shown (V1, G3).

A change is a whole record with another visibility and the next version. It is written to a file in the directory of the
states, which every job reads: a follower, and a build for the live and for its own generation. So it is applied within
a second also while another job has the lease; without one it is applied here.
"""

import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from index_mappings.hosts import has_dot, reduce_host
from index_mappings.values import wire_timestamp
from indexer.disk_space import synchronise
from indexer.jobs.update import ChangeApplier
from indexer.records.shop import MAX_VERSION, NO_ORDER, VERSION, Order, ShopRecord
from indexer.sinks.dead_letters import DeadLetters, open_private, write_whole
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, LeaseHeldError, holding
from indexer.sinks.protocol import Sink
from indexer.state.rows import SHOPS, Origin, Presence, Row
from indexer.state.state import State, StateError, States

_ATTEMPT_S: Final = 0.5
# As many newer records of a shop may arrive while its visibility is changed.
_ATTEMPTS: Final = 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GONE: Final = {Presence.DELETED: "a change deleted it", Presence.MISSING: "the last catalogue lacks it"}


@dataclass(frozen=True, slots=True)
class ShopStatus:
    """What the state of the live generation knows of a shop that `reference` names.

    `id` is None if the state has never had such a shop; then only the reason is stated as well. `reason` says why it is
    not shown; None if it is. The shown shop `domain_holder` has its domain. `order` says how new its record is:
    `version` or `updated_at`, or neither. `origin` is `catalogue`, with a line, or `change`. `records` are the numbers
    of its related records by type. `pending` says whether its documents are still to be written or removed.
    """

    reference: str
    id: str | None = None
    shown: bool = False
    reason: str | None = "the state has no record of it"
    visibility: str | None = None
    domain: str | None = None
    domain_holder: str | None = None
    order: dict[str, int | str] = field(default_factory=dict)
    origin: str | None = None
    line: int | None = None
    records: dict[str, int] = field(default_factory=dict)
    pending: bool = False


def shop_statuses(sink: Sink, states: States, references: Iterable[str]) -> tuple[str, tuple[ShopStatus, ...]]:
    """The live generation, and the statuses of shops by ids or domains; several shops may claim a domain."""
    with _live_state(sink, states) as state:
        return state.path.stem, _statuses(state, references)


def set_visibility(
    sink: Sink, states: States, references: Sequence[str], *, public: bool, wait: float
) -> tuple[str, tuple[ShopStatus, ...]]:
    """Make shops public, or put them under review; returns `shop_statuses` when readers see it.

    Shops without a record stay as they are, and so do removed ones that are to be hidden. Raises LeaseHeldError if
    after `wait` seconds another job still has the lease and has not applied the change, which stays for it; StateError
    if no generation is live, or newer records go on arriving.
    """
    end, written, applied = time.monotonic() + wait, dict[str, Order](), 0
    while applied < _ATTEMPTS:
        with _live_state(sink, states) as state:
            rows = {row.key: row for reference in references for row in _rows(state, reference)}
            changing = [row for row in rows.values() if row.text is not None and row.shown is not public]
            if not changing and not (rows and state.pending.count()):
                return state.path.stem, _statuses(state, references)
        # Once for each record, and again if a newer one came meanwhile.
        fresh = [row for row in changing if row.key not in written or written[row.key] <= row.order]
        records = [_changed(row, "public" if public else "under_review") for row in fresh]
        _write(states, records)
        written |= {record.id: record.order for record in records}
        try:
            _apply(sink, states, sink.lease())
            applied += 1
        except SinkError as error:
            is_held = isinstance(error, LeaseHeldError)
            if not is_held or time.monotonic() >= end:
                job = "that job or the next one" if is_held else "the next job"
                recorded = f"the change is recorded, and {job} applies it"
                nothing_new = "nothing was to be changed, and documents are still to be written"
                raise type(error)(f"{error}; {recorded if written else nothing_new}") from error
    raise StateError("newer records of these shops go on arriving with another visibility: change it in their source")


def _apply(sink: Sink, states: States, lease: Lease) -> None:
    """Apply what is recorded, and write the pending documents."""
    with (
        holding(lease, "visibility", _ATTEMPT_S),
        _live_state(sink, states) as state,
        closing(DeadLetters(states.dead_letters)) as letters,
        closing(sink.edit(state.path.stem)) as editor,
    ):
        ChangeApplier(state, editor, None, letters, lease.check).step()


def _live_state(sink: Sink, states: States) -> State:
    live = sink.live()
    if live is None or not live.readable:
        raise StateError("no generation of this version is live: build one first, by shop-directory index build")
    return states.open(live.generation)


def _rows(state: State, reference: str) -> list[Row]:
    """The rows of the shop with an id, or of all shops with a domain, whether or not they are public (R1)."""
    if not has_dot(reference):
        row = state.rows.row(SHOPS, reference.strip())
        return [] if row is None else [row]
    return state.rows.shops_of_domain(reduce_host(reference) or reference)


def _changed(row: Row, visibility: str) -> ShopRecord:
    """The record with another visibility, newer than it was."""
    kind, number = row.order
    shop = ShopRecord.model_validate_json(row.text or "")
    if kind == VERSION:
        return shop.model_copy(update={"visibility": visibility, "version": min(number + 1, MAX_VERSION)})
    # A version would outrank every later time of the operator's catalogue.
    now = max(datetime.now(UTC), _EPOCH + timedelta(microseconds=number + 1))
    return shop.model_copy(update={"visibility": visibility, "version": None, "updated_at": now})


def _write(states: States, records: Sequence[ShopRecord]) -> None:
    """Append the changes to their file, which outlasts a crash of the machine."""
    if not records:
        return
    changes = [
        {"op": "upsert", "type": SHOPS, "record": record.model_dump(mode="json", exclude_none=True)}
        for record in records
    ]
    try:
        file = open_private(states.visibility_changes)
        try:
            write_whole(file, "".join(f"{json.dumps(change)}\n" for change in changes).encode())
            os.fsync(file)
        finally:
            os.close(file)
        synchronise(states.directory)
    except OSError as error:
        raise StateError(f"{states.visibility_changes} cannot be written: {error.strerror}") from error


def _statuses(state: State, references: Iterable[str]) -> tuple[ShopStatus, ...]:
    return tuple(
        ShopStatus(reference) if row is None else _status(state, reference, row)
        for reference in references
        for row in _rows(state, reference) or (None,)
    )


def _status(state: State, reference: str, row: Row) -> ShopStatus:
    shop, holder = row.shop, None
    reason = _GONE.get(row.presence)
    if shop is not None:
        holder = state.public.domain_holder(shop.domain)
        if shop.visibility != "public":
            reason = f"its visibility is {shop.visibility}"
        elif holder != shop.id:
            reason = f"its domain belongs to {holder}, which ranks higher"
    kind, number = row.order
    order: dict[str, int | str] = {}
    if row.order != NO_ORDER:
        stated = _EPOCH + timedelta(microseconds=number)
        order = {"version": number} if kind == VERSION else {"updated_at": wire_timestamp(stated)}
    return ShopStatus(
        reference,
        row.key,
        reason is None,
        reason,
        None if shop is None else shop.visibility,
        None if shop is None else shop.domain,
        holder,
        order,
        row.origin.name.lower(),
        row.line if row.origin is Origin.CATALOGUE and row.line else None,
        state.rows.count_related(row.key),
        state.pending.has(SHOPS, row.key),
    )
