"""Reads the npm package `name-suggestion-index`: brands by kind, and what Wikidata states about their web sites.

The archive is hostile input: it is read as a stream, nothing is unpacked to disk, and every size is bounded.
"""

import gzip
import hashlib
import tarfile
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from index_mappings.strict_json import NotStrictJsonError, strict_loads
from indexer.records.problems import CatalogueError

NAME: Final = "name-suggestion-index"
_FOLDER: Final = "package/"
_STATED: Final = "package.json"
_LICENCE: Final = "LICENSE.md"
_BRANDS: Final = "dist/json/nsi.min.json"
_WIKIDATA: Final = "dist/wikidata/wikidata.min.json"
_DISSOLVED: Final = "dist/wikidata/dissolved.min.json"
_FILES: Final = frozenset({_STATED, _LICENCE, _BRANDS, _WIKIDATA, _DISSOLVED})
# The package of 2026 has 99 MB in 540 members, the largest of 14 MB.
MAX_UNPACKED: Final = 512 << 20
MAX_FILE: Final = 64 << 20
MAX_MEMBERS: Final = 10_000
_BLOCK: Final = 1 << 16
# OpenStreetMap takes 255 characters.
_MAX_TEXT: Final = 1_000

ReadT = TypeVar("ReadT", bound=BaseModel)


class Area(BaseModel):
    """Where a brand is: codes of countries and regions, names of areas, or points."""

    include: tuple[str | tuple[float, ...], ...] = ()
    exclude: tuple[str | tuple[float, ...], ...] = ()


class Brand(BaseModel):
    """One brand of one kind of shop, with the tags of OpenStreetMap that its shops have."""

    id: str
    area: Area = Field(alias="locationSet")
    tags: Mapping[str, Annotated[str, Field(max_length=_MAX_TEXT)]]


class _Collection(BaseModel):
    items: tuple[Brand, ...]


class _Trees(BaseModel):
    nsi: dict[str, dict[str, Any]]


class _WikidataEntry(BaseModel):
    sites: tuple[str, ...] = Field((), alias="officialWebsites")


class _Wikidata(BaseModel):
    wikidata: dict[str, _WikidataEntry]


class _Dissolved(BaseModel):
    dissolved: dict[str, Any]


class _Stated(BaseModel):
    name: str
    version: str = Field(pattern=r"^[0-9A-Za-z.+-]{1,64}$")


@dataclass(frozen=True, slots=True)
class OpenData:
    """The contents of the package: brands by kind (`shop/clothes`), ids of dissolved ones, sites by Wikidata id.

    `others` counts the entries that are not brands, by their tree: operators, transit, flags.
    """

    version: str
    integrity: str
    licence: str
    brands: Mapping[str, tuple[Brand, ...]]
    dissolved: frozenset[str]
    sites: Mapping[str, tuple[str, ...]]
    others: Mapping[str, int]


def read_package(path: Path, integrity: str | None = None) -> OpenData:
    """Read the package. `integrity` is the value that npm states, such as `sha512-...`.

    Raises CatalogueError if the file can't be read, has another digest, or is not this package.
    """
    try:
        with path.open("rb") as file:
            digest = f"sha512-{b64encode(hashlib.file_digest(file, 'sha512').digest()).decode()}"
            if integrity is not None and integrity != digest:
                raise CatalogueError(
                    f"{path} has the digest {digest}, and {integrity} is expected: remove it, and fetch it again"
                )
            file.seek(0)
            texts = _texts(path, file)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise CatalogueError(f"{path} can't be read as an npm package: {error}") from error
    reader = _Reader(path, texts)
    stated = reader.read(_STATED, _Stated)
    if stated.name != NAME:
        raise CatalogueError(f"{path} is not the npm package {NAME}")
    brands: dict[str, tuple[Brand, ...]] = {}
    others: Counter[str] = Counter()
    for key, value in reader.read(_BRANDS, _Trees).nsi.items():
        tree, _, kind = key.partition("/")
        if tree == "brands":
            brands[kind] = reader.checked(_BRANDS, _Collection, value).items
        else:
            others[tree] += len(value)
    return OpenData(
        version=stated.version,
        integrity=digest,
        licence=reader.text(_LICENCE),
        brands=brands,
        dissolved=frozenset(reader.read(_DISSOLVED, _Dissolved).dissolved),
        sites={entry: stated.sites for entry, stated in reader.read(_WIKIDATA, _Wikidata).wikidata.items()},
        others=others,
    )


class _BoundedStream:
    """The bytes of a stream, up to a number that no package has."""

    def __init__(self, path: Path, stream: gzip.GzipFile) -> None:
        self._path, self._stream, self._left = path, stream, MAX_UNPACKED

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; raises CatalogueError beyond the bound."""
        block = self._stream.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise CatalogueError(f"{self._path} unpacks to more than {MAX_UNPACKED:,} bytes, which {NAME} does not")
        return block


def _texts(path: Path, file: IO[bytes]) -> dict[str, bytes]:
    """The contents of the files that are used; other members are passed over unread."""
    texts: dict[str, bytes] = {}
    with gzip.GzipFile(fileobj=file) as unpacked:
        stream = _BoundedStream(path, unpacked)
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            for number, member in enumerate(archive):
                if number >= MAX_MEMBERS:
                    raise CatalogueError(f"{path} has more than {MAX_MEMBERS:,} members, which {NAME} does not")
                name = member.name.removeprefix(_FOLDER)
                if member.name != f"{_FOLDER}{name}" or name not in _FILES:
                    continue
                content = archive.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
                if content is None or member.size > MAX_FILE or name in texts:
                    raise CatalogueError(f"{path}: {member.name} is not one file of at most {MAX_FILE:,} bytes")
                texts[name] = content.read()
        while stream.read(_BLOCK):
            pass  # up to its end, where the checksum is
    return texts


class _Reader:
    def __init__(self, path: Path, texts: Mapping[str, bytes]) -> None:
        self._path, self._texts = path, texts

    def text(self, name: str) -> str:
        return self._bytes(name).decode("utf-8", errors="replace")

    def read(self, name: str, form: type[ReadT]) -> ReadT:
        """A file of JSON in a form."""
        try:
            return self.checked(name, form, strict_loads(self._bytes(name)))
        except NotStrictJsonError as error:
            raise CatalogueError(f"{self._path}: {name} {error}") from error

    def checked(self, name: str, form: type[ReadT], value: object) -> ReadT:
        try:
            return form.model_validate(value)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise CatalogueError(f"{self._path}: {name} has another form than {NAME} 8 at {where!r}") from error

    def _bytes(self, name: str) -> bytes:
        if name not in self._texts:
            raise CatalogueError(f"{self._path} is not the npm package {NAME}: it has no {name}")
        return self._texts[name]
