"""`shop-directory catalogue ...`: write a catalogue and check it, without an index."""

import json
import sys
from dataclasses import asdict
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from indexer.commands.parts import LenientOption, counted, exit_on_failure, option_of
from shop_directory.settings.commands import ExitCode, JsonOption, end_command, json_option, loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from indexer.catalogue.sheets.columns import Columns
    from indexer.catalogue.sheets.headers import HeadedFile
    from indexer.catalogue.sheets.records import Imported, SheetRecords
    from indexer.catalogue.validation import Validated
    from indexer.records.problems import Problem

_in_files: Final = partial(option_of, "The files")

catalogue = typer.Typer(help="Write a catalogue, and check it without building an index.", no_args_is_help=True)


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
    as_json: Annotated[bool, json_option("Print it on one line.")] = False,
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

    Values are printed, at most 60 characters of each, also those of shops that
    are not public. Notes name what a build would leave out, and what is valid
    and hardly meant, such as a synonym that no words find. Nothing is built or
    changed.

    Examples:
      shop-directory catalogue validate ./my-shops
      shop-directory catalogue validate ./my-shops --json

    Exit codes: 0 nothing is wrong, 1 something is wrong or there is no catalogue,
    2 wrong usage, 3 the disk is full.
    """
    from indexer.catalogue.validation import validate
    from indexer.settings import IndexerSettings

    before = chain(['{"problems": ['], repeat(","))

    def report_as_json(problem: "Problem") -> None:
        """Print each problem when it is found, as there may be many, within one JSON document."""
        entry = {**asdict(problem), "line": problem.line or None}
        print(next(before), json.dumps(entry, ensure_ascii=False), sep="", end="")

    with exit_on_failure("Nothing was validated"):
        report = report_as_json if as_json else print
        hosts = loaded(IndexerSettings).logo_hosts
        done = validate(path, report, changes=changes, lenient=lenient, logo_hosts=hosts)
    if as_json:
        print("" if done.problems else next(before), "], ", json.dumps(_as_wire(done), ensure_ascii=False)[1:], sep="")
    else:
        print(_as_text(done))
    if done.problems:
        raise typer.Exit(ExitCode.BAD_INPUT)


@catalogue.command("init")
def init_command(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="An empty directory, or a new one.")],
    *,
    categories: Annotated[
        Literal["shops"] | None,
        typer.Option("--categories", help="The categories to begin with: the kinds of shops of OpenStreetMap."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a small catalogue to start with: each file with a few invented records.

    A README.md explains the files. The catalogue can be built as it is. With
    --categories shops, categories.ndjson names some 140 kinds of shops, in many
    languages and with synonyms; a catalogue that is there only gets this file.

    Examples:
      shop-directory catalogue init ./new-shops
      shop-directory catalogue init ./named-shops --categories shops

    Exit codes: 0 done, 1 the directory is not empty or can't be written, 2 wrong
    usage, 3 the disk is full.
    """
    from indexer.catalogue.new_catalogue import write_starter

    with exit_on_failure("Nothing was written"):
        files = write_starter(directory, categories)
    if as_json:
        print(json.dumps({"directory": str(directory), "files": list(files)}))
        return
    print(f"Wrote {', '.join(files)} to {directory}. {_next(directory)}")


@catalogue.command("open-data")
def open_data_command(
    package: Annotated[Path, typer.Argument(metavar="PACKAGE", help="The file that npm packs: .tgz.")],
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="A new directory, or a catalogue, whose shops are replaced.")
    ],
    *,
    integrity: Annotated[
        str | None,
        typer.Option("--integrity", metavar="SHA512", help="The digest that it must have, as npm states it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a catalogue of real shops from the npm package name-suggestion-index.

    The package has brands of shops, their names, kinds and markets, and their
    web sites by Wikidata. Nothing else is filled in: no codes, no shipping, no
    trust. Nothing is fetched: `npm pack name-suggestion-index` does that, or
    `make open-catalogue` does all of it. What is left out is counted by reason;
    SOURCES.md has licences and attribution.

    Examples:
      shop-directory catalogue open-data name-suggestion-index.tgz ./real-shops

    Exit codes: 0 done, 1 the package can't be used or the directory can't be
    written, 2 wrong usage, 3 the disk is full.
    """
    from indexer.catalogue.open_data.files import write_open_data

    with exit_on_failure("Nothing was written"):
        done = write_open_data(package, directory, integrity)
    if as_json:
        print(json.dumps(done.as_wire(), ensure_ascii=False))
        return
    print(done.as_text(), _next(directory))


def _sheet_kinds(incomplete: str) -> list[str]:
    from indexer.sources.ndjson import FROM_SHEETS

    return [kind for kind in FROM_SHEETS if kind.startswith(incomplete)]


SheetArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A CSV, a workbook (.xlsx, .xls, .ods) or a JSON list; its first row names columns."
    ),
]
ImportDirectoryArgument = Annotated[
    Path, typer.Argument(metavar="DIRECTORY", help="A new directory, or a catalogue, of which one file is replaced.")
]
SheetKindOption = Annotated[
    str,
    _in_files("--kind", "What a row is: shops, coupons, offers, shipping or policies.", autocompletion=_sheet_kinds),
]
MapOption = Annotated[
    list[str] | None, _in_files("--map", "The field of a column. Repeatable.", metavar="COLUMN=FIELD")
]
IgnoreOption = Annotated[
    list[str] | None, _in_files("--ignore", "A column that is left out. Repeatable.", metavar="COLUMN")
]
SetOption = Annotated[
    list[str] | None,
    _in_files("--set", "The value of a field in all rows that state none. Repeatable.", metavar="FIELD=VALUE"),
]
DatesOption = Annotated[
    Literal["dmy", "mdy", "ymd"] | None,
    _in_files("--dates", "The order of days and months where a column does not settle it.", show_default="found"),
]
ByNameOption = Annotated[
    bool, _in_files("--by-name", "Shops may be named by their whole names, if no other shop has that.")
]
SheetMappingOption = Annotated[
    Path | None, _in_files("--mapping", "A TOML file of an earlier import's mapping; options override it.")
]
SaveMappingOption = Annotated[
    Path | None, _in_files("--save-mapping", "Write the mapping of this import into this TOML file.")
]
MapValueOption = Annotated[
    list[str] | None,
    _in_files(
        "--map-value",
        "What a value of a status means: public, under_review or removed. Repeatable.",
        metavar="COLUMN:VALUE=VISIBILITY",
    ),
]
HiddenRowsOption = Annotated[
    Literal["skip", "take"] | None,
    _in_files("--hidden-rows", "What becomes of a workbook's hidden rows.", show_default="none may be hidden"),
]
HeaderRowOption = Annotated[
    int | None, _in_files("--header-row", "The row that names the columns.", min=1, show_default="the first")
]
NoHeaderOption = Annotated[bool, _in_files("--no-header", "No row names the columns: they are called 1, 2, 3.")]
SkipInvalidOption = Annotated[
    bool, typer.Option("--skip-invalid", help="Leave bad rows out, and optional fields that can't be read.")
]


@catalogue.command("from-csv")
def from_csv_command(
    file: SheetArgument,
    directory: ImportDirectoryArgument,
    *,
    kind: SheetKindOption = "shops",
    stated: MapOption = None,
    stated_values: MapValueOption = None,
    ignored: IgnoreOption = None,
    constants: SetOption = None,
    category: Annotated[str | None, _in_files("--category", "The category of shops without one.")] = None,
    currency: Annotated[str | None, _in_files("--currency", "The currency of amounts that state none, or $.")] = None,
    dates: DatesOption = None,
    by_name: ByNameOption = False,
    mapping: SheetMappingOption = None,
    save_mapping_as: SaveMappingOption = None,
    encoding: Annotated[str | None, _in_files("--encoding", "A CSV's encoding.", show_default="found")] = None,
    sheet: Annotated[str | None, _in_files("--sheet", "A workbook's sheet.", show_default="the first")] = None,
    hidden_rows: HiddenRowsOption = None,
    header_row: HeaderRowOption = None,
    no_header: NoHeaderOption = False,
    skip_invalid: SkipInvalidOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a file of a catalogue from a CSV or a workbook.

    Columns are recognised by their names, such as name, domain or Webseite,
    category and country; the mapping is printed. Several values in a cell are
    separated by line breaks, |, ; or commas, countries also by /. Shops are
    public unless there is a column visibility. A column that looks like a
    status, or next to codes holds countries, amounts, percentages or dates, has
    to be mapped or ignored, and hidden rows of a workbook stop the import.
    Coupons and other kinds name their shop by its domain or id.

    In a catalogue only the file of the kind is replaced, after all rows were
    read; the old one is kept as KIND.ndjson.previous.

    Examples:
      shop-directory catalogue from-csv shops.csv ./csv-shops
      shop-directory catalogue from-csv list.csv ./list-shops --map Label=name
      shop-directory catalogue from-csv codes.csv ./my-shops --kind coupons

    Exit codes: 0 done, 1 the file can't be read, has bad or hidden rows, or a
    column that has to be mapped, 2 wrong usage, 3 the disk is full.
    """
    from indexer.catalogue.sheets.files import opened_sheet
    from indexer.catalogue.sheets.headers import HeadedFile
    from indexer.catalogue.sheets.records import SheetRecords
    from indexer.catalogue.sheets.stated import Stated, constants_of

    _refuse_wrong_usage(kind, currency)
    with (
        exit_on_failure("Nothing was written"),
        opened_sheet(file, encoding=encoding, sheet=sheet, hidden_rows=hidden_rows, header_row=header_row) as raw,
    ):
        opened = HeadedFile(raw, kind, header_row=header_row, no_header=no_header)
        known = constants_of(constants or (), kind, categories=category, currency=currency)
        options = Stated(stated or (), stated_values or (), ignored or (), known, dates, by_name)
        records = SheetRecords(opened, kind, stated=options, mapping=mapping)
        _write_records(records, opened, directory, skip_invalid=skip_invalid, as_json=as_json)
    _save_mapping(records, save_mapping_as, None if as_json else _import_as_text(records.done, kind, directory))


def _write_records(
    records: "SheetRecords", opened: "HeadedFile", directory: Path, *, skip_invalid: bool, as_json: bool
) -> None:
    """Write the records of a sheet, and print how it is read, and its problems whether or not the import fails."""
    if not as_json:
        print(_format_as_text(opened.format), records.columns.as_text(), sep="\n")
    try:
        records.write(directory, skip_invalid=skip_invalid)
    finally:
        done = records.done
        if not as_json:
            print(*(f"{note}\n" for note in done.notes), *(f"note: {note}\n" for note in opened.notes), sep="", end="")
        done.notes += opened.notes
        for line in done.faults.as_text():
            print(line, file=sys.stderr)
        if as_json:
            print(json.dumps(_import_as_wire(done, records.columns, opened.format, directory), ensure_ascii=False))


def _save_mapping(records: "SheetRecords", path: Path | None, summary: str | None) -> None:
    """Save the mapping of an import to a path, if there is one, then print the summary, if there is one."""
    from indexer.catalogue.sheets.stated import save_mapping

    if path is not None:
        with exit_on_failure("The records were written, and their mapping was not"):
            save_mapping(path, records.columns, records.stated, records.visibilities)
    if summary is not None:
        print(summary)


def _refuse_wrong_usage(kind: str, currency: str | None) -> None:
    from indexer.records.related import CURRENCIES
    from indexer.sources.ndjson import FROM_SHEETS

    if kind not in FROM_SHEETS:
        end_command(ExitCode.USAGE, f"--kind is wrong: it must be one of {', '.join(FROM_SHEETS)}.")
    if currency is not None and currency not in CURRENCIES:
        end_command(ExitCode.USAGE, "--currency is wrong: it must be an ISO 4217 code in capitals, such as EUR.")


def _format_as_text(format_: "Mapping[str, str]") -> str:
    """How a sheet was read, each finding with a cell that shows whether it is right."""
    if "sheet" in format_:
        others = format_.get("other_sheets")
        return f"Sheet {format_['sheet']!r}" + (f"; --sheet reads another one: {others}" if others else "")
    if "encoding" not in format_:
        return f"Format {format_['format']}"
    if "found_by" not in format_:
        return f"Encoding {format_['encoding']}"
    others = f" (it would be {format_['other_readings']})" if "other_readings" in format_ else ""
    return f"Encoding {format_['encoding']}, found by {format_['found_by']!r}{others}; --encoding names another"


def _import_as_wire(
    done: "Imported", columns: "Columns", format_: "Mapping[str, str]", directory: Path
) -> dict[str, Any]:
    mapped = {field: columns.header[position] for field, position in columns.positions.items()}
    return {
        "directory": str(directory),
        columns.kind: done.written,
        "not_public": done.not_public,
        "bad_rows": done.bad_rows,
        "joined_rows": done.joined,
        "dropped_fields": dict(done.dropped),
        "notes": done.notes,
        "problems": done.faults.as_json(),
        "columns": {"mapped": mapped, "set": dict(columns.constants), "unused": list(columns.unused), **format_},
    }


def _import_as_text(done: "Imported", kind: str, directory: Path) -> str:
    from indexer.catalogue.new_catalogue import file_of
    from indexer.catalogue.sheets.columns import NAMES
    from indexer.records.problems import numbered

    of_them = "of them not public" if kind == "shops" else "more are not public and left out"
    hidden = f" ({done.not_public:,} {of_them})" if done.not_public else ""
    dropped = f", and the fields {counted(done.dropped)} of others" if done.dropped else ""
    joined = f"; {numbered(done.joined, 'more row')} with other entries joined to them" if done.joined else ""
    return (
        f"Wrote {numbered(done.written, NAMES[kind])}{hidden} to {file_of(directory, kind)}{joined};"
        f" {numbered(done.bad_rows, 'bad row')} {'was' if done.bad_rows == 1 else 'were'} left out{dropped}."
        f" {_next(directory)}"
    )


def _next(directory: Path) -> str:
    return (
        f"Next:\n  shop-directory catalogue validate {directory}\n  shop-directory index build --catalogue {directory}"
    )


def _as_wire(done: "Validated") -> dict[str, Any]:
    return {
        "valid": not done.problems,
        "bad_records": done.bad_records,
        "records": dict(done.records),
        "public_shops": done.public_shops,
        "notes": list(done.notes),
    }


def _as_text(done: "Validated") -> str:
    from indexer.records.problems import numbered

    counts = counted(done.records) or "none"
    problems, bad = numbered(done.problems, "problem"), numbered(done.bad_records, "record")
    verdict = f"{problems} in {bad}" if done.problems else "Nothing is wrong"
    return "\n".join(
        [
            *(f"note: {note}" for note in done.notes),
            f"{verdict}. Valid records: {counts}; {numbered(done.public_shops, 'public shop')}.",
        ]
    )
