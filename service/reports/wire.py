"""Encodes a report as the flat texts that a store holds, and decodes it; a missing field is an error."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from service.reports.protocol import Report, ReportKind, ReportsUnavailable

_KINDS: Final[Mapping[str, ReportKind]] = {"code": "code", "shop": "shop", "fact": "fact"}


def report_to_texts(report: Report) -> dict[str, str]:
    """The fields of a stream entry; `code` is omitted if it is None."""
    texts = {
        "source": report.source,
        "kind": report.kind,
        "shop_id": report.shop_id,
        "reason": report.reason,
        "reported_at": time_to_text(report.reported_at),
    }
    return texts if report.code is None else {**texts, "code": report.code}


def report_from_texts(texts: Mapping[str, str | None]) -> Report:
    """The report of a row or a stream entry; other fields are ignored.

    Raises:
        ReportsUnavailable: the store holds an entry that this service has not written.
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


def time_to_text(time: datetime) -> str:
    """RFC 3339 in UTC with microseconds, so that texts sort like times.

    Raises:
        ValueError: the time has no zone.
    """
    if time.tzinfo is None:
        raise ValueError("a report's time needs a zone")
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
