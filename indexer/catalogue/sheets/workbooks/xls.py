"""Reads the sheets of an .xls (BIFF, Excel 97 and before) by `xlrd`, which holds a whole sheet."""

import os
from collections.abc import Iterator
from pathlib import Path

import xlrd
from xlrd.biffh import XL_CELL_BOOLEAN, XL_CELL_DATE, XL_CELL_NUMBER, XL_CELL_TEXT, XLRDError

from indexer.catalogue.sheets.workbooks.archive import unreadable_workbook
from indexer.catalogue.sheets.workbooks.numbers import number_format, number_text
from indexer.catalogue.sheets.workbooks.rows import Layout, Sheet, SheetRow


class Xls:
    """As of Book."""

    def __init__(self, path: Path) -> None:
        self.layout = Layout()
        self._silent = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
        try:
            self._book = xlrd.open_workbook(
                str(path), logfile=self._silent, formatting_info=True, on_demand=True, ragged_rows=True
            )
        except XLRDError as error:
            raise unreadable_workbook(path, error) from error
        self.sheets = tuple(map(self._described, self._book.sheet_names()))

    def _described(self, name: str) -> Sheet:
        visibility = self._book.sheet_by_name(name).visibility
        self._book.unload_sheet(name)
        return Sheet(name, is_hidden=visibility != 0)

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        book, found = self._book, self._book.sheet_by_name(sheet)
        for column, one in found.colinfo_map.items():
            if one.hidden or not one.width:
                self.layout.hide_columns(column, 1)
        for top, bottom, column, _ in found.merged_cells:
            self.layout.merge(top + 1, column, bottom)
        for at in range(found.nrows):
            row, form = list[str](), found.rowinfo_map.get(at)
            for column, cell in enumerate(found.row(at)):
                text = ""
                if cell.ctype == XL_CELL_TEXT:
                    text = str(cell.value)
                elif cell.ctype == XL_CELL_BOOLEAN:
                    text = "true" if cell.value else "false"
                elif cell.ctype in {XL_CELL_NUMBER, XL_CELL_DATE}:
                    code = book.format_map[book.xf_list[cell.xf_index or 0].format_key].format_str
                    text = number_text(float(cell.value), number_format(code), from_1904=book.datemode == 1)
                self.layout.place(row, at + 1, column, text)
            if row:
                is_hidden = form is not None and (bool(form.hidden) or not form.height)
                yield SheetRow(at + 1, row, is_hidden)
