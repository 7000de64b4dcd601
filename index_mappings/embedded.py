"""The embedded engine's indices: columns, which follow from the document classes, paths, and manifests of the files.

A commit links the files of each index into a folder that never changes, and writes a manifest, which the stamp names by
its SHA-256: readers open exactly the files of their stamp. Unlike CRC-32, SHA-256 also detects files of another
generation, at about a gigabyte a second. Small files have their own checksum.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import DOCUMENTS, SCHEMA_VERSION, Form, Role, fields_with
from index_mappings.generations import Stamp, is_generation
from index_mappings.ngrams import (
    NONE_FREQUENT,
    PARTS,
    REPETITIVE,
    RUNS,
    SHORT_PREFIX,
    STARTS,
    EngineField,
    FrequentTerms,
    cut_tails,
    engine_fields,
    engine_values,
    frequent_values,
    plain_run_row,
    repetitive_run_row,
    start_row,
)

STORED_COLUMN: Final = "stored"
# An integer that sorts fast: a lower band is a better rank, and within one hits are sorted by their rank.
BAND_COLUMN: Final = "band"
# The ranks at which the bands of an index begin, and its frequent terms, in its folder.
ANCHORS_FILE: Final = "anchors.json"
# The distance of consecutive values of a document's column, in the positions that phrase queries count.
RUN_STEP: Final = 2
# In the folder of a generation: the operations document, and the time since which it is no longer live.
OPERATIONS_FILE: Final = "operations.json"
RETIRED_FILE: Final = "retired"
# The folder of a generation that holds the linked files and the manifests.
COMMITTED: Final = "committed"
META_FILE: Final = "meta.json"
MANIFEST_SUFFIX: Final = ".files"
_CHECKSUM: Final = "checksum"


@cache
def columns(kind: str) -> tuple[EngineField, ...]:
    """The columns of one kind's documents, in order, without BAND_COLUMN and STORED_COLUMN."""
    document = DOCUMENTS[kind]
    tails, infixes = fields_with(document, Role.TAILS), fields_with(document, Role.INFIX)
    fields = (
        field._replace(values=cut_tails) if field.name in tails else field
        for field in engine_fields(document, SHORT_PREFIX)
        if field.indexed or field.sortable or field.counted
    )
    # Only the frequent ones are terms, which `column_values` adds.
    parts = (EngineField(name + PARTS, name, Form.TERMS, lambda _: [], indexed=True) for name in infixes)
    rows = (
        *((name + RUNS, name, plain_run_row) for name in infixes),
        *((name + REPETITIVE, name, repetitive_run_row) for name in infixes),
        *((name + STARTS, name, start_row) for name in tails),
    )
    ordered = (EngineField(name, source, Form.TERMS, row, indexed=True, ordered=True) for name, source, row in rows)
    return (*fields, *parts, *ordered)


def column_values(kind: str, document: object, frequent: FrequentTerms = NONE_FREQUENT) -> dict[str, Any]:
    """The values of a document's columns; `frequent` are the frequent terms of the generation's index."""
    values = engine_values(document, columns(kind))
    for column, terms in frequent_values(document, frequent) if frequent else ():
        values[column] += terms
    return values


def read_anchors(path: Path) -> list[str]:
    """The ranks at which the bands from the second on begin, ascending. Errors as of `from_checked_json`, or OSError.

    They never change, so the band of a rank is the number of anchors up to it, also while documents change.
    """
    return [str(anchor) for anchor in from_checked_json(path.read_text(encoding="utf-8"))["anchors"]]


def read_frequent(path: Path) -> FrequentTerms:
    """The frequent terms in the same file, which never change either. Errors as of `read_anchors`."""
    frequent = from_checked_json(path.read_text(encoding="utf-8"))["frequent"]
    return {str(column): frozenset(map(str, terms)) for column, terms in frequent.items()}


def generation_directory(root: Path, generation: str) -> Path:
    """The folder of a generation."""
    return root / "generations" / generation


def index_directory(root: Path, generation: str, kind: str) -> Path:
    """The folder of one index of a generation."""
    return generation_directory(root, generation) / kind


def stamp_path(root: Path, generation: str) -> Path:
    """The file of a generation's stamp."""
    return generation_directory(root, generation) / "stamp.json"


def pointer_path(root: Path) -> Path:
    """The file that names the live generation and, on a second line, the previous one: the embedded engine's alias."""
    return root / "live"


def pointer_text(live: str, previous: str | None) -> str:
    """The pointer file's text."""
    return f"{live}\n{previous}\n" if previous else f"{live}\n"


def pointed_to(text: str) -> tuple[str, str | None]:
    """The live and the previous generation that a pointer file names; ValueError if the text is not of such a file."""
    lines = text.splitlines()
    if not lines or not all(map(is_generation, lines)) or len(lines) > 2:  # noqa: PLR2004 - the live one and one before
        raise ValueError("names no generation")
    return lines[0], lines[1] if len(lines) > 1 else None


@dataclass(frozen=True, slots=True)
class FileSum:
    """The size of a file in bytes, and the SHA-256 of its content in hexadecimal."""

    size: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "FileSum":
        """The size and the SHA-256 of a file's content."""
        return cls(len(data), sha256(data).hexdigest())

    @classmethod
    def of_file(cls, path: Path) -> "FileSum":
        """The same, of a file that may be large."""
        with path.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
            return cls(stream.tell(), digest)


@dataclass(frozen=True, slots=True)
class CommittedIndex:
    """One index as of a commit: its folder below COMMITTED, and the files in it that readers open, by name."""

    folder: str
    files: Mapping[str, FileSum]


@dataclass(frozen=True, slots=True)
class FilesManifest:
    """The files of a stamp, by kind of document, except those of the typeahead, which has its own manifest."""

    indices: Mapping[str, CommittedIndex]

    def to_bytes(self) -> bytes:
        """The manifest's file."""
        document = {
            kind: {
                "folder": index.folder,
                "files": {name: [s.size, s.sha256] for name, s in sorted(index.files.items())},
            }
            for kind, index in self.indices.items()
        }
        return json.dumps(document).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> "FilesManifest":
        """Read a manifest's file; ValueError if its hash is not this name, or it is not a manifest."""
        if sha256(data).hexdigest() != name:
            raise ValueError("the manifest of the files is damaged")
        try:
            indices = {
                str(kind): CommittedIndex(
                    str(index["folder"]),
                    {str(file): FileSum(int(n), str(s)) for file, (n, s) in index["files"].items()},
                )
                for kind, index in json.loads(data).items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError("not a manifest of files") from error
        if indices.keys() != DOCUMENTS.keys():
            raise ValueError("the manifest of the files names other indices")
        return cls(indices)


def files_manifest_path(generation_directory: Path, name: str) -> Path:
    """The path of a manifest by its name."""
    return generation_directory / COMMITTED / f"{name}{MANIFEST_SUFFIX}"


def to_checked_json(document: Mapping[str, Any]) -> str:
    """A small document as JSON with its own checksum."""
    return json.dumps({**document, _CHECKSUM: _sum_of(document)})


def from_checked_json(text: str) -> dict[str, Any]:
    """Read a document of `to_checked_json`; ValueError if it is not JSON, or its checksum does not match."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.pop(_CHECKSUM, None) != _sum_of(document):
        raise ValueError("the checksum does not fit")
    return document


def from_stamp_json(text: str) -> Stamp:
    """Read a stamp's file, its checked JSON; ValueError if it is damaged or none. Earlier versions had no checksum."""
    document = json.loads(text)
    if isinstance(document, dict) and _CHECKSUM not in document and document.get("schema_version") != SCHEMA_VERSION:
        return Stamp.from_wire(document)
    return Stamp.from_wire(from_checked_json(text))


def _sum_of(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
