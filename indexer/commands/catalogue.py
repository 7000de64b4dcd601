"""`shop-directory catalogue ...`: write a catalogue and check it, without an index."""

import json
import sys
from collections import Counter
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from indexer.commands.parts import LenientOption, counted, exit_on_failure
from shop_directory.settings.commands import ExitCode, JsonOption, end_command, problems_as_json

if TYPE_CHECKING:
    from indexer.catalogue.csv_shops import CsvShops
    from indexer.catalogue.validation import Validated
    from indexer.records.problems import Problem

_FILES: Final = "The files"
# How many rows with the same fault are named.
_SHOWN: Final = 5

DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="An empty directory, or a new one.")]

catalogue = typer.Typer(help="Write a catalogue, and check it without building an index.", no_args_is_help=True)


@catalogue.callback()
def _catalogue() -> None:
    """Write a catalogue, and check it without building an index."""


def _kinds(incomplete: str) -> list[str]:
    from indexer.catalogue.schema import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


@catalogue.command("schema")
def schema_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            autocompletion=_kinds,
            help="The name of a file without its extension, such as shops; or change.",
        ),
    ] = None,
    *,
    as_json: Annotated[
        bool, typer.Option("--json", callback=problems_as_json, is_eager=True, help="Print it on one line.")
    ] = False,
) -> None:
    """Print the JSON Schema of one kind of record, or of all of them.

    It states the type, the limits and the values of every field. It is made from
    the models of the indexer; docs/catalogue.schema.json is a copy.

    Examples:
      shop-directory catalogue schema
      shop-directory catalogue schema shops

    Exit codes: 0 done, 2 there is no such kind.
    """
    from indexer.catalogue.schema import KINDS, catalogue_schema, record_schema

    if kind is not None and kind not in KINDS:
        end_command(ExitCode.USAGE, f"There is no such kind: name one of {', '.join(KINDS)}.")
    schema = catalogue_schema() if kind is None else record_schema(kind)
    print(json.dumps(schema, indent=None if as_json else 2, ensure_ascii=False))


@catalogue.command("validate")
def validate_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory of NDJSON files, or one file of shops.")],
    *,
    changes: Annotated[
        Path | None,
        typer.Option("--changes", show_default="changes.ndjson of the directory", help="The file of changes."),
    ] = None,
    lenient: LenientOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report everything that is wrong with a catalogue, by file, line and field.

    No value of a shop's record is printed: the shop may not be public. Notes name
    what a build would leave out, and what is valid and hardly meant, such as a
    synonym that no words find. Nothing is built or changed.

    Examples:
      shop-directory catalogue validate ./my-shops
      shop-directory catalogue validate ./my-shops --json

    Exit codes: 0 nothing is wrong, 1 something is wrong or there is no catalogue,
    2 wrong usage, 3 the disk is full.
    """
    from indexer.catalogue.validation import validate

    before = chain(['{"problems": ['], repeat(","))

    def report_as_json(problem: "Problem") -> None:
        """Print each problem when it is found, as there may be many, within one JSON document."""
        entry = {"file": problem.file, "line": problem.line or None, "field": problem.field, "reason": problem.reason}
        print(next(before), json.dumps(entry, ensure_ascii=False), sep="", end="")

    with exit_on_failure("Nothing was validated"):
        done = validate(path, report_as_json if as_json else print, changes=changes, lenient=lenient)
    if as_json:
        print("" if done.problems else next(before), "], ", json.dumps(_as_wire(done), ensure_ascii=False)[1:], sep="")
    else:
        print(_as_text(done))
    if done.problems:
        raise typer.Exit(ExitCode.BAD_INPUT)


@catalogue.command("init")
def init_command(
    directory: DirectoryArgument,
    *,
    as_json: JsonOption = False,
) -> None:
    """Write a small catalogue to start with: each file with a few invented records.

    A README.md explains the files. The catalogue can be built as it is.

    Examples:
      shop-directory catalogue init ./new-shops

    Exit codes: 0 done, 1 the directory is not empty or can't be written, 2 wrong
    usage.
    """
    from indexer.catalogue.new_catalogue import write_starter

    with exit_on_failure("Nothing was written"):
        files = write_starter(directory)
    if as_json:
        print(json.dumps({"directory": str(directory), "files": list(files)}))
        return
    print(f"Wrote {', '.join(files)} to {directory}. Next:")
    _print_next(directory)


MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="COLUMN=FIELD",
        help="The field of a column; without a FIELD the column is left out. Repeatable.",
        rich_help_panel=_FILES,
    ),
]
MapValueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map-value",
        metavar="COLUMN:VALUE=VISIBILITY",
        help="What a value of a status means: public, under_review or removed. Repeatable.",
        rich_help_panel=_FILES,
    ),
]


@catalogue.command("from-csv")
def from_csv_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV whose first line names the columns.")],
    directory: DirectoryArgument,
    *,
    stated: MapOption = None,
    stated_values: MapValueOption = None,
    category: Annotated[
        str | None,
        typer.Option("--category", help="The category of rows without one.", rich_help_panel=_FILES),
    ] = None,
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Leave bad rows out.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a catalogue of shops from a CSV.

    Columns are recognised by their names, such as name, domain or website,
    category and country; the mapping is printed. Several values in a cell are
    separated by |, ; or commas. Shops are public unless there is a column
    visibility. A column that looks like a status, such as active or suspended, has
    to be mapped or left out.

    Examples:
      shop-directory catalogue from-csv shops.csv ./csv-shops
      shop-directory catalogue from-csv list.csv ./list-shops --map Firma=name

    Exit codes: 0 done, 1 the file can't be read, has bad rows, or a status that is
    not mapped, 2 wrong usage.
    """
    from indexer.catalogue.csv_shops import CsvShops

    with exit_on_failure("Nothing was written"):
        shops = CsvShops(file, stated=stated or (), category=category, values=stated_values or ())
        if not as_json:
            print(shops.columns.as_text())
        shops.refuse_unclear_status(skip_invalid=skip_invalid)
        written, hidden, bad = _write_shops(shops, file, directory, skip_invalid=skip_invalid)
    if as_json:
        mapped = {field: shops.columns.header[position] for field, position in shops.columns.positions.items()}
        columns = {"mapped": mapped, "unused": list(shops.columns.unused), "delimiter": shops.delimiter}
        counts = {"shops": written, "not_public": hidden, "bad_rows": bad}
        print(json.dumps({"directory": str(directory), **counts, "columns": columns}))
        return
    shown = f" ({hidden:,} of them not public)" if hidden else ""
    print(f"Wrote {written:,} shops{shown} to {directory / 'shops.ndjson'}; {bad:,} bad rows were left out. Next:")
    _print_next(directory)


def _write_shops(shops: "CsvShops", file: Path, directory: Path, *, skip_invalid: bool) -> tuple[int, int, int]:
    """Write the shops; returns the number of shops, of those that are not public, and of bad rows."""
    from indexer.catalogue.new_catalogue import new_shops_file
    from indexer.records.problems import CatalogueError, Problem, ProblemLog
    from indexer.records.shop import is_public

    found: Counter[tuple[str | None, str]] = Counter()

    def report(problem: Problem) -> None:
        """Print the first rows of each fault: a column in an unexpected form makes all rows bad."""
        found[problem.field, problem.reason] += 1
        if found[problem.field, problem.reason] <= _SHOWN:
            print(problem, file=sys.stderr)

    problems = ProblemLog(report=report)
    written = hidden = 0
    with new_shops_file(directory) as output:
        for record in shops.records(problems.add):
            output.write(f"{record.model_dump_json(exclude={'version', 'updated_at'})}\n")
            written += 1
            hidden += not is_public(record)
        for (field, reason), number in found.items():
            if number > _SHOWN:
                rows = Problem(file.name, 0, field, reason)
                print(f"{rows} ({number - _SHOWN:,} more rows)", file=sys.stderr)
        if problems.records and not skip_invalid:
            raise CatalogueError(f"{problems.records:,} bad rows: correct them, or leave them out by --skip-invalid")
        if not written:
            raise CatalogueError("the file has no row that is a shop")
    return written, hidden, problems.records


def _print_next(directory: Path) -> None:
    print(f"  shop-directory catalogue validate {directory}\n  shop-directory index build --catalogue {directory}")


def _as_wire(done: "Validated") -> dict[str, Any]:
    return {
        "valid": not done.problems,
        "bad_records": done.bad_records,
        "records": dict(done.records),
        "public_shops": done.public_shops,
        "notes": list(done.notes),
    }


def _as_text(done: "Validated") -> str:
    counts = counted(done.records) or "none"
    verdict = f"{done.problems:,} problems in {done.bad_records:,} records" if done.problems else "Nothing is wrong"
    return "\n".join(
        [
            *(f"note: {note}" for note in done.notes),
            f"{verdict}. Valid records: {counts}; {done.public_shops:,} public shops.",
        ]
    )
