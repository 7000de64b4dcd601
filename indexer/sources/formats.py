"""Recognises files that were given as NDJSON and are not: a CSV, or one JSON document.

Without this, each of their lines would be reported as invalid JSON instead of one message that says what to do.
"""

import gzip
import shlex
import zlib
from pathlib import Path
from typing import Final

from indexer.records.problems import CatalogueError
from indexer.sources.lines import BYTE_ORDER_MARK

_HEAD: Final = 64 * 1024
_CSV_SUFFIXES: Final = (".csv", ".tsv")
_DELIMITERS: Final = ",;\t|"
# A line counts as a header if it has one of these columns and at least one other column.
_COLUMNS: Final = frozenset({"id", "name", "domain", "url", "website", "shop", "shop_id", "code", "title"})


def refuse_other_formats(path: Path, *, of_shops: bool = True) -> None:
    """Raise an error if the file cannot be NDJSON.

    Args:
        path: the file.
        of_shops: whether the file should hold shops, which can be converted from a CSV.

    Raises:
        CatalogueError: it is a CSV or one JSON document; the message says how to convert it.
    """
    head = _head(path)
    text = head.decode("utf-8", "replace").lstrip()
    first = text.partition("\n")[0].strip()
    quoted = shlex.quote(str(path))
    if _is_json_document(text, first):
        raise CatalogueError(
            f"{path} is one JSON document: write one object per line (NDJSON); for an array: jq -c '.[]' {quoted}"
        )
    if _is_csv(first) or (first and not first.startswith("{") and path.suffix.lower() in _CSV_SUFFIXES):
        advice = (
            f"make a catalogue of it by shop-directory catalogue from-csv {quoted} DIRECTORY"
            if of_shops
            else "write one JSON object per line (NDJSON)"
        )
        raise CatalogueError(f"{path} is a CSV: {advice}")


def _is_json_document(text: str, first: str) -> bool:
    """Whether the text begins with an array of objects, or with an object that continues on the next line."""
    if text.startswith("["):
        return text[1:].lstrip().startswith("{")
    return first == "{"


def _is_csv(first: str) -> bool:
    """Whether a line looks like a header: it is not JSON, and has a known column among others."""
    if first.startswith(("{", "[")):
        return False
    for delimiter in _DELIMITERS:
        cells = [cell.strip().strip('"').casefold() for cell in first.split(delimiter)]
        if len(cells) > 1 and not _COLUMNS.isdisjoint(cells):
            return True
    return False


def _head(path: Path) -> bytes:
    """The first bytes, unzipped; empty if the file cannot be read, which is reported when it is read."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            return file.read(_HEAD).removeprefix(BYTE_ORDER_MARK)
    except (OSError, EOFError, zlib.error):
        return b""
