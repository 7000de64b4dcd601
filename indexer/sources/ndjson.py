"""The NDJSON catalogue: a directory of files, or one file of shops, plain or gzipped.

Memory is bounded by one line. A file that is a CSV, a workbook or one JSON document is refused with what to do, instead
of each of its lines as invalid JSON.
"""

import gzip
import re
import shlex
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

from indexer.progress import Advance
from indexer.records.faults import RefusedRecordError
from indexer.records.hiding import hiding_of
from indexer.records.problems import CatalogueError, ProblemLog
from indexer.records.related import RECORDS
from indexer.records.shop import validated
from indexer.sources.changes import ChangeFile
from indexer.sources.lines import BYTE_ORDER_MARK, Line, LineCutter, parsed
from indexer.sources.protocol import NumberedRecord, without_mixed_versions

CHANGES: Final = "changes.ndjson"
_SUFFIXES: Final = (".ndjson", ".ndjson.gz")
_BLOCK: Final = 256 * 1024

_HEAD: Final = 64 * 1024
# The first bytes of .xlsx and .ods, which are ZIP archives, and of .xls.
WORKBOOK_MARKS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
# The types that `catalogue from-csv` makes.
FROM_SHEETS: Final = ("shops", "coupons", "offers", "shipping", "policies")
_CSV_SUFFIXES: Final = (".csv", ".tsv")
_DELIMITERS: Final = ",;\t|"
_JSON_LIST: Final = re.compile(r'\[\s*[{"]')
# A line counts as a header if it has one of these columns and at least one other column.
_COLUMNS: Final = frozenset({"id", "name", "domain", "url", "website", "shop", "shop_id", "code", "title"})


def refuse_other_formats(path: Path, kind: str = "shops") -> None:
    """Raise CatalogueError, with what to do, if the file is a CSV, a workbook or one JSON document."""
    head = _head(path)
    text = head.decode("utf-8", "replace").lstrip()
    first = text.partition("\n")[0].strip()
    quoted = shlex.quote(str(path))
    option = "" if kind == "shops" else f" --kind {kind}"
    advice = (
        f"make a catalogue of it by shop-directory catalogue from-csv {quoted} DIRECTORY{option}"
        if kind in FROM_SHEETS
        else "write one JSON object per line (NDJSON)"
    )
    # A list, or an object that continues on the next line.
    if _JSON_LIST.match(text) or (first.startswith("{") and first.endswith(("{", "[", ","))):
        raise CatalogueError(f"{path} is one JSON document, and a catalogue has one object per line: {advice}")
    is_workbook = head.startswith(WORKBOOK_MARKS)
    named_csv = bool(first) and not first.startswith("{") and path.suffix.lower() in _CSV_SUFFIXES
    if is_workbook or named_csv or _is_csv(first):
        raise CatalogueError(f"{path} is a {'workbook' if is_workbook else 'CSV'}: {advice}")


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


class NdjsonCatalogue:
    """A catalogue on disk: a directory, or one file of shops.

    Raises CatalogueError if there is none, `shops` is missing, a file's name is unknown, or a file is a CSV, a workbook
    or one JSON document. A lenient catalogue ignores unknown fields and files. `changes` is a file of changes in place
    of `changes.ndjson` of the directory.
    """

    unit: Final = "bytes"

    def __init__(self, path: Path, *, lenient: bool = False, changes: Path | None = None) -> None:
        self._lenient = lenient
        self._changes = changes or (path / CHANGES if path.is_dir() else None)
        try:
            self._files = _files_of(path, lenient=lenient)
        except OSError as error:
            raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
        for kind, file in self._files.items():
            refuse_other_formats(file, kind)

    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in RECORDS if kind in self._files)

    def name(self, kind: str) -> str:
        return self._files[kind].name

    def size(self, kind: str) -> int:
        return self._files[kind].stat().st_size

    def fingerprint(self) -> str:
        """A digest of the content of all files, including the changes."""
        files = dict(self._files)
        if self._changes is not None and self._changes.exists():
            files["changes"] = self._changes
        digest = sha256(f"lenient {self._lenient}\n".encode())
        for kind, path in sorted(files.items()):
            try:
                with path.open("rb") as file:
                    digest.update(f"{kind} {path.name} {file_digest(file, 'sha256').hexdigest()}\n".encode())
            except OSError as error:
                raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
        return digest.hexdigest()

    def written(self) -> datetime:
        return datetime.fromtimestamp(min(path.stat().st_mtime for path in self._files.values()), UTC)

    def reading(self) -> AbstractContextManager[None]:
        """Fixes nothing: files have no transactions, so all changes are read after them."""
        return nullcontext()

    def changes(self) -> ChangeFile | None:
        """The file `changes.ndjson` of the directory, which may appear later; None for a single file of shops."""
        if self._changes is None:
            return None
        zipped = self._changes.with_name(f"{self._changes.name}.gz")
        return ChangeFile(zipped if zipped.exists() else self._changes, lenient=self._lenient)

    def records(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        path = self._files[kind]
        return without_mixed_versions(self._valid(kind, problems, advance), path.name, "file", problems)

    def _valid(self, kind: str, problems: ProblemLog, advance: Advance) -> Iterator[NumberedRecord]:
        path = self._files[kind]
        for line in lines_of(path, advance):
            record: object = None
            try:
                record = parsed(line)
                yield line.number, validated(RECORDS[kind], record, lenient=self._lenient)
            except RefusedRecordError as error:
                problems.add_refused(path.name, line.number, error, record)
                if kind == "shops":
                    problems.add_hiding(hiding_of(line.number, line.text if record is None else record))


def _files_of(path: Path, *, lenient: bool) -> dict[str, Path]:
    if path.is_file():
        return {"shops": path}
    if not path.is_dir():
        raise CatalogueError(f"there is no catalogue at {path}: give a directory of NDJSON files or one file of shops")
    files: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        suffix = next((suffix for suffix in _SUFFIXES if file.name.endswith(suffix)), None)
        kind = file.name.removesuffix(suffix or "")
        if suffix is None or (not file.is_file() and kind not in {*RECORDS, "changes"}):
            continue
        _refuse_no_file(file)
        if kind in files:
            raise CatalogueError(f"{files[kind].name} and {file.name} hold the same type: remove one of them")
        if kind in RECORDS:
            files[kind] = file
        elif not lenient and kind != "changes":
            known = ", ".join(RECORDS)
            raise CatalogueError(
                f"{_printable(file.name)} is no known type ({known}): rename it, or ignore it by --lenient"
            )
    if "shops" not in files:
        for other in sorted(path.glob("shops.*")):
            refuse_other_formats(other)
        raise CatalogueError(f"{path} holds no shops.ndjson or shops.ndjson.gz")
    return files


def _refuse_no_file(path: Path) -> None:
    """Raise CatalogueError if a file of the catalogue is a link that leads nowhere, a directory or a pipe.

    It must not count as absent, as a build would remove all of its records.
    """
    if path.is_file():
        return
    what = "leads nowhere" if path.is_symlink() and not path.exists() else "is not a regular file"
    raise CatalogueError(f"{path} {what}: mend or remove it")


def _printable(name: str) -> str:
    """A file's name without control characters, which the name of a foreign file may hold."""
    return name if name.isprintable() else ascii(name)[1:-1]


def lines_of(path: Path, advance: Advance) -> Iterator[Line]:
    """The lines of a file that are not blank."""
    cutter = LineCutter()
    try:
        with path.open("rb") as raw:
            # What was decompressed before a fault is returned first.
            read = gzip.GzipFile(fileobj=raw).read1 if path.name.endswith(".gz") else raw.read
            reported, block = 0, None
            while block != b"":
                block = read(_BLOCK)
                if block:
                    cutter.feed(block)
                else:
                    cutter.end()
                while (line := cutter.cut()) is not None:
                    yield line
                advance(raw.tell() - reported)
                reported = raw.tell()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        # This is never an invalid line to skip, as the rest of the file is unknown.
        raise CatalogueError(f"{path} is damaged or truncated after line {cutter.number}: write it again") from error
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
