"""Hides and shows single shops, and explains from the state why one is not shown (V1, V4, G3).

A mark is written to a file in the directory of the states, which every job reads: a follower, and a build for the live
and for its own generation. So it is applied within a second while another job has the lease; else here.
"""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from index_mappings.hosts import has_dot, reduce_host
from index_mappings.values import wire_timestamp
from indexer.jobs.update import ChangeApplier, is_behind
from indexer.records.shop import NO_ORDER, VERSION
from indexer.sinks.dead_letters import DeadLetters, open_private, write_whole
from indexer.sinks.failures import SinkError
from indexer.sinks.lease import Lease, LeaseHeldError, holding
from indexer.sinks.protocol import Sink
from indexer.state.marks import mark_lines, read_marks
from indexer.state.rows import SHOPS, Origin, Presence, Row
from indexer.state.state import State, StateError, States
from shop_directory.durable_files import synchronise

_ATTEMPT_S: Final = 0.5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GONE: Final = {Presence.DELETED: "a change deleted it", Presence.MISSING: "the last catalogue lacks it"}


@dataclass(frozen=True, slots=True)
class ShopStatus:
    """What the state of the live generation knows of a shop that `reference` names.

    `id` is None if the state has never had such a shop; then only the reason is stated as well. `reason` says why it is
    not shown; None if it is. The shown shop `domain_holder` has its domain. `order` says how new its record is:
    `version` or `updated_at`, or neither. `origin` is `catalogue`, with a line, or `change`. `records` are the numbers
    of its related records by type. `pending` says whether its documents are still to be written or removed, `marked`
    whether `index hide` has hidden it.
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
    marked: bool = False


def shop_statuses(sink: Sink, states: States, references: Iterable[str]) -> tuple[str, tuple[ShopStatus, ...]]:
    """The live generation, and the statuses of shops by ids or domains; several shops may claim a domain."""
    with _live_state(sink, states) as state:
        return state.path.stem, _statuses(state, references)


def set_visibility(
    sink: Sink, states: States, references: Sequence[str], *, public: bool, wait: float
) -> tuple[str, tuple[ShopStatus, ...]]:
    """Mark shops as hidden, or take their marks away; returns `shop_statuses` when readers see it.

    Shops that the state has never had stay unmarked. Raises LeaseHeldError if after `wait` seconds another job still
    has the lease and has not applied the marks, which stay for it; StateError if no generation is live.
    """
    end = time.monotonic() + wait
    with _live_state(sink, states) as state:
        keys = {row.key for reference in references for row in _rows(state, reference)}
    changing = sorted(keys & marked_shops(states) if public else keys - marked_shops(states))
    _write(states, changing, hidden=not public)
    while True:
        with _live_state(sink, states) as state:
            if not keys or not is_behind(state):
                return state.path.stem, _statuses(state, references)
        try:
            _apply(sink, states, sink.lease())
        except SinkError as error:
            is_held = isinstance(error, LeaseHeldError)
            if not is_held or time.monotonic() >= end:
                job = "that job or the next one" if is_held else "the next job"
                recorded = f"the change is recorded, and {job} applies it"
                nothing_new = "nothing was to be changed, and documents are still to be written"
                raise type(error)(f"{error}; {recorded if changing else nothing_new}") from error
        else:
            return shop_statuses(sink, states, references)


def marked_shops(states: States) -> frozenset[str]:
    """The ids of the shops that `index hide` has marked."""
    try:
        return read_marks(states.marks)[0]
    except OSError as error:
        raise StateError(f"{states.marks} cannot be read: {error.strerror}") from error


def _apply(sink: Sink, states: States, lease: Lease) -> None:
    """Apply the recorded changes, and write the pending documents."""
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


def _write(states: States, keys: Sequence[str], *, hidden: bool) -> None:
    """Append marks to their file, which outlasts a crash of the machine."""
    if not keys:
        return
    try:
        file = open_private(states.marks)
        try:
            write_whole(file, mark_lines(keys, hidden=hidden))
            os.fsync(file)
        finally:
            os.close(file)
        synchronise(states.directory)
    except OSError as error:
        raise StateError(f"{states.marks} cannot be written: {error.strerror}") from error


def _statuses(state: State, references: Iterable[str]) -> tuple[ShopStatus, ...]:
    return tuple(
        ShopStatus(reference) if row is None else _status(state, reference, row)
        for reference in references
        for row in _rows(state, reference) or (None,)
    )


def _status(state: State, reference: str, row: Row) -> ShopStatus:
    shop, holder = row.shop, None
    is_marked = state.is_marked(row.key)
    reason = _GONE.get(row.presence)
    if shop is not None:
        holder = state.public.domain_holder(shop.domain)
        if is_marked:
            also = "" if shop.visibility == "public" else f", and its visibility is {shop.visibility}"
            reason = f"`index hide` has hidden it{also}"
        elif shop.visibility != "public":
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
        is_marked,
    )
