"""Opens the ZIP archive of a workbook, and reads its members of XML as streams.

Nothing is held that a small file could make large: sizes are compared before anything is unpacked, and documents that
declare a type (entities) are refused.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from indexer.records.problems import CatalogueError

_BLOCK: Final = 64 * 1024
_MAX_MEMBERS: Final = 10_000
_MAX_BYTES: Final = 1 << 30
# Sheets compress to a thirtieth, those of repeated cells to a hundredth.
_MAX_RATIO: Final = 250
_FREE_BYTES: Final = 16 << 20
# A tag is searched for its end again with every block.
_MAX_TOKEN: Final = 1 << 20


def unreadable_workbook(path: Path, reason: object) -> CatalogueError:
    """The error for a workbook that is damaged, or locked by a password."""
    return CatalogueError(
        f"{path} is not a readable workbook ({reason}): save it as .xlsx without a password, or as CSV"
    )


class _LocalNames(dict[str, str]):
    """Names without their prefixes."""

    def __missing__(self, name: str) -> str:
        return self.setdefault(name, name.rpartition(":")[2])


class Archive:
    """The members of a workbook. Raises CatalogueError where they are damaged, encrypted or too large."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = ZipFile(path)
        except BadZipFile as error:
            raise unreadable_workbook(path, error) from error
        self._members = {one.filename.lstrip("/"): one for one in self._zip.infolist()}
        if len(self._members) > _MAX_MEMBERS:
            raise CatalogueError(f"{path} has {len(self._members):,} members, which no workbook has: save it as CSV")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the members."""
        return tuple(self._members)

    def head(self, name: str, size: int) -> bytes:
        """The first bytes of a member."""
        with self._zip.open(self._checked(name)) as member:
            return member.read(size)

    def elements(self, name: str, *wanted: str) -> Iterator[tuple[tuple[Element, ...], Element]]:
        """The elements of a member that have one of these names, each after those that it is in.

        Names are without namespaces. An element comes with what is in it, those that it is in without.
        """
        parser = expat.ParserCreate()
        parser.buffer_text = True
        local_names = _LocalNames()
        ready = list[tuple[tuple[Element, ...], Element]]()
        outer = list[Element]()
        builder, depth = TreeBuilder(), 0  # of the wanted element that is open

        def start(tag: str, stated: Mapping[str, str]) -> None:
            nonlocal depth
            local = local_names[tag]
            attributes = {local_names[key]: value for key, value in stated.items()}
            if depth or local in wanted:
                depth += 1
                builder.start(local, attributes)
            else:
                outer.append(Element(local, attributes))

        def end(tag: str) -> None:
            nonlocal builder, depth
            if not depth:
                outer.pop()
                return
            depth -= 1
            element = builder.end(local_names[tag])
            if not depth:
                ready.append((tuple(outer), element))
                builder = TreeBuilder()

        def text(data: str) -> None:
            if depth:
                builder.data(data)

        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
        parser.StartDoctypeDeclHandler = self._refuse_type
        try:
            with self._zip.open(self._checked(name)) as member:
                read = 0
                while block := member.read(_BLOCK):
                    read += len(block)
                    parser.Parse(block)
                    if read - parser.CurrentByteIndex > _MAX_TOKEN:
                        raise CatalogueError(f"{self.path} has a tag that never ends ({name}): save it again")
                    yield from ready
                    ready.clear()
                parser.Parse(b"", True)
        except (expat.ExpatError, BadZipFile) as error:
            raise unreadable_workbook(self.path, f"{name}: {error}") from error

    def _refuse_type(self, *_: object) -> NoReturn:
        raise CatalogueError(
            f"{self.path} declares a type of document, which no spreadsheet program does: save it again"
        )

    def _checked(self, name: str) -> ZipInfo:
        member = self._members.get(name)
        if member is None:
            raise CatalogueError(f"{self.path} is a damaged workbook, without its {name}: save it again")
        if member.flag_bits & 1 or member.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            raise CatalogueError(f"{self.path} is locked by a password: save it as .xlsx without one, or as CSV")
        size, packed = member.file_size, max(1, member.compress_size)
        if size > _MAX_BYTES or (size > _FREE_BYTES and size > _MAX_RATIO * packed):
            raise CatalogueError(
                f"{self.path} would unpack to {size:,} bytes, {size // packed:,} times its size: delete what is not"
                " part of the list, or save it as CSV"
            )
        return member
