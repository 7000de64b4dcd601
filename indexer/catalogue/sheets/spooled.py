"""The rows of a workbook or a JSON list, which a process with a memory limit reads into a temporary file."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TextIO

from indexer.catalogue.sheets.workbooks import extract
from indexer.catalogue.sheets.workbooks.rows import NumberedCells
from indexer.records.problems import MAX_SHOWN, CatalogueError

HiddenRows = Literal["skip", "take"]
_LISTED: Final = 20


class SpooledFile:
    """As of SheetFile; rows end with their last cell that is not blank, and are held in `spool`.

    CatalogueError if the file can't be read, has no such sheet, or has hidden rows, which nobody would publish, and
    `hidden_rows` does not say what becomes of them.
    """

    def __init__(self, path: Path, spool: TextIO, sheet: str | None, hidden_rows: HiddenRows | None) -> None:
        self.path, self._rows = path, spool
        self._report = self._extracted(sheet)
        self._skips_hidden = hidden_rows == "skip"
        self._sheet = str(self._report["sheet"])
        self.format = {"sheet": self._sheet} if self._sheet else {"format": "JSON"}
        if self._report["other_sheets"]:
            self.format["other_sheets"] = ", ".join(map(repr, self._report["other_sheets"]))
        if self._report["hidden_rows"] and hidden_rows is None:
            raise CatalogueError(
                f"{path}: {self._hidden_as_text()}: import them as the others by --hidden-rows take, or leave them out"
                " by --hidden-rows skip"
            )

    def _extracted(self, sheet: str | None) -> dict[str, Any]:
        # Not from the current folder, which may hold modules of any name.
        program = [sys.executable, "-P", "-m", extract.__name__]
        command = [*program, str(extract.MEMORY), str(self.path), *([] if sheet is None else [sheet])]
        done = subprocess.run(command, stdout=self._rows, stderr=subprocess.PIPE, check=False)  # noqa: S603 - our own
        self._rows.seek(0)
        last = ""
        for line in self._rows:
            last = line
        if not last.startswith("{"):
            raise CatalogueError(
                f"{self.path} can't be read within the limits of memory and time (the process ended with"
                f" {done.returncode}): split it, or save it as CSV"
            )
        report: dict[str, Any] = json.loads(last)
        if "error" in report:
            raise CatalogueError(str(report["error"]))
        return report

    @property
    def notes(self) -> Sequence[str]:
        notes = list[str]()
        if self._report["hidden_rows"]:
            notes.append(f"{self._hidden_as_text()}, and {'left out' if self._skips_hidden else 'taken'}")
        if hidden := self._report["hidden_columns"]:
            listed = ", ".join(str(column + 1) for column in hidden[:_LISTED])
            more = "" if len(hidden) <= _LISTED else f" and {len(hidden) - _LISTED:,} more"
            notes.append(f"hidden columns are read as the others are (column {listed}{more})")
        if strays := self._report["strays"]:
            notes.append(f"cells far right of the list were ignored ({strays:,}, first {self._report['first_stray']})")
        return notes

    def _hidden_as_text(self) -> str:
        ranges = self._report["hidden_rows"]
        count = sum(rows for _, _, rows in ranges)
        texts = [f"{first} to {last}" if rows > 1 else f"{first}" for first, last, rows in ranges[:_LISTED]]
        listed = ", ".join(texts) + (", ..." if len(ranges) > _LISTED else "")
        of = f" of the sheet {self._sheet[:MAX_SHOWN]!r}"
        return f"1 row{of} is hidden ({listed})" if count == 1 else f"{count:,} rows{of} are hidden ({listed})"

    def rows(self) -> Iterator[NumberedCells]:
        # A merged cell has its value in its first row alone, and says it of all its rows.
        ranges = defaultdict[int, list[tuple[int, int]]](list)
        for top, column, bottom in self._report["merged"]:
            ranges[top].append((column, bottom))
        merged = dict[int, tuple[int, str]]()
        for line, row in self._kept():
            for column, (bottom, text) in merged.items():
                if line <= bottom:
                    row.extend([""] * (column + 1 - len(row)))
                    row[column] = text
            merged.update({column: (bottom, row[column]) for column, bottom in ranges[line] if column < len(row)})
            yield line, row

    def _kept(self) -> Iterator[NumberedCells]:
        self._rows.seek(0)
        for text in self._rows:
            entry = json.loads(text)
            if isinstance(entry, dict):
                return  # the report
            line, row, *hidden = entry
            if not (hidden and self._skips_hidden):
                yield line, row
