"""Parses the replies of the Redis scripts: nested lists, in which fields and values alternate."""

from collections.abc import Sequence
from typing import Any

from service.reports.protocol import Recheck, Waiting, Worker
from service.reports.wire import report_from_texts


def claimed_from_reply(reply: Sequence[Any], worker: str) -> tuple[Recheck, ...]:
    """The re-checks that the worker has just claimed: [[id, fields, deliveries], ...]."""
    return tuple(
        Recheck(entry_id, report_from_texts(_as_dict(fields)), int(deliveries), worker, 0.0)
        for entry_id, fields, deliveries in reply
    )


def waiting_from_reply(reply: Sequence[Any]) -> Waiting:
    """The state of the queue: [depth, dead, pending, consumers, entries, their states, dead letters]."""
    depth, dead, pending, consumers, entries, states, dead_letters = reply
    held = {entry_id: (worker, idle_ms / 1000, deliveries) for entry_id, worker, idle_ms, deliveries in states}
    workers = [_worker(_as_dict(consumer)) for consumer in consumers]
    return Waiting(
        depth=depth,
        lag=depth - pending,
        pending=pending,
        dead=dead,
        workers=tuple(sorted((worker for worker in workers if worker.pending), key=lambda worker: worker.name)),
        rechecks=tuple(_recheck(entry_id, _as_dict(fields), held.get(entry_id)) for entry_id, fields in entries),
        dead_letters=tuple(_dead_letter(_as_dict(fields)) for _, fields in dead_letters),
    )


def _recheck(entry_id: str, texts: dict[str, Any], held: tuple[str, float, int] | None) -> Recheck:
    worker, idle_seconds, deliveries = held or (None, None, 0)
    return Recheck(entry_id, report_from_texts(texts), deliveries, worker, idle_seconds)


def _dead_letter(texts: dict[str, Any]) -> Recheck:
    return Recheck(texts["recheck"], report_from_texts(texts), int(texts["deliveries"]), texts["worker"], None)


def _worker(fields: dict[str, Any]) -> Worker:
    return Worker(fields["name"], int(fields["pending"]), fields["idle"] / 1000)


def _as_dict(flat: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
