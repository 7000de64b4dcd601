"""Manifests of an embedded generation's files, with sizes and SHA-256 sums, and small files with their own checksum.

A commit links the files of each index into a folder that never changes afterwards, and writes a manifest of them. The
stamp names the manifest by the SHA-256 of its bytes, so a reader opens exactly the files of its stamp while the writer
continues. Unlike CRC-32, SHA-256 also detects files of another generation; hashlib hashes about a gigabyte a second.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import DOCUMENTS, SCHEMA_VERSION
from index_mappings.generations import Stamp

# The folder of a generation that holds the linked files and the manifests.
COMMITTED: Final = "committed"
META_FILE: Final = "meta.json"
MANIFEST_SUFFIX: Final = ".files"
_CHECKSUM: Final = "checksum"


@dataclass(frozen=True, slots=True)
class FileSum:
    """The size of a file in bytes, and the SHA-256 of its content in hexadecimal."""

    size: int
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "FileSum":
        """The size and the SHA-256 of a file's content."""
        return cls(len(data), sha256(data).hexdigest())


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


def committed_directory(generation_directory: Path) -> Path:
    """The folder of a generation's linked files and manifests."""
    return generation_directory / COMMITTED


def files_manifest_path(generation_directory: Path, name: str) -> Path:
    """The path of a manifest by its name."""
    return committed_directory(generation_directory) / f"{name}{MANIFEST_SUFFIX}"


def to_checked_json(document: Mapping[str, Any]) -> str:
    """A small document as JSON with its own checksum."""
    return json.dumps({**document, _CHECKSUM: _sum_of(document)})


def from_checked_json(text: str) -> dict[str, Any]:
    """Read a document of `to_checked_json`; ValueError if it is not JSON, or its checksum does not match."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.pop(_CHECKSUM, None) != _sum_of(document):
        raise ValueError("the checksum does not fit")
    return document


def to_stamp_json(stamp: Stamp) -> str:
    """The stamp's file."""
    return to_checked_json(stamp.as_wire())


def from_stamp_json(text: str) -> Stamp:
    """Read a stamp's file; ValueError if it is damaged, or not a stamp.

    Files of earlier schema versions had no checksum; they are read so that they can be refused.
    """
    document = json.loads(text)
    if isinstance(document, dict) and _CHECKSUM not in document and document.get("schema_version") != SCHEMA_VERSION:
        return Stamp.from_wire(document)
    return Stamp.from_wire(from_checked_json(text))


def _sum_of(document: Mapping[str, Any]) -> str:
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
