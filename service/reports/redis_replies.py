"""What the scripts for Redis return, read into the values of the protocol.

A reply is lists in lists, as Redis 7.0 sends them to a script: field, value, field, value.
"""

from collections.abc import Sequence
from typing import Any

from service.reports.protocol import Recheck, Waiting, Worker
from service.reports.wire import report_from_texts


def claimed_from_reply(reply: Sequence[Any], worker: str) -> tuple[Recheck, ...]:
    """The re-checks that a claim has just given to the worker: [[id, fields, deliveries], ...]."""
    return tuple(
        Recheck(entry_id, report_from_texts(_paired(fields)), int(deliveries), worker, 0.0)
        for entry_id, fields, deliveries in reply
    )


def waiting_from_reply(reply: Sequence[Any]) -> Waiting:
    """The state of the queue: [depth, dead, pending, consumers, entries, their states, dead letters]."""
    depth, dead, pending, consumers, entries, states, dead_letters = reply
    held = {entry_id: (worker, idle_ms / 1000, deliveries) for entry_id, worker, idle_ms, deliveries in states}
    workers = [_worker(_paired(consumer)) for consumer in consumers]
    return Waiting(
        depth=depth,
        lag=depth - pending,
        pending=pending,
        dead=dead,
        workers=tuple(sorted((worker for worker in workers if worker.pending), key=lambda worker: worker.name)),
        rechecks=tuple(_recheck(entry_id, _paired(fields), held.get(entry_id)) for entry_id, fields in entries),
        dead_letters=tuple(_dead_letter(_paired(fields)) for _, fields in dead_letters),
    )


def _recheck(entry_id: str, texts: dict[str, Any], held: tuple[str, float, int] | None) -> Recheck:
    worker, idle_seconds, deliveries = held or (None, None, 0)
    return Recheck(entry_id, report_from_texts(texts), deliveries, worker, idle_seconds)


def _dead_letter(texts: dict[str, Any]) -> Recheck:
    return Recheck(texts["recheck"], report_from_texts(texts), int(texts["deliveries"]), texts["worker"], None)


def _worker(told: dict[str, Any]) -> Worker:
    return Worker(told["name"], int(told["pending"]), told["idle"] / 1000)


def _paired(flat: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
