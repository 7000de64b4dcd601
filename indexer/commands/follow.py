"""`shop-directory index follow`."""

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from indexer.commands import parts
from indexer.jobs.defaults import MICRO_BATCH, RECONCILE_RATE
from shop_directory.settings.commands import DataDirOption, EngineOption, ExitCode, JsonOption, end_command

if TYPE_CHECKING:
    from indexer.jobs.following import FollowSummary
    from indexer.jobs.update import ChangeCounts
    from indexer.reconcile.generation import FaultReport
    from indexer.settings import IndexerSettings
    from indexer.sources.protocol import ChangeSource

# The p99 of suggest requests of a million shops was 4.4 ms with 0, 3.3 with 5, and 2.0 with 10.
_NICENESS: Final = 10


_pace: Final = partial(parts.option_of, "Its pace")
ChangesOption = Annotated[str | None, parts.indexed("--changes", "A file of changes, or - for standard input.")]
IntervalOption = Annotated[float, _pace("--interval", "Seconds between two reads of changes.", min=0.05)]
MicroBatchOption = Annotated[
    int, _pace("--micro-batch", "The most changes that readers see together.", min=1, max=100_000)
]
ReconcileOption = Annotated[
    float, _pace("--reconcile", "Documents a second to compare, and repair, between changes; 0 for none.", min=0)
]


def follow_command(
    catalogue: parts.CatalogueOption = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    sql: parts.SqlOption = False,
    mapping: parts.MappingOption = None,
    changes: ChangesOption = None,
    lenient: parts.LenientOption = False,
    interval: IntervalOption = 1.0,
    micro_batch: MicroBatchOption = MICRO_BATCH,
    reconcile: ReconcileOption = RECONCILE_RATE,
    once: Annotated[bool, typer.Option("--once", help="End when no more changes are available.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Apply changes to the live generation as they arrive, until it is stopped.

    On SIGTERM and Ctrl-C it finishes the current changes and ends. Changes that
    can't be applied are refused: they are written to dead-letters.ndjson of the
    state directory, and with --once the exit code is 1. It is 7 where a file of
    changes was rotated away before it was read, until a build from a catalogue
    that was written since.

    Examples:
      shop-directory index follow --catalogue ./my-shops
      shop-directory index follow --catalogue ./my-shops --once --json
      tail -F changes.ndjson | shop-directory index follow --changes -

    Exit codes: 0 done, 1 the changes or the state are not usable or changes were
    refused, 2 wrong usage, 3 the engine failed, 4 another job is running, 7
    changes are missing.
    """
    from indexer.jobs.following import Following, FollowOptions
    from indexer.reconcile.live import VerificationRounds

    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    # As in all other logs: local time repeats an hour when daylight saving ends.
    form.converter = time.gmtime
    logged = logging.StreamHandler(sys.stderr)
    logged.setFormatter(form)
    logging.basicConfig(level=logging.INFO, handlers=[logged])
    with parts.opened("Following ended", engine, data_dir, state_dir) as (settings, sink, states):
        source = _changes(settings, catalogue, mapping, changes, sql=sql, lenient=lenient)
        options = FollowOptions(interval=interval, once=once, micro_batch=micro_batch)
        following = Following(sink, states, source, options, on_batch=_log_batch)
        rounds = VerificationRounds(sink, states, reconcile)
        verifying = rounds.running() if reconcile and not once else nullcontext()
        with closing(source), _low_priority(), stopped_by_signals() as stop_event, verifying:
            summary = following.run(stop_event)
    found = rounds.found
    print(json.dumps(_as_wire(summary, found)) if as_json else _as_text(summary, found))
    if once and summary.changes.refused:
        first = f", first {summary.changes.first_refused}" if summary.changes.first_refused else ""
        message = f"{summary.changes.refused:,} changes were refused{first}: see {states.dead_letters} for all."
        end_command(ExitCode.BAD_INPUT, message)
    if once and summary.missing is not None:
        end_command(ExitCode.INCOMPLETE, f"{str(summary.missing).capitalize()}.")


def _changes(
    settings: "IndexerSettings",
    catalogue: Path | None,
    mapping: Path | None,
    changes: str | None,
    *,
    sql: bool,
    lenient: bool,
) -> "ChangeSource":
    from indexer.sources.changes import ChangeFile, ChangeStream

    if changes == "-":
        return ChangeStream(sys.stdin.buffer, "standard input", lenient=lenient)
    if changes is not None and not sql:
        return ChangeFile(Path(changes), lenient=lenient)
    if changes is None and catalogue is None and not sql:
        raise typer.BadParameter("name the changes: by --changes, or by the --catalogue or --sql that they belong to")
    path = None if changes is None else Path(changes)
    source = parts.source_of(settings, catalogue, sql=sql, mapping=mapping, changes=path, lenient=lenient).changes()
    if source is None:
        raise typer.BadParameter("this catalogue has no changes: name a file by --changes, or map a version column")
    return source


def _log_batch(done: "ChangeCounts") -> None:
    logging.getLogger(__name__).info(
        "%d changes applied, %d older, %d refused%s; %d documents written, %d removed",
        done.applied, done.older, done.refused, done.details, done.written, done.removed,
    )  # fmt: skip


@contextmanager
def _low_priority() -> Iterator[None]:
    """Give way to the service, where it runs on the same machine: a suggest request must not wait for a commit."""
    former = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(former, _NICENESS))
    try:
        yield
    finally:
        with suppress(PermissionError):  # only root may, and only a caller that goes on needs it
            os.setpriority(os.PRIO_PROCESS, 0, former)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, so that the job ends after the current micro-batch."""
    stop_event = threading.Event()
    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in former:
        # Set in a thread: this one may be in `stop_event.wait`, and hold the lock that `set` needs.
        signal.signal(number, lambda *_: threading.Thread(target=stop_event.set).start())
    try:
        yield stop_event
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _as_wire(summary: "FollowSummary", found: "FaultReport") -> dict[str, object]:
    changes = summary.changes
    return {
        "generation": summary.generation,
        **changes.as_wire(),
        "documents_written": changes.written,
        "documents_removed": changes.removed,
        "updates": changes.updates,
        "failures": summary.failures,
        "status_failures": summary.status_failures,
        "missing_changes": None if summary.missing is None else asdict(summary.missing),
        "reconciled": {"checked": found.checked, "found": found.total, "repaired": found.repaired},
        "seconds": round(summary.seconds, 3),
    }


def _as_text(summary: "FollowSummary", found: "FaultReport") -> str:
    changes = summary.changes
    return (
        f"Followed for {summary.seconds:.1f} s: {changes.applied:,} changes applied, {changes.older:,} older,"
        f" {changes.refused:,} refused{changes.details};"
        f" {changes.written:,} documents written, {changes.removed:,} removed in {changes.updates:,} updates;"
        f" {summary.failures:,} attempts failed. Compared {found.checked:,} documents:"
        f" {found.total:,} differed, {found.repaired:,} were repaired."
    )
