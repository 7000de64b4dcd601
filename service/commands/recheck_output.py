"""Re-checks and reports as lines with tab-separated parts, or as JSON in which no field is ever missing."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from service.reports.protocol import Recheck, Report, Waiting, time_to_text

_MISSING: Final = "-"


def report_line(report: Report, *, as_json: bool) -> str:
    """A report as a line: time, kind, shop, code, reason, source."""
    fields = _report(report)
    return json.dumps(fields) if as_json else "\t".join(value or _MISSING for value in fields.values())


def recheck_lines(rechecks: Sequence[Recheck], *, as_json: bool) -> tuple[str, ...]:
    """A line for each re-check: id, deliveries, worker, idle seconds, then its report."""
    return tuple(json.dumps(_recheck(one)) if as_json else _text(one) for one in rechecks)


def waiting_lines(waiting: Waiting, *, as_json: bool) -> tuple[str, ...]:
    """The state of the queue, as one JSON object or as lines."""
    if as_json:
        return (json.dumps(_waiting(waiting)),)
    counts = f"{waiting.depth} re-checks wait: {waiting.lag} not claimed yet, {waiting.pending} held by workers"
    lines = [f"{counts}; {waiting.dead} dead letters."]
    lines += [f"worker {one.name}: holds {one.pending}, idle {one.idle_seconds:.0f} s" for one in waiting.workers]
    lines += recheck_lines(waiting.rechecks, as_json=False)
    if waiting.dead_letters:
        lines += ["Dead letters:", *recheck_lines(waiting.dead_letters, as_json=False)]
    return tuple(lines)


def _report(report: Report) -> dict[str, str | None]:
    return {
        "reported_at": time_to_text(report.reported_at),
        "kind": report.kind,
        "shop_id": report.shop_id,
        "code": report.code,
        "reason": report.reason,
        "source": report.source,
    }


def _recheck(recheck: Recheck) -> dict[str, Any]:
    idle = recheck.idle_seconds
    return {
        "id": recheck.id,
        "deliveries": recheck.deliveries,
        "claimed_by": recheck.claimed_by,
        "idle_seconds": None if idle is None else round(idle, 3),
        "report": _report(recheck.report),
    }


def _waiting(waiting: Waiting) -> dict[str, Any]:
    return {
        **asdict(waiting),
        "workers": [{**asdict(one), "idle_seconds": round(one.idle_seconds, 3)} for one in waiting.workers],
        "rechecks": [_recheck(one) for one in waiting.rechecks],
        "dead_letters": [_recheck(one) for one in waiting.dead_letters],
    }


def _text(recheck: Recheck) -> str:
    idle = _MISSING if recheck.idle_seconds is None else f"{recheck.idle_seconds:.0f}"
    head = (recheck.id, str(recheck.deliveries), recheck.claimed_by or _MISSING, idle)
    return "\t".join((*head, report_line(recheck.report, as_json=False)))
