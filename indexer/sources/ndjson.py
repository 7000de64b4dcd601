"""The NDJSON catalogue: a directory of files, or one file of shops, plain or gzipped.

A bad line is told by file, line and field, never by its value. Memory is bounded by one line, whatever the file holds.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO, Final, Generic, TypeVar, cast

from pydantic import ValidationError

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.records.problems import CatalogueError, Problem, ProblemLog
from indexer.records.related import RECORDS
from indexer.records.shop import Record, reasons
from indexer.sources.changes.file import ChangeFile
from indexer.sources.formats import refuse_other_formats
from indexer.sources.lines import BYTE_ORDER_MARK, MAX_LINE

CHANGES: Final = "changes.ndjson"
_ENDINGS: Final = (".ndjson", ".ndjson.gz")

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True, slots=True)
class Read(Generic[AnyRecord]):
    """A record that was read.

    Attributes:
        record: valid by itself.
        line: where it stands.
    """

    record: AnyRecord
    line: int


class NdjsonCatalogue:
    """A catalogue on disk.

    Raises:
        CatalogueError: there is none, `shops` is missing, a file's name is not known, or a file is a CSV or one JSON
            document.
    """

    def __init__(self, path: Path, *, lenient: bool = False, changes: Path | None = None) -> None:
        """Look which files there are.

        Args:
            path: a directory, or one file of shops.
            lenient: pass over unknown fields and files.
            changes: the file of changes, where it is not `changes.ndjson` of the directory.
        """
        self._lenient = lenient
        self._changes = changes or (path / CHANGES if path.is_dir() else None)
        self._files = _files_of(path, lenient=lenient)
        for kind, file in self._files.items():
            refuse_other_formats(file, of_shops=kind == "shops")

    def kinds(self) -> tuple[str, ...]:
        """The types that the catalogue holds, in the order in which they are read."""
        return tuple(kind for kind in RECORDS if kind in self._files)

    def name(self, kind: str) -> str:
        """The name of a type's file, for reports."""
        return self._files[kind].name

    def size(self, kind: str) -> int:
        """The bytes that reading a type goes through."""
        return self._files[kind].stat().st_size

    def unit(self) -> str:
        """What `size` counts."""
        return "bytes"

    def fingerprint(self) -> str:
        """A digest of the content of all files, of the changes too.

        Raises:
            CatalogueError: a file can't be read.
        """
        files = dict(self._files)
        if self._changes is not None and self._changes.exists():
            files["changes"] = self._changes
        whole = sha256(f"lenient {self._lenient}\n".encode())
        for kind, path in sorted(files.items()):
            try:
                with path.open("rb") as file:
                    whole.update(f"{kind} {path.name} {file_digest(file, 'sha256').hexdigest()}\n".encode())
            except OSError as error:
                raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error
        return whole.hexdigest()

    def open_snapshot(self) -> None:
        """Files have no moment of their own and no place in the changes: all changes are read after them."""

    def close_snapshot(self) -> None:
        """Nothing is held."""

    def changes(self) -> ChangeFile | None:
        """The file `changes.ndjson` of the directory, which may appear later; None beside a single file of shops.

        Raises:
            CatalogueError: the changes are gzipped.
        """
        if self._changes is None:
            return None
        zipped = self._changes.with_name(f"{self._changes.name}.gz")
        return ChangeFile(zipped if zipped.exists() else self._changes, lenient=self._lenient)

    def records(
        self, kind: str, model: type[AnyRecord], problems: ProblemLog, advance: Callable[[int], None]
    ) -> Iterator[Read[AnyRecord]]:
        """Read the records of a type.

        Args:
            kind: one of `kinds()`.
            model: its model, RECORDS[kind].
            problems: takes what is wrong.
            advance: is told the bytes gone through since it was last told.
        """
        path = self._files[kind]
        version_kind: str | None = None
        for line, record in self._valid(path, model, problems, advance):
            stated = record.version_kind
            version_kind = version_kind or stated
            if stated not in (None, version_kind):
                reason = f"must not be mixed with {version_kind} in one file"
                problems.add(Problem(path.name, line, stated, reason))
            else:
                yield Read(record, line)

    def _valid(
        self,
        path: Path,
        model: type[AnyRecord],
        problems: ProblemLog,
        advance: Callable[[int], None],
    ) -> Iterator[tuple[int, AnyRecord]]:
        for line, raw in numbered_lines(path, problems, advance):
            try:
                yield line, model.model_validate(strict_loads(raw), extra="ignore" if self._lenient else None)
            except NotStrictJsonError as error:
                problems.add(Problem(path.name, line, None, f"the line {error}"))
            except ValidationError as error:
                problems.add(*(Problem(path.name, line, field, reason) for field, reason in reasons(error)))


def _files_of(path: Path, *, lenient: bool) -> dict[str, Path]:
    if path.is_file():
        return {"shops": path}
    if not path.is_dir():
        raise CatalogueError(f"there is no catalogue at {path}: give a directory of NDJSON files or one file of shops")
    files: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        exit_code = next((exit_code for exit_code in _ENDINGS if file.name.endswith(exit_code)), None)
        if exit_code is None or not file.is_file():
            continue
        kind = file.name.removesuffix(exit_code)
        if kind in files:
            raise CatalogueError(f"{files[kind].name} and {file.name} hold the same type: remove one of them")
        if kind in RECORDS:
            files[kind] = file
        elif not lenient and kind != "changes":
            known = ", ".join(RECORDS)
            raise CatalogueError(
                f"{_shown(file.name)} is no known type ({known}): rename it, or pass over it by --lenient"
            )
    if "shops" not in files:
        for other in sorted(path.glob("shops.*")):
            refuse_other_formats(other)
        raise CatalogueError(f"{path} holds no shops.ndjson or shops.ndjson.gz")
    return files


def _shown(name: str) -> str:
    """A file's name as a terminal may show it: a catalogue that came from somewhere may hold any."""
    return name if name.isprintable() else ascii(name)[1:-1]


def numbered_lines(path: Path, problems: ProblemLog, advance: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, without their ends; one that is too long is reported and passed over."""
    number = 0
    try:
        with path.open("rb") as raw:
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if path.name.endswith(".gz") else raw
            told = 0
            while text := stream.readline(MAX_LINE + 1):
                number += 1
                if number == 1:
                    text = text.removeprefix(BYTE_ORDER_MARK)
                if len(text) > MAX_LINE and not text.endswith(b"\n"):
                    problems.add(Problem(path.name, number, None, f"the line is longer than {MAX_LINE} bytes"))
                    _skip_line(stream)
                elif text.strip():
                    yield number, text
                advance(raw.tell() - told)
                told = raw.tell()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        # Never a bad line to be skipped: nobody knows what the rest would have held.
        raise CatalogueError(f"{path} is damaged or ends in the middle after line {number}: write it anew") from error
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from error


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
        pass
