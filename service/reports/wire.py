"""A report as the flat texts that a store keeps.

Reading gives back what was written: nothing is guessed for a field that is not there.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from service.reports.failures import ReportsUnavailable
from service.reports.protocol import Report, ReportKind

_KINDS: Final[Mapping[str, ReportKind]] = {"code": "code", "shop": "shop", "fact": "fact"}


def report_to_texts(report: Report) -> dict[str, str]:
    """The fields of a stream entry; `code` is left out where there is none."""
    texts = {
        "source": report.source,
        "kind": report.kind,
        "shop_id": report.shop_id,
        "reason": report.reason,
        "reported_at": time_to_text(report.reported_at),
    }
    return texts if report.code is None else {**texts, "code": report.code}


def report_from_texts(texts: Mapping[str, str | None]) -> Report:
    """The report of a row or a stream entry; other fields in it are passed over.

    Raises:
        ReportsUnavailable: the store holds something that this service has not written.
    """
    try:
        return Report(
            source=texts["source"] or "",
            kind=_KINDS[texts["kind"] or ""],
            shop_id=texts["shop_id"] or "",
            code=texts.get("code"),
            reason=texts["reason"] or "",
            reported_at=datetime.fromisoformat(texts["reported_at"] or ""),
        )
    except (KeyError, ValueError) as error:
        raise ReportsUnavailable("the store holds a report that can't be read") from error


def time_to_text(moment: datetime) -> str:
    """RFC 3339 in UTC to the microsecond, so that texts sort as times do.

    Raises:
        ValueError: the time has no zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a report's time needs a zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
