"""What commands share: options, the sink, states and sources that they name, and the exit codes of failures."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from shop_directory.settings.commands import WHERE, ExitCode, problem

if TYPE_CHECKING:
    from indexer.records.problems import ProblemLog
    from indexer.settings import IndexerSettings
    from indexer.sinks.protocol import Sink
    from indexer.sources.protocol import Source
    from indexer.state.state import States

SAMPLE: Final = Path(__file__).parent.parent / "sample"

_WHAT: Final = "What is indexed"

StateDirOption = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        show_default="alongside the embedded index",
        help=r"The private directory of the indexer's state. \[env: SHOP_DIRECTORY_STATE_DIR]",
        rich_help_panel=WHERE,
    ),
]
CatalogueOption = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        show_default="the invented sample",
        help="A directory of NDJSON files, or one file of shops.",
        rich_help_panel=_WHAT,
    ),
]
SqlOption = Annotated[
    bool,
    typer.Option(
        "--sql", help="Read the catalogue from the database of SHOP_DIRECTORY_SQL_URL.", rich_help_panel=_WHAT
    ),
]
MappingOption = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        help=r"A file that maps the tables of the database. \[env: SHOP_DIRECTORY_SQL_MAPPING]",
        rich_help_panel=_WHAT,
    ),
]
LenientOption = Annotated[
    bool, typer.Option("--lenient", help="Ignore unknown fields and files.", rich_help_panel=_WHAT)
]
ChangesOption = Annotated[
    Path | None,
    typer.Option(
        "--changes",
        show_default="changes.ndjson of the catalogue",
        help="The file of changes.",
        rich_help_panel=_WHAT,
    ),
]
WaitOption = Annotated[float, typer.Option("--wait", help="Seconds to wait while another job is running.")]


def settings_of(engine: str | None, data_dir: Path | None, state_dir: Path | None) -> "IndexerSettings":
    """The settings of the environment, which the command's options override."""
    from indexer.settings import IndexerSettings
    from shop_directory.settings.reading import SettingsError, unknown_variables

    try:
        settings = IndexerSettings.load(engine=engine, data_dir=data_dir, state_dir=state_dir)
    except SettingsError as error:
        stop(ExitCode.USAGE, str(error))
    for line in (*unknown_variables(IndexerSettings), *settings.cautions()):
        print(line, file=sys.stderr)
    return settings


@contextmanager
def opened(settings: "IndexerSettings", *, make_states: bool = True) -> Iterator[tuple["Sink", "States"]]:
    """Open the sink and the states, and close the sink at the end.

    `make_states` says whether to make the directory of the states where it is missing.
    """
    from indexer.state.state import States

    if settings.engine == "embedded":
        from indexer.sinks.embedded.sink import EmbeddedSink

        sink: Sink = EmbeddedSink(settings.data_dir)
    else:
        from indexer.sinks.opensearch.sink import OpenSearchSink
        from indexer.sinks.opensearch.typeahead import TypeaheadOptions

        letters = settings.states / "dead-letters.ndjson"
        sink = OpenSearchSink(
            settings.opensearch_urls,
            settings.index_prefix,
            settings.opensearch_shards,
            letters,
            replicas=settings.replicas,
            access=settings.cluster_access,
            typeahead=TypeaheadOptions(
                settings.typeaheads, settings.typeahead_readers, settings.typeahead_rate_mb * 1024**2
            ),
        )
    with closing(sink):
        yield sink, States(settings.states, sink.location, make=make_states)


def source_of(
    settings: "IndexerSettings",
    catalogue: Path | None,
    *,
    sql: bool,
    mapping: Path | None = None,
    changes: Path | None = None,
    lenient: bool = False,
) -> "Source":
    """The catalogue that options and settings name."""
    if not sql:
        if mapping is not None:
            stop(ExitCode.USAGE, "--mapping goes with --sql.")
        from indexer.records.problems import CatalogueError
        from indexer.sources.ndjson import NdjsonCatalogue

        if catalogue is not None and not catalogue.exists():
            raise CatalogueError(
                f"there is no catalogue at {catalogue}, which --catalogue names: give a directory of NDJSON files or "
                "one file of shops"
            )
        return NdjsonCatalogue(catalogue or SAMPLE, lenient=lenient, changes=changes)
    if catalogue is not None or changes is not None:
        stop(ExitCode.USAGE, "--sql has its own records and changes: leave --catalogue and --changes out.")
    if settings.sql_url is None:
        stop(ExitCode.USAGE, "--sql needs the database in SHOP_DIRECTORY_SQL_URL.")
    from indexer.sources.sql.catalogue import SqlCatalogue
    from indexer.sources.sql.tables import load_mapping

    path = mapping or settings.sql_mapping
    return SqlCatalogue(
        settings.sql_url.get_secret_value(), None if path is None else load_mapping(path), lenient=lenient
    )


@contextmanager
def exit_on_failure(outcome: str) -> Iterator[None]:
    """End the command with a failure's exit code and message, which begins with `outcome`: "Nothing was published"."""
    from indexer.disk_space import DiskFullError, full_disk_as_error
    from indexer.jobs.build import AcceptanceFailedError, ShrinkError
    from indexer.records.problems import CatalogueError, ProblemLog
    from indexer.sinks.failures import SinkError
    from indexer.sinks.lease import LeaseHeldError

    try:
        with full_disk_as_error():
            yield
    except (ShrinkError, AcceptanceFailedError) as error:
        stop(ExitCode.REFUSED, f"{outcome}: {error}.")
    except LeaseHeldError as error:
        stop(ExitCode.BUSY, f"{outcome}: {error}.")
    except CatalogueError as error:
        problems = getattr(error, "problems", None)
        if isinstance(problems, ProblemLog):
            list_problems(problems)
        stop(ExitCode.BAD_INPUT, f"{outcome}: {error}.")
    except (SinkError, DiskFullError) as error:
        stop(ExitCode.UNAVAILABLE, f"{outcome}: {error}.")


def stop(exit_code: ExitCode, message: str) -> NoReturn:
    """End the command with a message on standard error."""
    print(problem(exit_code, message), file=sys.stderr)
    raise typer.Exit(exit_code)


def list_problems(problems: "ProblemLog") -> None:
    """Print the problems of records to standard error."""
    from indexer.records.problems import LISTED

    for found in problems.listed:
        print(found, file=sys.stderr)
    if problems.count > LISTED:
        print(f"... and {problems.count - LISTED} more problems", file=sys.stderr)
