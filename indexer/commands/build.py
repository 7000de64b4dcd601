"""`shop-directory index build`."""

import json
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from indexer.commands import parts
from shop_directory.settings.commands import DataDirOption, EngineOption, JsonOption
from shop_directory.typeahead.preparing import compiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from index_mappings.generations import Stamp
    from indexer.jobs.build import BuildSummary
    from indexer.settings import IndexerSettings

_SAMPLE_NOTE: Final = "The sample's shops are invented: their links end in .internal and lead nowhere."


_safety: Final = partial(parts.option_of, "What may be published")
SkipInvalidOption = Annotated[bool, _safety("--skip-invalid", "Build without bad records.")]
AllowEmptyOption = Annotated[bool, _safety("--allow-empty", "Publish although no shop is public.")]
AllowShrinkOption = Annotated[bool, _safety("--allow-shrink", "Publish however many public shops or records are lost.")]
FreshStateOption = Annotated[
    bool, _safety("--fresh-state", "Ignore versions and deletions from before this catalogue.")
]
AcceptanceOption = Annotated[
    Path | None, _safety("--acceptance", "An NDJSON file of acceptance queries, which must pass before publishing.")
]
DryRunOption = Annotated[bool, _safety("--dry-run", "Read, validate, project and count; write nothing.")]
IfChangedOption = Annotated[
    bool,
    parts.indexed(
        "--if-changed", "Build nothing if the live generation was built from the same catalogue, options and program."
    ),
]


def build_command(
    catalogue: parts.CatalogueOption = None,
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    sql: parts.SqlOption = False,
    mapping: parts.MappingOption = None,
    changes: parts.ChangesOption = None,
    lenient: parts.LenientOption = False,
    skip_invalid: SkipInvalidOption = False,
    allow_empty: AllowEmptyOption = False,
    allow_shrink: AllowShrinkOption = False,
    fresh_state: FreshStateOption = False,
    acceptance: AcceptanceOption = None,
    golden: Annotated[Path | None, typer.Option("--golden", hidden=True)] = None,  # the former name of --acceptance
    dry_run: DryRunOption = False,
    if_changed: IfChangedOption = False,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Build a new generation from the whole catalogue, verify it, and publish it in one step.

    Without a catalogue it indexes an invented sample. Bad records are listed on
    standard error, by file, line and field. Unless the exit code is 0, the live
    generation stays as it was. --if-changed builds if it can't be sure that
    nothing has changed, as with --sql, --acceptance or OpenSearch.

    Examples:
      shop-directory index build
      shop-directory index build --catalogue ./my-shops --if-changed
      shop-directory index build --catalogue ./my-shops --dry-run --json

    Exit codes: 0 done, 1 the catalogue is not usable, 2 wrong usage, 3 the engine
    failed, 4 another job is running, 5 the new generation may not be published.
    """
    from indexer.jobs.build import BuildOptions, build

    opened = parts.opened("Nothing was published", engine, data_dir, state_dir, make_states=not dry_run)
    with opened as (settings, sink, states):
        queries = acceptance or golden
        source = parts.source_of(settings, catalogue, sql=sql, mapping=mapping, changes=changes, lenient=lenient)
        options = BuildOptions(
            skip_invalid=skip_invalid,
            allow_empty=allow_empty,
            allow_shrink=allow_shrink,
            most_shrink=settings.most_shrink,
            logo_hosts=settings.logo_hosts,
            fresh_state=fresh_state,
            dry_run=dry_run,
            if_changed=if_changed and settings.engine == "embedded",
            acceptance=None if queries is None else _acceptance(queries, settings),
            wait=wait,
        )
        with nullcontext() if dry_run or settings.engine != "embedded" else compiling():
            summary = build(source, sink, states, options)
    parts.list_problems(summary.problems)
    if not (sql or catalogue):
        print(_SAMPLE_NOTE, file=sys.stderr)
    print(json.dumps(as_wire(summary)) if as_json else as_text(summary))


def _acceptance(path: Path, settings: "IndexerSettings") -> "Callable[[Stamp], None]":
    """The check of acceptance queries, which is imported where it is used: it imports the engines that are read."""
    from indexer.acceptance import acceptance_check

    return acceptance_check(path, settings, settings.typeaheads)


def as_wire(summary: "BuildSummary") -> dict[str, Any]:
    """The summary as `--json` prints it."""
    catalogue = summary.catalogue
    return {
        "generation": summary.stamp.generation,
        "published": summary.published,
        "unchanged": summary.unchanged,
        "counts": dict(summary.stamp.counts),
        "read": dict(catalogue.read),
        "left_out": dict(catalogue.left_out),
        "not_public": catalogue.not_public,
        "superseded": catalogue.superseded,
        "lost_domain": catalogue.lost_domain,
        "disputed_categories": summary.disputed_categories,
        "skipped_invalid": summary.problems.records,
        "changes": summary.changes.as_wire(),
        "kept": {kind: {"lacking": kept.lacking, "newer": kept.newer} for kind, kept in catalogue.kept.items()},
        "kept_listing": None if summary.kept_listing is None else str(summary.kept_listing),
        "marked": list(summary.marked),
        "notes": list(summary.notes),
        "removed_generations": list(summary.removed),
        "restarts": summary.restarts,
        "seconds": round(summary.seconds, 3),
    }


def as_text(summary: "BuildSummary") -> str:
    """The summary as text."""
    documents = parts.held(summary.stamp.counts)
    if summary.unchanged:
        live = summary.stamp.generation
        return f"Nothing has changed since generation {live} was built: it stays live with {documents}."
    done = f"Published generation {summary.stamp.generation}" if summary.published else "Nothing was written"
    would = "" if summary.published else "; it would hold"
    lines = [f"{done} in {summary.seconds:.1f} s{would}: {documents}."]
    catalogue = summary.catalogue
    lines.append(
        f"Read {catalogue.read['shops']:,} shops: {catalogue.not_public:,} not public,"
        f" {catalogue.superseded:,} superseded, {catalogue.lost_domain:,} without their domain;"
        f" {summary.problems.records:,} bad records skipped."
    )
    lines += [
        f"Read {count:,} {kind}: {catalogue.left_out[kind]:,} of no public shop."
        for kind, count in catalogue.read.items()
        if kind in catalogue.left_out
    ]
    changes = summary.changes
    if changes.applied or changes.older > changes.known or changes.refused:
        counts = f"{changes.applied:,} applied, {changes.older:,} older, {changes.refused:,} refused"
        lines.append(f"Changes: {counts}{changes.details}.")
    if catalogue.kept:
        lines.append(_kept_as_text(summary))
    if summary.marked:
        lines.append(parts.marked_as_text(summary.marked))
    if summary.restarts:
        lines.append("The engine lost an index during the build, which started again with a new generation.")
    if summary.removed:
        lines.append(f"Removed older generations: {', '.join(summary.removed)}.")
    return "\n".join([*lines, *summary.notes])


def _kept_as_text(summary: "BuildSummary") -> str:
    """The records kept from earlier changes, and how to build without them. No id: the shop may not be public (V1)."""
    counts = [
        ", ".join(
            part
            for part, number in (
                (f"{kept.lacking:,} {kind} that this catalogue lacks", kept.lacking),
                (f"{kept.newer:,} {'' if kept.lacking else f'{kind} '}newer than it", kept.newer),
            )
            if number
        )
        for kind, kept in summary.catalogue.kept.items()
    ]
    listed = "" if summary.kept_listing is None else f" {summary.kept_listing} names them."
    return f"Kept from earlier changes: {'; '.join(counts)}. `--fresh-state` builds from the catalogue alone.{listed}"
