"""Reads a JSON document as a sheet: an array, a collection of GeoJSON, an object with one list, or objects in a row."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from indexer.catalogue.sheets.workbooks.numbers import number_text
from indexer.catalogue.sheets.workbooks.rows import MAX_COLUMNS, Layout, Sheet, SheetRow
from indexer.records.problems import MAX_SHOWN, CatalogueError

# What stands before each text of a sequence of JSON texts (RFC 7464).
RECORD_MARK: Final = "\x1e"
# The column of a list of texts, and that of the names of the entries of an object.
_TEXTS: Final = "url"
_KEYS: Final = "key"
_EXPONENT: Final = re.compile("[eE]")
_THREE_DECIMALS: Final = re.compile(r"-?\d+\.\d{3}")
_DELIMITERS: Final = frozenset(";,")


class JsonList:
    """As of Book, of one sheet without a name; each entry has its place as number, from 1, and names of fields 0."""

    sheets: Final = (Sheet("", is_hidden=False),)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.layout = Layout()
        self._first = 0
        try:
            content = path.read_bytes()
            text = content.decode(json.detect_encoding(content)).removeprefix("\ufeff").lstrip(RECORD_MARK).strip()
            self._rows = self._table(_documents(text))
        except (ValueError, RecursionError) as error:
            raise CatalogueError(f"{path} looks like JSON, and is not valid ({error}): write it again") from error

    def rows(self, sheet: str) -> Iterator[SheetRow]:
        del sheet
        for line, row in enumerate(self._rows, self._first):
            if any(map(str.strip, row)):
                yield SheetRow(line, row)

    def _table(self, documents: Sequence[Any]) -> list[list[str]]:
        entries = self._entries(documents[0]) if len(documents) == 1 else documents
        if entries and all(isinstance(entry, list) for entry in entries):
            self._first = 1
            return [[_text(cell) for cell in entry] for entry in entries]
        if entries and all(isinstance(entry, str) for entry in entries):
            return [[_TEXTS], *([entry] for entry in entries)]
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            self._refuse("has no list of objects")
        flat = [dict(_flat(_feature(entry) if entry.get("type") == "Feature" else entry)) for entry in entries]
        columns = list(dict.fromkeys(name for entry in flat for name in entry))
        if len(columns) > MAX_COLUMNS:
            self._refuse(f"has objects with {len(columns):,} different fields")
        return [columns, *([entry.get(name, "") for name in columns] for entry in flat)]

    def _entries(self, document: Any) -> Sequence[Any]:  # noqa: ANN401 - any JSON
        if not isinstance(document, dict):
            return document if isinstance(document, list) else ()
        if document.get("type") == "FeatureCollection" and isinstance(document.get("features"), list):
            return [one for one in document["features"] if isinstance(one, dict)]
        lists = {
            name: value
            for name, value in document.items()
            if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)
        }
        within = [value for value in document.values() if isinstance(value, dict) and _has_list(value)]
        if len(within) == 1 and not lists:
            return self._entries(within[0])
        if any(isinstance(value, str) for value in document.values()) and not lists:
            return (document,)
        if len(lists) > 1:
            named = ", ".join(repr(name[:MAX_SHOWN]) for name in list(lists)[:MAX_SHOWN])
            self._refuse(f"has several lists of objects ({named})")
        if lists:
            return next(iter(lists.values()))
        if document and all(isinstance(value, dict) for value in document.values()):
            return [{_KEYS: name, **value} for name, value in document.items()]
        return ()

    def _refuse(self, reason: str) -> NoReturn:
        raise CatalogueError(
            f"{self.path} is JSON that {reason}: write one array of objects, one object a shop, such as by jq '.NAME'"
        )


def _documents(text: str) -> list[Any]:
    """The document of a text, or those that follow each other, as in NDJSON."""
    decoder = json.JSONDecoder(
        parse_int=str, parse_float=_number, parse_constant=lambda _: None, object_pairs_hook=_object
    )
    found, at = [], 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        found.append(document)
        while at < len(text) and (text[at].isspace() or text[at] == RECORD_MARK):
            at += 1
    return found


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object. ValueError where a field is in it twice, as one of them may hide the shop that the other shows."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise ValueError(f"an object has the field {twice[:MAX_SHOWN]!r} twice")
    return fields


def _has_list(value: Mapping[str, Any]) -> bool:
    return any(
        isinstance(one, list) and one and all(isinstance(entry, dict) for entry in one) for one in value.values()
    )


def _number(text: str) -> str:
    if _EXPONENT.search(text):
        return number_text(float(text))
    return f"{text}0" if _THREE_DECIMALS.fullmatch(text) else text


def _feature(feature: Mapping[str, Any]) -> Mapping[str, Any]:
    known = {"id": feature["id"]} if "id" in feature else {}
    return {**known, **(feature.get("properties") or {})}


def _flat(entry: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The fields of an object as texts, those of objects in it by `outer.inner`."""
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", _text(value)


def _text(value: Any) -> str:  # noqa: ANN401 - any JSON
    """A value as the text of a cell, a list as cells hold lists."""
    if isinstance(value, list):
        entries = [_text(one["name"] if isinstance(one, dict) and "name" in one else one) for one in value]
        # A bar behind a single entry says that its commas are its own.
        alone = len(entries) == 1 and not _DELIMITERS.isdisjoint(entries[0])
        return f"{entries[0]}|" if alone else "|".join(entries)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)
