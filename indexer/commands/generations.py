"""`shop-directory index status`, `hide`, `show`, `rollback`, `prune` and `verify`: the live and former generations."""

import json
import logging
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indexer.commands import parts
from indexer.jobs.defaults import VERIFY_RATE
from shop_directory.settings.commands import DataDirOption, EngineOption, ExitCode, JsonOption, end_command

if TYPE_CHECKING:
    from index_mappings.generations import MissingChanges
    from indexer.jobs.shop_visibility import ShopStatus
    from indexer.reconcile.live import Verified
    from indexer.sinks.protocol import Generation, Sink
    from indexer.sources.protocol import ChangeSource, Source
    from indexer.state.state import States

ShopsArgument = Annotated[list[str], typer.Argument(metavar="SHOP...", help="Ids or domains of shops.")]


def status_command(
    shops: Annotated[
        list[str] | None,
        typer.Argument(metavar="SHOP...", help="Ids or domains of shops, to say what is known of them."),
    ] = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the generations, their contents, and whether they can be followed.

    It names the shops that `index hide` has hidden, and warns of changes that are
    missing, as their file was rotated away. With shops it says instead what the
    indexer's state knows of each, hidden ones too, and why one is not shown.

    Examples:
      shop-directory index status
      shop-directory index status --json
      shop-directory index status shop_abc-handel24

    Exit codes: 0 done, 1 nothing is live or a shop is unknown, 2 wrong usage,
    3 the engine failed.
    """
    from indexer.jobs.shop_visibility import marked_shops, shop_statuses
    from indexer.sinks.protocol import GenerationRole

    opened = parts.opened("The generations could not be listed", engine, data_dir, state_dir, make_states=False)
    with opened as (_, sink, states):
        if shops:
            generation, found = shop_statuses(sink, states, shops)
            _print_statuses(generation, found, as_json=as_json)
            raise typer.Exit(ExitCode.BAD_INPUT if any(shop.id is None for shop in found) else ExitCode.DONE)
        location = sink.location
        listed = [_as_wire(found, states) for found in sink.generations()]
        missing, marked = _missing_changes(sink), sorted(marked_shops(states))
    wire = {
        "location": location,
        "generations": listed,
        "missing_changes": None if missing is None else asdict(missing),
        "marked": marked,
    }
    lines = [
        _as_text(listed, location),
        *([] if missing is None else [f"{str(missing).capitalize()}."]),
        *([parts.marked_as_text(marked)] if marked else []),
    ]
    print(json.dumps(wire) if as_json else "\n".join(lines))
    if all(found["role"] != GenerationRole.LIVE.value for found in listed):
        raise typer.Exit(ExitCode.BAD_INPUT)


def _missing_changes(sink: "Sink") -> "MissingChanges | None":
    live = sink.live()
    if live is None or not live.readable:
        return None
    known = sink.reader(live.generation).operations()
    return None if known is None else known.missing


def _as_wire(found: "Generation", states: "States") -> dict[str, Any]:
    stamp = found.stamp
    return {
        "generation": found.name,
        "role": found.role.value,
        "schema_version": None if stamp is None else stamp.schema_version,
        "readable": None if stamp is None else stamp.readable,
        "sequence": None if stamp is None else stamp.sequence,
        "data_as_of": None if stamp is None else stamp.built_at,
        "counts": None if stamp is None else dict(stamp.counts),
        "retired_at": None if found.retired_at is None else found.retired_at.isoformat(),
        "can_be_followed": states.has(found.name),
    }


def _as_text(listed: list[dict[str, Any]], location: str) -> str:
    if not listed:
        return f"There is no generation in {location}: build one by shop-directory index build."
    lines = []
    for found in listed:
        unsealed = "not sealed" if found["role"] == "unfinished" else "its stamp is missing or damaged"
        documents = parts.held(found["counts"] or {}) or unsealed
        state = "can be followed" if found["can_be_followed"] else "can't be followed, its state is lost"
        lines.append(
            f"{found['generation']}  {found['role']:<10}  data as of {found['data_as_of']}: {documents}; {state}"
        )
    return "\n".join(lines)


def hide_command(
    shops: ShopsArgument,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Hide shops, with all that belongs to them, until `show`.

    It marks their ids: they stay hidden in later builds, with --fresh-state too,
    whatever newer records say. A running follower or build applies it within a
    second; without one it is applied at once. A domain hides all shops that claim
    it now.

    Examples:
      shop-directory index hide shop_abc-handel24
      shop-directory index hide abc-handel24.internal shop_acai-da-serra --json

    Exit codes: 0 done, 1 a shop is unknown or nothing is live, 2 wrong usage,
    3 the engine failed, 4 another job is running, which applies it later.
    """
    from indexer.jobs.shop_visibility import set_visibility

    with parts.opened("Not hidden", engine, data_dir, state_dir) as (_, sink, states):
        generation, found = set_visibility(sink, states, shops, public=False, wait=wait)
    _print_statuses(generation, found, as_json=as_json)
    if unknown := [shop.reference for shop in found if shop.id is None]:
        end_command(ExitCode.BAD_INPUT, f"Unknown, so not hidden: {', '.join(unknown)}. Name ids or domains.")


def show_command(
    shops: ShopsArgument,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Show shops that `index hide` has hidden, with all that belongs to them.

    It is applied as by `index hide`, with the newest records that the indexer
    has. A shop whose record says that it is not public stays hidden.

    Examples:
      shop-directory index show shop_abc-handel24 shop_acai-da-serra

    Exit codes: 0 done, 1 a shop is unknown or can't be shown, or nothing is live,
    2 wrong usage, 3 the engine failed, 4 another job is running, which applies it
    later.
    """
    from indexer.jobs.shop_visibility import set_visibility

    with parts.opened("Not shown", engine, data_dir, state_dir) as (_, sink, states):
        generation, found = set_visibility(sink, states, shops, public=True, wait=wait)
    _print_statuses(generation, found, as_json=as_json)
    if failed := dict.fromkeys(shop.id or shop.reference for shop in found if not shop.shown):
        end_command(ExitCode.BAD_INPUT, f"Still not shown, for the reason above: {', '.join(failed)}.")


def _print_statuses(generation: str, found: Sequence["ShopStatus"], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"generation": generation, "shops": [asdict(shop) for shop in found]}, ensure_ascii=False))
    else:
        print("\n".join(map(_shop_as_text, found)))


def _shop_as_text(shop: "ShopStatus") -> str:
    verdict = f"{shop.id or shop.reference}: {'shown' if shop.reason is None else f'not shown: {shop.reason}'}"
    is_taken = (shop.visibility != "public" or shop.marked) and shop.domain_holder is not None
    holder = f", which {shop.domain_holder} has" if is_taken else ""
    origin = "a change" if shop.line is None else f"line or row {shop.line} of the catalogue"
    facts = (
        f"{shop.domain}{holder}" if shop.domain else "",
        *(f"{name} {value}" for name, value in shop.order.items()),
        f"from {origin}" if shop.origin else "",
        f"with {parts.counted(shop.records)}" if shop.records else "",
        "its documents are still to be written" if shop.pending else "",
    )
    return f"{verdict}; {'; '.join(filter(None, facts))}" if any(facts) else verdict


def rollback_command(
    catalogue: parts.CatalogueOption = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    sql: parts.SqlOption = False,
    mapping: parts.MappingOption = None,
    changes: parts.ChangesOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be live.")] = False,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Publish the previous generation again, without shops hidden since.

    Changes since then are applied first: name the same source as for building and
    following.

    Examples:
      shop-directory index rollback --dry-run
      shop-directory index rollback --catalogue ./my-shops

    Exit codes: 0 done, 1 the changes are not usable, 2 wrong usage, 3 the engine
    failed or there is no previous generation, 4 another job is running.
    """
    from indexer.jobs.rollback import roll_back
    from indexer.sources.protocol import changes_of

    opened = parts.opened("Nothing was rolled back", engine, data_dir, state_dir)
    with opened as (settings, sink, states), ExitStack() as stack:
        since: ChangeSource | None = None
        if catalogue is not None or sql or changes is not None:
            source = parts.source_of(settings, catalogue, sql=sql, mapping=mapping, changes=changes)
            since = stack.enter_context(changes_of(source))
        done = roll_back(sink, states, since, wait=wait, dry_run=dry_run)
    wire = {
        "generation": done.stamp.generation,
        "published": not dry_run,
        "counts": dict(done.stamp.counts),
        "replaced": done.replaced,
        "changes": {**done.changes.as_wire(), "carried_over": done.carried_over},
    }
    text = (
        f"{'Would publish' if dry_run else 'Published'} generation {done.stamp.generation} again instead of"
        f" {done.replaced}: {parts.held(done.stamp.counts)}."
        f" {done.changes.applied + done.carried_over:,} newer records were applied first."
    )
    print(json.dumps(wire) if as_json else text)


def prune_command(
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    previous: Annotated[
        bool, typer.Option("--previous", help="Remove the previous one too, which makes a rollback impossible.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Remove generations that were retired at least a minute ago.

    The live one and the previous one are retained.

    Examples:
      shop-directory index prune --dry-run
      shop-directory index prune --json

    Exit codes: 0 done, 1 the state directory is not usable, 2 wrong usage, 3 the
    engine failed, 4 another job is running.
    """
    from indexer.jobs.build import is_due, prune
    from indexer.sinks.lease import holding

    now = datetime.now(UTC)
    with parts.opened("Nothing was removed", engine, data_dir, state_dir) as (_, sink, states):
        if dry_run:
            removed = tuple(
                found.name for found in sink.generations() if is_due(found, now, keep_previous=not previous)
            )
        else:
            with holding(sink.lease(), "prune", wait):
                removed = prune(sink, states, now, keep_previous=not previous)
    named = ", ".join(removed) or "nothing"
    text = f"{'Would remove' if dry_run else 'Removed'} {named}."
    print(json.dumps({"removed_generations": list(removed), "dry_run": dry_run}) if as_json else text)


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
    print(json.dumps(wire) if as_json else _verified_as_text(done))
    if done.found.remaining:
        raise typer.Exit(ExitCode.DIFFERENT)


def _verified_as_text(done: "Verified") -> str:
    found = done.found
    head = (
        f"Compared {found.checked:,} documents of generation {done.generation} in {found.seconds:.1f} s:"
        f" {found.total:,} differ, {found.repaired:,} were repaired."
    )
    return "\n".join([head, *(f"{number:,} {fault.value} in {kind}" for fault, kind, number in found.ordered())])
