"""What the service reports to `shop-directory status`: waiting re-checks, and calls that its quotas refused."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from shop_directory.settings.commands import ExitCode, loaded
from shop_directory.status import Asked, Section, ago, disk

if TYPE_CHECKING:
    from service.settings.service import Settings

_METRIC: Final = "shopdir_quota_decisions_total"
_TIMEOUT_S: Final = 5.0


def sections(asked: Asked) -> Iterator[Section]:
    """The sections of the stores that the settings name, and of the service at a URL."""
    from service.settings.service import Settings

    settings = loaded(Settings)
    yield _rechecks(settings)
    yield _quotas(asked.url, settings)
    yield _insights(settings)
    if settings.reports == "embedded":
        yield disk("Disk of reports", [settings.reports_file])


def _rechecks(settings: "Settings") -> Section:
    from service.commands.rechecks import answer_of
    from service.reports.protocol import ReportsUnavailable

    if settings.reports == "embedded" and not settings.reports_file.exists():
        return Section("Re-checks", ("no report was ever stored",), None)
    try:
        waiting = answer_of(settings, lambda queue: queue.waiting(1))
    except ReportsUnavailable as error:
        text = f"re-checks are unknown: {error.reason.rstrip('.')}"
        return Section("Re-checks", (text,), None, ((ExitCode.UNAVAILABLE, text),))
    oldest = waiting.rechecks[0].report.reported_at if waiting.rechecks else None
    age = None if oldest is None else (datetime.now(UTC) - oldest).total_seconds()
    facts = {
        "depth": waiting.depth,
        "lag": waiting.lag,
        "pending": waiting.pending,
        "dead_letters": waiting.dead,
        "oldest_reported_at": None if oldest is None else oldest.isoformat(),
    }
    line = f"{waiting.depth:,} wait, {waiting.pending:,} of them held by a worker"
    line += "" if age is None else f"; the oldest was reported {ago(age)} ago"
    dead = f"{waiting.dead:,} re-checks were given up: shop-directory rechecks list names them"
    problems = ((ExitCode.BAD_INPUT, dead),) if waiting.dead else ()
    return Section("Re-checks", (line, *(dead for _ in problems)), facts, problems)


def _insights(settings: "Settings") -> Section:
    from service.commands.insights import counts_of
    from service.insights.protocol import InsightsUnavailable, first_of
    from service.operations import INSIGHT_DAYS

    try:
        counts = counts_of(settings, INSIGHT_DAYS)
    except InsightsUnavailable as error:
        text = f"the counts of queries do not answer: {error}"
        return Section("Not found", (text,), None, ((ExitCode.UNAVAILABLE, text),))
    if counts is None:
        return Section("Not found", ("queries are not counted: SHOP_DIRECTORY_INSIGHTS is off",), None)
    listed = {one.query: one.not_found for one in first_of(counts, "not_found", 5)}
    lines = (", ".join(f"{query} ({count:,})" for query, count in listed.items()) or "nothing in seven days",)
    return Section("Not found", lines, listed)


def _quotas(url: str | None, settings: "Settings") -> Section:
    """What the metrics of a running service say that its quotas decided, since it was started."""
    import httpx2
    from prometheus_client.parser import text_string_to_metric_families

    if url is None:
        return Section("Quotas", ("the service was not asked: name it by --url",), None)
    key = {} if settings.ops_key is None else {"x-ops-key": settings.ops_key.get_secret_value()}
    try:
        answer = httpx2.get(f"{url.rstrip('/')}/metrics", headers=key, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        refused: Counter[str] = Counter()
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                if sample.name == _METRIC and sample.labels.get("decision") == "refused":
                    refused[sample.labels["bucket"]] += int(sample.value)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        text = f"the service at {url} does not answer: {error}"
        return Section("Quotas", (text,), None, ((ExitCode.UNAVAILABLE, text),))
    listed = ", ".join(f"{count:,} {bucket}" for bucket, count in refused.most_common() if count)
    return Section("Quotas", (f"refused since the start: {listed or 'nothing'}",), {"refused": dict(+refused)})
