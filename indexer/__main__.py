"""The indexer's commands: `shop-directory index ...`.

Exit codes: 0 done, 1 the catalogue is not usable, 2 wrong usage, 3 the engine failed. In every case but 0 the live
generation is what it was.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from pydantic import ValidationError

from indexer.build import BuildSummary, build
from indexer.problems import LISTED, CatalogueError, InvalidRecordsError, ProblemLog
from indexer.settings import IndexerSettings
from indexer.sinks.embedded import EmbeddedSink
from indexer.sinks.opensearch import OpenSearchSink
from indexer.sinks.protocol import Sink, SinkError
from indexer.sources.ndjson import NdjsonCatalogue

SAMPLE: Final = Path(__file__).parent / "sample"

_CATALOGUE_EXIT: Final = 1
_USAGE_EXIT: Final = 2
_ENGINE_EXIT: Final = 3

index = typer.Typer(help="Build the search indices from a catalogue.", no_args_is_help=True)


@index.callback()
def _index() -> None:
    """Build the search indices from a catalogue."""


@index.command("build")
def build_command(
    catalogue: Annotated[
        Path | None,
        typer.Option(help="A directory of NDJSON files, or one file of shops. The invented sample without it."),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="embedded or opensearch. [env: SHOP_DIRECTORY_ENGINE]")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The embedded engine's directory. [env: SHOP_DIRECTORY_DATA_DIR]")
    ] = None,
    *,
    lenient: Annotated[bool, typer.Option("--lenient", help="Pass over unknown fields and files.")] = False,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Build without bad records.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Build a new generation from the whole catalogue, verify it, and publish it in one step.

    Example: shop-directory index build --catalogue ./my-shops
    """
    given = {name: value for name, value in (("engine", engine), ("data_dir", data_dir)) if value is not None}
    settings = _settings(given)
    sink = _sink(settings)
    try:
        source = NdjsonCatalogue(catalogue or SAMPLE, lenient=lenient)
        summary = build(source, sink, skip_invalid=skip_invalid)
    except InvalidRecordsError as error:
        _list(error.problems)
        _stop(_CATALOGUE_EXIT, f"Nothing was built: {error}.")
    except CatalogueError as error:
        _stop(_CATALOGUE_EXIT, f"Nothing was built: {error}.")
    except SinkError as error:
        _stop(_ENGINE_EXIT, f"Nothing was published: {error}.")
    finally:
        sink.close()
    _list(summary.problems)
    print(json.dumps(_as_wire(summary)) if as_json else _as_text(summary))


def _settings(given: dict[str, Any]) -> IndexerSettings:
    try:
        return IndexerSettings(**given)
    except ValidationError as error:
        wrong = ", ".join(f"SHOP_DIRECTORY_{'_'.join(map(str, part['loc'])).upper()}" for part in error.errors())
        _stop(_USAGE_EXIT, f"Wrong setting: {wrong} ({error.errors()[0]['msg']}).")


def _sink(settings: IndexerSettings) -> Sink:
    if settings.engine == "embedded":
        return EmbeddedSink(settings.data_dir)
    urls = [url.strip() for url in settings.opensearch_urls.split(",") if url.strip()]
    return OpenSearchSink(urls, settings.index_prefix, settings.opensearch_shards)


def _list(problems: ProblemLog) -> None:
    for problem in problems.listed:
        print(problem, file=sys.stderr)
    if problems.count > LISTED:
        print(f"... and {problems.count - LISTED} more problems", file=sys.stderr)


def _stop(code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(code)


def _as_wire(summary: BuildSummary) -> dict[str, Any]:
    return {
        "generation": summary.stamp.generation,
        "counts": dict(summary.stamp.counts),
        "read": dict(summary.read),
        "left_out": dict(summary.left_out),
        "not_public": summary.not_public,
        "superseded": summary.superseded,
        "lost_domain": summary.lost_domain,
        "disputed_categories": summary.disputed_categories,
        "skipped_invalid": summary.problems.records,
        "notes": list(summary.notes),
        "removed_generations": list(summary.removed),
        "seconds": round(summary.seconds, 3),
    }


def _as_text(summary: BuildSummary) -> str:
    held = ", ".join(f"{count:,} {kind}" for kind, count in summary.stamp.counts.items())
    published = f"Published generation {summary.stamp.generation} in {summary.seconds:.1f} s: {held}."
    shops = (
        f"Read {summary.read['shops']:,} shops: {summary.not_public:,} not public, {summary.superseded:,} superseded,"
        f" {summary.lost_domain:,} without their domain; {summary.problems.records:,} bad records passed over."
    )
    others = [
        f"Read {count:,} {kind}: {summary.left_out[kind]:,} of no public shop."
        for kind, count in summary.read.items()
        if kind in summary.left_out
    ]
    return "\n".join([published, shops, *others, *summary.notes])


if __name__ == "__main__":
    index()
