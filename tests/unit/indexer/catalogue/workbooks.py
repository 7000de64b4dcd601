"""Workbooks as programs write them: .xlsx by a library, .ods and what is rare by their parts."""

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

SHOPS: Final[list[list[object]]] = [
    ["name", "url", "category"],
    *(list[object]([f"Shop {number}", f"shop{number}.example", "X"]) for number in range(2, 10)),
]
_OLD: Final = Path(__file__).with_name("shops.xls")
_NAMES: Final = "office table text style calcext"


def xlsx(
    rows: Sequence[Sequence[object]] = SHOPS,
    change: Callable[[Worksheet], object] = lambda _: None,
    name: str = "Shops",
    **others: Sequence[Sequence[object]],
) -> bytes:
    """A workbook whose first sheet is changed once its rows were written."""
    file = BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True, "default_date_format": "dd.mm.yyyy"}) as book:
        for title, listed in {name: rows, **others}.items():
            sheet = book.add_worksheet(title)
            for at, row in enumerate(listed):
                sheet.write_row(at, 0, row)
        change(book.get_worksheet_by_name(name))
    return file.getvalue()


def patched(book: bytes, member: str, pattern: str, replacement: str) -> bytes:
    """A workbook with another text in one of its members."""
    file = BytesIO()
    with ZipFile(BytesIO(book)) as before, ZipFile(file, "w", ZIP_DEFLATED) as after:
        for name in before.namelist():
            text = before.read(name)
            if name.endswith(member):
                text, times = re.subn(pattern.encode(), lambda _: replacement.encode(), text, count=1)
                assert times == 1
            after.writestr(name, text)
    return file.getvalue()


def ods(rows: str, *, styles: str = "", before: str = "") -> bytes:
    """An OpenDocument workbook of a sheet Shops with these rows, as XML."""
    names = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _NAMES.split())
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr(
            "content.xml",
            f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {names}><office:automatic-styles>{styles}'
            f"</office:automatic-styles><office:body><office:spreadsheet>{before}"
            f'<table:table table:name="Shops">{rows}</table:table></office:spreadsheet></office:body>'
            "</office:document-content>",
        )
    return file.getvalue()


def ods_row(*cells: str, attributes: str = "") -> str:
    """A row of texts of an OpenDocument sheet; a cell that begins with < is XML."""
    written = "".join(
        cell
        if cell.startswith("<")
        else f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
        for cell in cells
    )
    return f"<table:table-row {attributes}>{written}</table:table-row>"


def xls(*, height: int | None = None, is_hidden: bool = False) -> bytes:
    """The .xls of this folder, with another height of the row below its header, or with that row hidden."""
    book = bytearray(_OLD.read_bytes())
    # ROW: record and length, number, first and last column, height, two reserved numbers, flags.
    at = book.index(bytes.fromhex("0802 1000 0100"))
    if height is not None:
        book[at + 10 : at + 12] = height.to_bytes(2, "little")
    if is_hidden:
        book[at + 16] |= 0x20
    return bytes(book)
