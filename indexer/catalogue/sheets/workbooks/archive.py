"""Opens the ZIP archive of a workbook, and reads its members of XML as streams.

Nothing is held that a small file could make large: sizes are compared before anything is unpacked, documents that
declare a type (entities) are refused, and so is a text of more characters than a cell may have.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn, Protocol
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
# As in a CSV: `csv.field_size_limit`. Spreadsheets allow a quarter of it.
MAX_CELL: Final = 131_072


def unreadable_workbook(path: Path, reason: object) -> CatalogueError:
    """The error for a workbook that is damaged, or locked by a password."""
    return CatalogueError(
        f"{path} is not a readable workbook ({reason}): save it as .xlsx without a password, or as CSV"
    )


class Handler(Protocol):
    """Takes the parts of a document, by their names without namespaces."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""

    def end(self, name: str) -> None:
        """Take the end of an element."""

    def text(self, text: str) -> None:
        """Take text, which may be a part of it."""


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

    def parse(self, name: str, handler: Handler) -> Iterator[None]:
        """Give a member to a handler; yields after each block."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        locals_ = dict[str, str]()

        def start(name: str, attributes: Mapping[str, str]) -> None:
            local = locals_.get(name) or locals_.setdefault(name, name.rpartition(":")[2])
            handler.start(local, attributes)

        def end(name: str) -> None:
            handler.end(locals_[name])

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = handler.text
        parser.StartDoctypeDeclHandler = self._refuse_type
        try:
            with self._zip.open(self._checked(name)) as member:
                read = 0
                while block := member.read(_BLOCK):
                    read += len(block)
                    parser.Parse(block)
                    if read - parser.CurrentByteIndex > _MAX_TOKEN:
                        raise CatalogueError(f"{self.path} has a tag that never ends ({name}): save it again")
                    yield
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
