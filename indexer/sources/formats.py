"""Recognises files that are not NDJSON although they are given as such: a CSV, or one JSON document.

Each of their lines would be reported as bad JSON; one sentence that says what to do is worth more.
"""

import gzip
import shlex
import zlib
from pathlib import Path
from typing import Final

from indexer.records.problems import CatalogueError
from indexer.sources.lines import BYTE_ORDER_MARK

_HEAD: Final = 64 * 1024
_CSV_ENDINGS: Final = (".csv", ".tsv")
_DELIMITERS: Final = ",;\t|"
# A line is taken for a header if it has one of these columns, and another one.
_COLUMNS: Final = frozenset({"id", "name", "domain", "url", "website", "shop", "shop_id", "code", "title"})


def refuse_other_formats(path: Path, *, of_shops: bool = True) -> None:
    """Do nothing, if the file may be NDJSON.

    Args:
        path: the file.
        of_shops: whether it should hold shops, which can be made from a CSV.

    Raises:
        CatalogueError: it is a CSV or one JSON document; the text says how to make a catalogue of it.
    """
    head = _head(path)
    text = head.decode("utf-8", "replace").lstrip()
    first = text.partition("\n")[0].strip()
    quoted = shlex.quote(str(path))
    if _is_json_document(text, first):
        raise CatalogueError(
            f"{path} is one JSON document: write one object per line (NDJSON); for an array: jq -c '.[]' {quoted}"
        )
    if _is_csv(first) or (first and not first.startswith("{") and path.suffix.lower() in _CSV_ENDINGS):
        advice = (
            f"make a catalogue of it by shop-directory catalogue from-csv {quoted} DIRECTORY"
            if of_shops
            else "write one JSON object per line (NDJSON)"
        )
        raise CatalogueError(f"{path} is a CSV: {advice}")


def _is_json_document(text: str, first: str) -> bool:
    """Whether it begins with an array of objects, or with an object that goes on in the next line."""
    if text.startswith("["):
        return text[1:].lstrip().startswith("{")
    return first == "{"


def _is_csv(first: str) -> bool:
    """Whether a line looks like a header: no JSON, and a known column among others."""
    if first.startswith(("{", "[")):
        return False
    for delimiter in _DELIMITERS:
        cells = [cell.strip().strip('"').casefold() for cell in first.split(delimiter)]
        if len(cells) > 1 and not _COLUMNS.isdisjoint(cells):
            return True
    return False


def _head(path: Path) -> bytes:
    """The first bytes, unzipped; none of a file that cannot be read, which its reading reports."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            return file.read(_HEAD).removeprefix(BYTE_ORDER_MARK)
    except (OSError, EOFError, zlib.error):
        return b""
