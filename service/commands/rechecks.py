"""The commands `shop-directory rechecks ...`: answers go to standard output, everything else to standard error.

An answer is lines with tab-separated parts, or JSON in which no field is ever missing.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from service.reports.opening import QueueKind, open_queue
from service.reports.protocol import Recheck, Report, ReportQueue, ReportsUnavailable, Waiting, time_to_text
from shop_directory.settings.commands import ExitCode, JsonOption, end_command, json_option, loaded, setting_option

if TYPE_CHECKING:
    from service.settings.stores import StoreSettings

_WORKER: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_MISSING: Final = "-"
_Answer = TypeVar("_Answer")


def _valid_worker(worker: str) -> str:
    if not _WORKER.fullmatch(worker):
        raise typer.BadParameter("must be 1 to 64 letters, digits, dots, underscores, hyphens or @")
    return worker


JsonLinesOption = Annotated[bool, json_option("Print each as one JSON object, a line each.")]
KindOption = Annotated[QueueKind | None, setting_option("REPORTS", "embedded", "A file of this machine, or Redis.")]
PathOption = Annotated[Path | None, setting_option("REPORTS_FILE", "var/reports.sqlite", "The file, if embedded.")]
# A password in an option would show in the list of processes; the environment or a file is better.
UrlOption = Annotated[str | None, setting_option("REDIS_URL", "redis://127.0.0.1:6379/0", "The URL of Redis, if used.")]
PrefixOption = Annotated[str | None, setting_option("REDIS_PREFIX", "shopdir", "The prefix of all keys in Redis.")]
WorkerOption = Annotated[
    str, typer.Option(callback=_valid_worker, help="The worker's name: unique, and the same in every call.")
]
CountOption = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]

# The options of settings whose names differ.
_OPTIONS: Final = {"reports": "--kind", "reports_file": "--path", "redis_url": "--url", "redis_prefix": "--prefix"}

rechecks = typer.Typer(
    help="Work on the queue of re-checks that reports have filled.", no_args_is_help=True, add_completion=False
)


@rechecks.callback()
def _rechecks(
    context: typer.Context,
    kind: KindOption = None,
    path: PathOption = None,
    url: UrlOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Work on the queue of re-checks that reports have filled.

    The settings are those of the service, from the environment.
    """
    context.obj = {"reports": kind, "reports_file": path, "redis_url": url, "redis_prefix": prefix}


@rechecks.command("list")
def list_command(context: typer.Context, count: CountOption = 100, *, as_json: JsonOption = False) -> None:
    """Show the state of the queue, the oldest re-checks and the dead letters.

    The line of an entry has its id, the number of deliveries, the worker that
    holds it, for how many seconds, and its report.

    Examples:
      shop-directory rechecks list --count 20
      shop-directory rechecks list --json

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """
    waiting = _run(context, lambda queue: queue.waiting(count))
    _print(_waiting_lines(waiting, as_json=as_json))


@rechecks.command()
def claim(
    context: typer.Context,
    worker: WorkerOption,
    count: CountOption = 10,
    idle: Annotated[float, typer.Option(min=0, help="Take over what a worker has held for so many seconds.")] = 600.0,
    *,
    as_json: JsonLinesOption = False,
) -> None:
    """Claim re-checks: new ones first, then those that another worker abandoned.

    Examples:
      shop-directory rechecks claim --worker desk-1 --count 5 --json
      shop-directory rechecks claim --worker desk-1 --idle 3600

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """
    claimed = _run(context, lambda queue: queue.claim(worker, count, idle))
    _print(_recheck_lines(claimed, as_json=as_json))


@rechecks.command()
def ack(
    context: typer.Context,
    worker: WorkerOption,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids that the worker has claimed.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Acknowledge finished re-checks, and print the ids of those removed.

    Examples:
      shop-directory rechecks ack --worker desk-1 1 2

    Exit codes: 0 done, 1 not all were held by the worker, 2 wrong usage, 3 the
    store does not answer.
    """
    done = _run(context, lambda queue: queue.acknowledge(worker, ids))
    not_held = [entry_id for entry_id in ids if entry_id not in done]
    _print([json.dumps({"acknowledged": done, "not_held": not_held})] if as_json else done)
    if not_held:
        end_command(ExitCode.BAD_INPUT, f"Not held by {worker}: {', '.join(not_held)}.")


@rechecks.command()
def export(context: typer.Context, *, as_json: JsonLinesOption = False) -> None:
    """Print all reports ever stored, in the order of arrival.

    Examples:
      shop-directory rechecks export
      shop-directory rechecks export --json > reports.ndjson

    Exit codes: 0 done, 2 wrong usage, 3 the store does not answer.
    """

    async def print_all(queue: ReportQueue) -> None:
        async for report in queue.export():
            _print([_report_line(report, as_json=as_json)])

    _run(context, print_all)


def _run(context: typer.Context, ask: Callable[[ReportQueue], Awaitable[_Answer]]) -> _Answer:
    from service.settings.stores import StoreSettings

    try:
        return answer_of(loaded(StoreSettings, _OPTIONS, **context.obj), ask)
    except ReportsUnavailable as error:
        end_command(ExitCode.UNAVAILABLE, f"The reports are not available: {error}.")


def answer_of(settings: "StoreSettings", ask: Callable[[ReportQueue], Awaitable[_Answer]]) -> _Answer:
    """What the queue of the settings answers; raises ReportsUnavailable."""

    async def answer() -> _Answer:
        queue = open_queue(settings.queue_settings)
        try:
            return await ask(queue)
        finally:
            await queue.close()

    return asyncio.run(answer())


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)


def _report_line(report: Report, *, as_json: bool) -> str:
    fields = _report(report)
    return json.dumps(fields) if as_json else "\t".join(value or _MISSING for value in fields.values())


def _recheck_lines(rechecks: Sequence[Recheck], *, as_json: bool) -> tuple[str, ...]:
    return tuple(json.dumps(_recheck(one)) if as_json else _text(one) for one in rechecks)


def _waiting_lines(waiting: Waiting, *, as_json: bool) -> tuple[str, ...]:
    if as_json:
        return (json.dumps(_waiting(waiting)),)
    counts = f"{waiting.depth} re-checks wait: {waiting.lag} not claimed yet, {waiting.pending} held by workers"
    lines = [f"{counts}; {waiting.dead} dead letters."]
    lines += [f"worker {one.name}: holds {one.pending}, idle {one.idle_seconds:.0f} s" for one in waiting.workers]
    lines += _recheck_lines(waiting.rechecks, as_json=False)
    if waiting.dead_letters:
        lines += ["Dead letters:", *_recheck_lines(waiting.dead_letters, as_json=False)]
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
    return "\t".join((*head, _report_line(recheck.report, as_json=False)))
