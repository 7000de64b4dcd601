"""`shop-directory export`: the public catalogue as files that others may mirror."""

import json
from pathlib import Path
from typing import Annotated

import typer

from indexer.commands import parts
from indexer.records.problems import CatalogueError
from shop_directory.settings.commands import DataDirOption, EngineOption, JsonOption


def export_command(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="A new directory, or an earlier export.")],
    engine: EngineOption = None,
    data_dir: DataDirOption = None,
    state_dir: parts.StateDirOption = None,
    *,
    licence: Annotated[
        Path | None,
        typer.Option("--licence", help="The text of the licence under which others may use it, to be copied."),
    ] = None,
    with_trust: Annotated[
        bool, typer.Option("--with-trust", help="Write measured facts too, which callers get with a token only.")
    ] = False,
    wait: parts.WaitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Write the public catalogue of the live generation, for others to mirror.

    It is a catalogue of NDJSON files with a manifest: shops, coupons, offers,
    shipping and policies, as callers get them now. It has no shop that is not
    public, no affiliate data, and no code that is rejected, expired, reserved or
    blocked anywhere. A follower goes on during the export.

    Examples:
      shop-directory export ./public
      shop-directory export ./public --with-trust --json

    Exit codes: 0 done, 1 nothing is live or the directory can't be written,
    2 wrong usage, 3 the engine failed or the disk is full, 4 another job is
    running.
    """
    from indexer.catalogue.export import ExportOptions, export

    opened = parts.opened("Nothing was exported", engine, data_dir, state_dir, make_states=False)
    with opened as (_, sink, _states):
        try:
            text = None if licence is None else licence.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CatalogueError(f"{licence} can't be read as text") from error
        manifest = export(sink, directory, ExportOptions(with_trust, text, wait))
    if as_json:
        print(json.dumps(manifest))
        return
    listed = ", ".join(f"{file['records']:,} {file['name'].removesuffix('.ndjson')}" for file in manifest["files"])
    left_out = parts.counted(manifest["left_out_coupons"]) or "none"
    print(f"Wrote {listed} of generation {manifest['generation']} to {directory}.")
    print(f"Coupons left out: {left_out}.")
    if licence is None:
        print("No licence is stated: --licence names its text, without which others may not use it.")
