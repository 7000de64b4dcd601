"""The operator's commands for re-checks: `shop-directory rechecks ...`.

Exit codes: 0 done, 1 not everything was acknowledged, 2 wrong usage, 3 the store did not confirm. Answers go to
standard output, one entry a line; everything else goes to standard error.
"""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

import typer

from index_mappings.environment.reading import SettingsError
from service.reports.failures import ReportsUnavailable
from service.reports.opening import QueueKind, open_queue
from service.reports.printing import recheck_lines, report_line, waiting_lines
from service.reports.protocol import ReportQueue
from service.store_settings import StoreSettings

_NOT_ALL_EXIT: Final = 1
_USAGE_EXIT: Final = 2
_STORE_EXIT: Final = 3
_WORKER: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_Answer = TypeVar("_Answer")


def _named(worker: str) -> str:
    if not _WORKER.fullmatch(worker):
        raise typer.BadParameter("must be 1 to 64 letters, digits, dots, underscores, hyphens or @")
    return worker


JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
WorkerOption = Annotated[str, typer.Option(callback=_named, help="The worker's name, its own and always the same.")]
CountOption = Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")]

rechecks = typer.Typer(
    help="Look after the queue of re-checks that reports have filled.", no_args_is_help=True, add_completion=False
)


@rechecks.callback()
def _rechecks(
    context: typer.Context,
    kind: Annotated[
        QueueKind | None, typer.Option(help="A file of this machine, or Redis. [env: SHOP_DIRECTORY_REPORTS]")
    ] = None,
    path: Annotated[
        Path | None, typer.Option(help="The file, when embedded. [env: SHOP_DIRECTORY_REPORTS_FILE]")
    ] = None,
    # A password in an option would show in the list of processes: better in the environment or a file.
    url: Annotated[
        str | None, typer.Option(help="The Redis, when there is one. [env: SHOP_DIRECTORY_REDIS_URL]")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="What all keys in Redis begin with. [env: SHOP_DIRECTORY_REDIS_PREFIX]")
    ] = None,
) -> None:
    """Look after the queue of re-checks that reports have filled.

    Settings are the service's own, from the environment.
    """
    context.obj = {"reports": kind, "reports_file": path, "redis_url": url, "redis_prefix": prefix}


@rechecks.command("list")
def list_command(context: typer.Context, count: CountOption = 100, *, as_json: JsonOption = False) -> None:
    """Show how much waits, who holds what, the oldest re-checks and the dead letters.

    Example: shop-directory rechecks list --count 20
    """
    waiting = _run(context, lambda queue: queue.waiting(count))
    _print(waiting_lines(waiting, as_json=as_json))


@rechecks.command()
def claim(
    context: typer.Context,
    worker: WorkerOption,
    count: CountOption = 10,
    idle: Annotated[float, typer.Option(min=0, help="Take over what a worker has held for so many seconds.")] = 600.0,
    *,
    as_json: JsonOption = False,
) -> None:
    """Take re-checks: new ones first, then those that another worker left lying.

    Example: shop-directory rechecks claim --worker desk-1 --count 5 --json
    """
    claimed = _run(context, lambda queue: queue.claim(worker, count, idle))
    _print(recheck_lines(claimed, as_json=as_json))


@rechecks.command()
def ack(
    context: typer.Context,
    worker: WorkerOption,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids that the worker has claimed.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Take re-checks that are done off the queue, and print the ids of those that were.

    Example: shop-directory rechecks ack --worker desk-1 17 18
    """
    done = _run(context, lambda queue: queue.acknowledge(worker, ids))
    left = [entry_id for entry_id in ids if entry_id not in done]
    _print([json.dumps({"acknowledged": done, "not_held": left})] if as_json else done)
    if left:
        _stop(_NOT_ALL_EXIT, f"Not held by {worker}: {', '.join(left)}.")


@rechecks.command()
def export(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Print all reports ever, in the order in which they came.

    Example: shop-directory rechecks export --json > reports.ndjson
    """

    async def print_all(queue: ReportQueue) -> None:
        async for report in queue.export():
            _print([report_line(report, as_json=as_json)])

    _run(context, print_all)


def _run(context: typer.Context, ask: Callable[[ReportQueue], Awaitable[_Answer]]) -> _Answer:
    """The queue's answer; the queue is opened for it and closed after it."""
    try:
        settings = StoreSettings.load(**context.obj)
    except SettingsError as error:
        _stop(_USAGE_EXIT, str(error))

    async def opened() -> _Answer:
        queue = open_queue(settings.queue_settings)
        try:
            return await ask(queue)
        finally:
            await queue.close()

    try:
        return asyncio.run(opened())
    except ReportsUnavailable as error:
        _stop(_STORE_EXIT, f"The reports are not available: {error}.")


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)


def _stop(code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(code)
