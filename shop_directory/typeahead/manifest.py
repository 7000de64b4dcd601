"""The manifest of a typeahead: its segments, which of their shops are removed, and all categories.

A manifest is one immutable file, named by the SHA-256 of its bytes; the stamp names the manifest. After a merge there
are two equal coverings, with the result and with its inputs; a reader uses the first one whose files it has.
"""

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

from index_mappings.documents import CategoryEntry
from index_mappings.generations import is_generation

SUFFIX: Final = ".manifest"
# The folder of a generation's typeahead files in the embedded engine.
FOLDER: Final = "typeahead"
# The maximum number of segments that a suggest request searches, in addition to those that are too large to be merged
# with newer ones: a request takes 31 microseconds with one and 109 with eight. There are more than three only while
# changes arrive quickly: with a lower maximum, each commit would write a larger segment, and each service fetch it,
# until readers have fetched the result of the last merge.
MAX_SEGMENTS: Final = 12
# The document in the index of the live generation's stamp with the announcement of the next one.
ANNOUNCED_ID: Final = "announced"
_NAME: Final = re.compile("[0-9a-f]{64}")
# The maximum size of a decompressed bitmap: it has bits for more shops than a segment can number.
_MAX_BITMAP_BYTES: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class SegmentUse:
    """A segment in a covering, by its SHA-256, its size in bytes and its number of shops, removed ones included.

    `removed` is a bitmap of the numbers of shops that are removed or newer in another segment, the lowest bit of the
    first byte first; trailing zeros may be left out.
    """

    name: str
    size: int
    shops: int
    removed: bytes = b""


Covering = tuple[SegmentUse, ...]


@dataclass(frozen=True, slots=True)
class TypeaheadManifest:
    """The segments and categories of a typeahead.

    Each covering has every shop exactly once, in segments from the oldest to the newest; the preferred one is first.
    The categories are all that a public shop carries, most shops first, then slug (M11).
    """

    coverings: tuple[Covering, ...]
    categories: tuple[CategoryEntry, ...] = ()

    def files(self) -> dict[str, int]:
        """The segments of all coverings by name, with their sizes in bytes."""
        return {use.name: use.size for covering in self.coverings for use in covering}

    def to_bytes(self) -> bytes:
        """The manifest's file."""
        coverings = [
            [[use.name, use.size, use.shops, b64encode(zlib.compress(use.removed, 1)).decode()] for use in covering]
            for covering in self.coverings
        ]
        categories = [
            [entry.slug, entry.name, entry.count, dict(entry.translations), entry.words, entry.names]
            for entry in self.categories
        ]
        return json.dumps({"coverings": coverings, "categories": categories}, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> "TypeaheadManifest":
        """Read a manifest's file; ValueError if its hash is not this name, or it is not a manifest."""
        if sha256(data).hexdigest() != name:
            raise ValueError("the manifest of the typeahead is damaged")
        try:
            document = json.loads(data)
            coverings = tuple(tuple(_use(*use) for use in covering) for covering in document["coverings"])
            categories = tuple(_category(*entry) for entry in document["categories"])
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise ValueError("not a manifest of a typeahead") from error
        if not coverings:
            raise ValueError("the manifest of the typeahead names no segments")
        return cls(coverings, categories)


def is_name(text: str) -> bool:
    """Whether a text can name a segment or a manifest."""
    return _NAME.fullmatch(text) is not None


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal: the name of a segment or a manifest."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def manifest_path(directory: Path, name: str) -> Path:
    """The path of a manifest by its name."""
    return directory / f"{name}{SUFFIX}"


def bitmap_of(numbers: Iterable[int], bitmap: bytes = b"") -> bytes:
    """A bitmap as `SegmentUse.removed`, of some numbers and of all numbers in another bitmap."""
    bits = bytearray(bitmap)
    for number in numbers:
        if (byte := number >> 3) >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        bits[byte] |= 1 << (number & 7)
    return bytes(bits)


@dataclass(frozen=True, slots=True)
class Announcement:
    """A generation that is about to be published, and its typeahead's manifest, which services fetch early."""

    generation: str
    typeahead: str

    def to_wire(self) -> dict[str, Any]:
        """The document; `stamp` is the only field in the strict mapping of that index."""
        return {"stamp": {"announced": asdict(self)}}

    @classmethod
    def from_wire(cls, document: Mapping[str, Any]) -> "Announcement | None":
        """Read the document; None if it is invalid, because it only saves time."""
        try:
            announced = document["stamp"]["announced"]
            found = cls(announced["generation"], announced["typeahead"])
        except (KeyError, TypeError):
            return None
        names = isinstance(found.generation, str) and isinstance(found.typeahead, str)
        return found if names and is_generation(found.generation) and is_name(found.typeahead) else None


def _category(
    slug: str, name: str, count: int, translations: Mapping[str, str], *forms: Iterable[str]
) -> CategoryEntry:
    words, names = (tuple(map(str, texts)) for texts in forms)
    stated = {str(tag): str(text) for tag, text in dict(translations).items()}
    return CategoryEntry(str(slug), str(name), int(count), words, names, stated)


def _use(name: str, size: int, shops: int, removed: str) -> SegmentUse:
    if not is_name(name):
        raise ValueError("the name of a segment is not a SHA-256")
    decompressor = zlib.decompressobj()
    bitmap = decompressor.decompress(b64decode(removed, validate=True), _MAX_BITMAP_BYTES)
    if not decompressor.eof:
        raise ValueError("a bitmap is larger than any segment's")
    return SegmentUse(name, int(size), int(shops), bitmap)
