"""Detects a file's format from its first bytes, never from its name."""

import re
from pathlib import Path
from typing import Final, Literal

from indexer.catalogue.sheets.workbooks.json_list import RECORD_MARK
from indexer.records.problems import CatalogueError
from indexer.sources.ndjson import WORKBOOK_MARKS

Format = Literal["csv", "workbook", "json"]
_HEAD: Final = 64 * 1024
# The least part of UTF-16 that is zeros.
_ZEROS: Final = 0.05
# The first bytes of what holds a list within, or none, and what to do with it.
_OTHERS: Final = (
    (b"\x1f\x8b", "is gzipped: unpack it first, by gzip -dk or any archive program"),
    (b"BZh", "is packed by bzip2: unpack it first, by bzip2 -dk or any archive program"),
    (b"\xfd7zXZ", "is packed by xz: unpack it first, by xz -dk or any archive program"),
    (b"\x28\xb5\x2f\xfd", "is packed by Zstandard: unpack it first, by zstd -d or any archive program"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive: unpack it first"),
    (b"Rar!", "is a RAR archive: unpack it first"),
    (b"PK\x05\x06", "is an empty ZIP archive: fetch it again"),
    (b"%PDF", "is a PDF: export the list as .xlsx or CSV from the program that made it"),
    (b"SQLite format 3", "is a SQLite database: export the table as CSV"),
    (b"PAR1", "is a Parquet file: export it as CSV"),
)
_MARKUP: Final = re.compile(
    r"<(?:!doctype\s+html|html|head|body|meta|table|tbody|tr|td|style|title|div|center|font|script)\b|mime-version:",
    re.IGNORECASE,
)
_XML: Final = re.compile(r"<(?:\?xml\b|!--|\w[\w:.-]*(?:\s[^<>]*)?/?>)", re.IGNORECASE)
_JSON: Final = re.compile(r"\[\s*(?:[{\[\"\]]|$)|\{\s*(?:[\"}]|$)")
# Byte order marks; that of UTF-32 begins with that of UTF-16.
_MARKS: Final = (
    (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)  # fmt: skip


def format_of(path: Path) -> Format:
    """What a file is. Raises CatalogueError with what to do where it is nothing that can be read, OSError too."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(WORKBOOK_MARKS):
        return "workbook"
    for mark, reason in _OTHERS:
        if head.startswith(mark):
            raise CatalogueError(f"{path} {reason}")
    text = head.decode(unicode_form(head) or "utf-8", "replace").lstrip(f"\ufeff{RECORD_MARK} \t\r\n")
    if text.startswith("{\\rtf"):
        raise CatalogueError(f"{path} is a text document (RTF): save the list as .xlsx or CSV")
    if _MARKUP.match(text) or (_XML.match(text) and re.search(r"<html\b", text[:1_024], re.IGNORECASE)):
        raise CatalogueError(
            f"{path} is a web page (HTML), whatever its name: open it in a spreadsheet program, and save it as .xlsx or"
            " CSV"
        )
    if _XML.match(text):
        is_sheet = "urn:schemas-microsoft-com:office:spreadsheet" in text
        advice = "open it in a spreadsheet program, and save it as .xlsx or CSV"
        raise CatalogueError(
            f"{path} is an XML spreadsheet of 2003, whatever its name: {advice}"
            if is_sheet
            else f"{path} is XML: fetch the list as CSV or JSON, or {advice}"
        )
    return "json" if _JSON.match(text) else "csv"


def unicode_form(head: bytes) -> str | None:
    """UTF-16 or UTF-32 where a file begins with their mark, or is UTF-16 without one; else None."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    # One byte of each ASCII character is zero, in the little-endian form the second one.
    second, first = head[1::2].count(0), head[::2].count(0)
    if max(second, first) < _ZEROS * len(head) or max(second, first) < 4 * min(second, first):
        return None
    return "utf-16-le" if second > first else "utf-16-be"
