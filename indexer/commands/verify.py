"""`shop-directory index verify`."""

import json
import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from indexer.commands import parts
from indexer.jobs.defaults import VERIFY_RATE
from shop_directory.settings.commands import DataDirOption, EngineOption, ExitCode, JsonOption

if TYPE_CHECKING:
    from indexer.reconcile.live import Verified
    from indexer.sources.protocol import Source


def verify_command(
    catalogue: parts.CatalogueOption = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    sql: parts.SqlOption = False,
    mapping: parts.MappingOption = None,
    changes: parts.ChangesOption = None,
    lenient: parts.LenientOption = False,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Skip bad records of the source.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what differs.")] = False,
    rate: Annotated[float, typer.Option("--rate", min=1, help="Documents a second, at most.")] = VERIFY_RATE,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Compare the live index with the indexer's state, and with the source where one is named.

    Examples:
      shop-directory index verify
      shop-directory index verify --catalogue ./my-shops --repair --rate 2000

    Exit codes: 0 nothing differs any more, 1 the source or the state is not
    usable, 2 wrong usage, 3 the engine failed, 4 another job is running,
    6 something differs and was not repaired.
    """
    from indexer.progress import stage
    from indexer.reconcile.live import VerifyOptions, verify_live

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s", stream=sys.stderr)
    with parts.opened("The verification is incomplete", engine, data_dir, state_dir) as (settings, sink, states):
        source: Source | None = None
        if catalogue is not None or sql:
            source = parts.source_of(settings, catalogue, sql=sql, mapping=mapping, changes=changes, lenient=lenient)
        options = VerifyOptions(repair=repair, rate=rate, skip_invalid=skip_invalid, wait=wait)
        live = sink.live()
        total = 0 if live is None else sum(live.counts.values())
        with stage("Comparing", total, "documents") as advance:
            done = verify_live(sink, states, source, options, tick=lambda found: advance(found.checked))
    wire = {"generation": done.generation, **done.found.as_wire()}
    print(json.dumps(wire) if as_json else _as_text(done))
    if done.found.remaining:
        raise typer.Exit(ExitCode.DIFFERENT)


def _as_text(done: "Verified") -> str:
    found = done.found
    head = (
        f"Compared {found.checked:,} documents of generation {done.generation} in {found.seconds:.1f} s:"
        f" {found.total:,} differ, {found.repaired:,} were repaired."
    )
    return "\n".join([head, *(f"{count.number:,} {count.fault.value} in {count.kind}" for count in found.faults)])
