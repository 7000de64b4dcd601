"""What commands share: options, the sink, states and sources that they name, and the exit codes of failures."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from shop_directory.settings.commands import WHERE, ExitCode, end_command, loaded, setting_option

if TYPE_CHECKING:
    from indexer.records.problems import ProblemLog
    from indexer.settings import IndexerSettings
    from indexer.sinks.protocol import Sink
    from indexer.sources.protocol import Source
    from indexer.state.state import States

SAMPLE: Final = Path(__file__).parent.parent / "sample"


def option_of(panel: str, name: str, text: str, **more: Any) -> Any:  # noqa: ANN401 - what Typer takes, and its own type
    """An option in a panel of `--help`."""
    return typer.Option(name, help=text, rich_help_panel=panel, **more)


indexed: Final = partial(option_of, "What is indexed")


StateDirOption = Annotated[
    Path | None,
    setting_option(
        "STATE_DIR",
        "alongside the embedded index",
        "The private directory of the indexer's state.",
        "--state-dir",
        rich_help_panel=WHERE,
    ),
]
CatalogueOption = Annotated[
    Path | None,
    indexed(
        "--catalogue",
        "A directory of NDJSON files, or one file of shops.",
        show_default="the invented sample",
        readable=False,  # one that can't be read is bad input, like one that is not there, and no wrong usage
    ),
]
SqlOption = Annotated[bool, indexed("--sql", "Read the catalogue from the database of SHOP_DIRECTORY_SQL_URL.")]
MappingOption = Annotated[
    Path | None,
    indexed("--mapping", r"A file that maps the tables of the database. \[env: SHOP_DIRECTORY_SQL_MAPPING]"),
]
LenientOption = Annotated[bool, indexed("--lenient", "Ignore unknown fields and files.")]
ChangesOption = Annotated[
    Path | None, indexed("--changes", "The file of changes.", show_default="changes.ndjson of the catalogue")
]
WaitOption = Annotated[float, typer.Option("--wait", help="Seconds to wait while another job is running.")]


@contextmanager
def opened(
    outcome: str, engine: str | None, data_dir: Path | None, state_dir: Path | None, *, make_states: bool = True
) -> Iterator[tuple["IndexerSettings", "Sink", "States"]]:
    """The settings of the environment, which these options override, with the sink and the states that they name.

    Failures end the command as by `exit_on_failure`; `make_states` makes the directory of the states if it is missing.
    """
    from indexer.settings import IndexerSettings
    from indexer.state.state import States
    from shop_directory.settings.reading import unknown_variables

    settings = loaded(IndexerSettings, engine=engine, data_dir=data_dir, state_dir=state_dir)
    for line in (*unknown_variables(type(settings)), *settings.cautions()):
        print(line, file=sys.stderr)
    with exit_on_failure(outcome), closing(sink_of(settings)) as sink:
        yield settings, sink, States(settings.states, sink.location, make=make_states)


def sink_of(settings: "IndexerSettings") -> "Sink":
    """Open the sink of the engine that the settings name."""
    if settings.engine == "embedded":
        from indexer.sinks.embedded.sink import EmbeddedSink

        return EmbeddedSink(settings.data_dir)
    from indexer.sinks.opensearch.sink import OpenSearchSink
    from indexer.sinks.opensearch.typeahead import TypeaheadOptions

    return OpenSearchSink(
        settings.opensearch_urls,
        settings.index_prefix,
        settings.opensearch_shards,
        settings.states / "dead-letters.ndjson",
        replicas=settings.replicas,
        access=settings.cluster_access,
        typeahead=TypeaheadOptions(
            settings.typeaheads, settings.typeahead_readers, settings.typeahead_rate_mb * 1024**2
        ),
    )


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
            end_command(ExitCode.USAGE, "--mapping goes with --sql.")
        from indexer.records.problems import CatalogueError
        from indexer.sources.ndjson import NdjsonCatalogue

        if catalogue is not None and not catalogue.exists():
            raise CatalogueError(
                f"there is no catalogue at {catalogue}, which --catalogue names: give a directory of NDJSON files or "
                "one file of shops"
            )
        if changes is not None and not changes.exists():
            raise CatalogueError(f"there is no file of changes at {changes}, which --changes names")
        return NdjsonCatalogue(catalogue or SAMPLE, lenient=lenient, changes=changes)
    if catalogue is not None or changes is not None:
        end_command(ExitCode.USAGE, "--sql has its own records and changes: leave --catalogue and --changes out.")
    if settings.sql_url is None:
        end_command(ExitCode.USAGE, "--sql needs the database in SHOP_DIRECTORY_SQL_URL.")
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
        end_command(ExitCode.REFUSED, f"{outcome}: {error}.")
    except LeaseHeldError as error:
        end_command(ExitCode.BUSY, f"{outcome}: {error}.")
    except CatalogueError as error:
        problems = getattr(error, "problems", None)
        if isinstance(problems, ProblemLog):
            list_problems(problems)
        end_command(ExitCode.BAD_INPUT, f"{outcome}: {error}.")
    except (SinkError, DiskFullError) as error:
        end_command(ExitCode.UNAVAILABLE, f"{outcome}: {error}.")


def counted(counts: Mapping[str, int]) -> str:
    """The counts of documents or records by kind, as text."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items())


def held(counts: Mapping[str, int]) -> str:
    """The counts of a generation, without its facts: each shop has a document of them, whatever is known of it."""
    return counted({kind: count for kind, count in counts.items() if kind != "facts"})


def marked_as_text(marked: Sequence[str]) -> str:
    """Shops that are marked, by id, for the operator who marked them."""
    return f"Hidden by `index hide` until `index show`: {', '.join(marked)}."


def list_problems(problems: "ProblemLog") -> None:
    """Print the problems of records to standard error."""
    from indexer.records.problems import LISTED

    for found in problems.listed:
        print(found, file=sys.stderr)
    if problems.count > LISTED:
        print(f"... and {problems.count - LISTED} more problems", file=sys.stderr)
