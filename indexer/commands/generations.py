"""`shop-directory index status`, `rollback` and `prune`: the generations of an index, or single shops of it."""

import json
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from indexer.commands import parts
from indexer.commands.parts import held
from indexer.commands.shops import print_statuses
from shop_directory.settings.commands import DataDirOption, EngineOption, ExitCode, JsonOption

if TYPE_CHECKING:
    from indexer.sinks.protocol import Generation
    from indexer.sources.protocol import ChangeSource
    from indexer.state.state import States


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
    """List the generations, what they hold, and whether they can be followed.

    With shops it says instead what the indexer's state knows of each, hidden ones
    too, and why one is not shown.

    Examples:
      shop-directory index status
      shop-directory index status --json
      shop-directory index status shop_abc-handel24

    Exit codes: 0 done, 1 nothing is live or a shop is unknown, 2 wrong usage,
    3 the engine failed.
    """
    from indexer.jobs.shop_visibility import shop_statuses
    from indexer.sinks.protocol import Role

    opened = parts.opened("The generations could not be listed", engine, data_dir, state_dir, make_states=False)
    with opened as (_, sink, states):
        if shops:
            generation, found = shop_statuses(sink, states, shops)
            print_statuses(generation, found, as_json=as_json)
            raise typer.Exit(ExitCode.BAD_INPUT if any(shop.id is None for shop in found) else ExitCode.DONE)
        location = sink.location
        listed = [_as_wire(found, states) for found in sink.generations()]
    print(json.dumps({"location": location, "generations": listed}) if as_json else _as_text(listed, location))
    if all(found["role"] != Role.LIVE.value for found in listed):
        raise typer.Exit(ExitCode.BAD_INPUT)


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
    """Publish the previous generation again, without what has been hidden since.

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
        f" {done.replaced}: {held(done.stamp.counts)}."
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
    from indexer.jobs.retention import is_due, prune
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
        documents = held(found["counts"] or {}) or unsealed
        state = "can be followed" if found["can_be_followed"] else "can't be followed, its state is lost"
        lines.append(
            f"{found['generation']}  {found['role']:<10}  data as of {found['data_as_of']}: {documents}; {state}"
        )
    return "\n".join(lines)
