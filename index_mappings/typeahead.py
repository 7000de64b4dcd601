"""What the embedded engine keeps for key presses beside its index: texts in order, and which shops have them.

A file holds some shops: their texts sorted by code point, so that all texts with one beginning stand together, and the
shops in the order of their rank (M1), so that a lower number is a better shop. It is written once and never changed.
What changed since is in a second, small file, and a moment's file says which two belong to which sequence of a stamp.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from index_mappings.documents import ShopDocument

# Raised with every change of what the files hold; others are left alone by whoever reads.
TYPEAHEAD_VERSION: Final = 2
# A posting is a shop's number, and in its lowest bits whether the text is a full form of it, a key, a word (X2), a name
# and a leading one (`index_mappings.forms`).
FULL: Final = 1
KEY: Final = 2
WORD: Final = 4
NAME: Final = 8
LEADING: Final = 16
POSTING_BITS: Final = 5
# So many texts are one leaf of a tree that knows the best posting below each of its nodes.
BLOCK: Final = 16
# What is said of the first characters of a text is one number: so many code points of so many bits each, the first one
# highest, and zeros for those that a shorter text has not.
FIRSTS: Final = 3
LETTER_BITS: Final = 21
# Texts without their first and without their second character are sorted once more: an error there needs no walk.
LACKING: Final = (0, 1)
# The end of a file: how long the table of its parts is, and the checksum of all before, in as many bytes each.
TRAILER_BYTES: Final = 16
_HALF: Final = TRAILER_BYTES // 2
ALIGNMENT: Final = 64

# What a suggestion shows: id, name, domain, category, popularity.
Shown = tuple[str, str, str, str, float | None]


class Part(NamedTuple):
    """Where in a file one array is.

    Attributes:
        dtype: of its items, as numpy writes it.
        start: byte of the file at which it begins.
        size: how many items it has.
    """

    dtype: str
    start: int
    size: int


class Moment(NamedTuple):
    """Which files tell of a generation at one sequence.

    Attributes:
        base: the file with most shops.
        changes: the file with those that were written since, and without those of the base that were replaced or
            removed; None where nothing changed.
    """

    base: str
    changes: str | None

    def as_wire(self) -> dict[str, str | None]:
        """The moment's file."""
        return {"base": self.base, "changes": self.changes}

    @classmethod
    def from_wire(cls, document: Mapping[str, object]) -> "Moment":
        """Read a moment's file.

        Raises:
            ValueError: it is none.
        """
        base, changes = document.get("base"), document.get("changes")
        if not isinstance(base, str) or not (changes is None or isinstance(changes, str)):
            raise ValueError("not a moment of a typeahead")
        return cls(base, changes)


def shown_part(shop: ShopDocument) -> Shown:
    """What a suggestion shows of a shop."""
    return shop.id, shop.name, shop.domain, shop.categories[0], shop.popularity


def typeahead_directory(generation_directory: Path) -> Path:
    """Where the files of a generation are."""
    return generation_directory / "typeahead"


def moment_path(directory: Path, sequence: int) -> Path:
    """The file that tells of one sequence."""
    return directory / f"at-{sequence}.json"


def texts_path(directory: Path, name: str) -> Path:
    """A file of texts by its name."""
    return directory / f"{name}.texts"


def read_table(data: memoryview) -> tuple[dict[str, Any], dict[str, Part]]:
    """What a file of texts says of itself, and where its arrays are.

    Args:
        data: the whole file.

    Raises:
        ValueError: it is none, a damaged one, or of another version.
    """
    end = len(data) - TRAILER_BYTES
    size, told_sum = (int.from_bytes(half, "little") for half in (data[end : end + _HALF], data[end + _HALF :]))
    try:
        told = json.loads(bytes(data[end - size : end]))
        parts = {name: Part(*part) for name, part in told.pop("parts").items()}
        whole = told["bytes"] == end - size and told_sum == checksum(data[:end])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a file of texts") from error
    if not whole:
        raise ValueError("the file of texts is damaged")
    if told["version"] != TYPEAHEAD_VERSION:
        raise ValueError(f"the file of texts is of version {told['version']}")
    return told, parts


def trailer(table_bytes: int, checksum_before: int) -> bytes:
    """The end of a file."""
    return b"".join(told.to_bytes(_HALF, "little") for told in (table_bytes, checksum_before))


def checksum(data: bytes | memoryview, before: int = 0) -> int:
    """What tells a damaged file: of these bytes, after others."""
    return zlib.crc32(data, before)
