"""Writes the files of the prototype: for each kind of document a folder of arrays, with checksums in `sums.json`.

Documents are numbered in the order of their rank, shops as in the typeahead's segment, which has the postings of names,
keys and words. Here are, by hash, those of all other terms; the suffixes of the texts of which parts are found; the
values that are counted; and the stored parts, each compressed with a dictionary of the kind.

All documents of a kind are in memory; suffixes take some 40 bytes for each character of the texts. An engine for
production would sort bounded runs, as the typeahead does.
"""

import zlib
from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from bench.bitmaps.kernels import Items
from index_mappings.documents import DOCUMENTS, Role, declared_fields, fields_with, sort_field, stored_part
from index_mappings.embedded import FileSum
from shop_directory.typeahead.writing.segment_file import heads_of, spans

SUMS_FILE: Final = "sums.json"
# The fields of shops whose terms follow from the typeahead's segment, and the one whose parts are found.
IN_SEGMENT: Final = frozenset(("id", "full", "words", "clipped"))
INFIXES: Final = "infixes"
# The window of deflate, which is the most that a dictionary can have.
DICTIONARY_BYTES: Final = 1 << 15
RAW_DEFLATE: Final = -15
# Suffixes are sorted by this many bytes at a time, as one integer.
_STEP: Final = 8


def term_hash(field: str, text: str) -> int:
    """The hash of a field's term."""
    return int.from_bytes(blake2b(f"{field}\0{text}".encode(), digest_size=8).digest(), "little")


class KindFiles:
    """The files of one kind that are being written."""

    def __init__(self, kind: str) -> None:
        """Begin without documents."""
        document = DOCUMENTS[kind]
        self._is_shops = kind == "shops"
        in_segment = IN_SEGMENT if self._is_shops else ()
        exact = [field.name for field in declared_fields(document) if Role.EXACT in field.roles]
        self._fields = [name for name in exact if name not in in_segment]
        self._rank = sort_field(kind)
        self._ranks: list[str] = []
        self._terms: dict[tuple[str, str], int] = {}
        self._occurring, self._counts = array("i"), array("i")
        counted = fields_with(document, Role.COUNTED)
        self._counted: dict[str, tuple[dict[str, int], array[int], array[int]]] = {
            name: ({}, array("i"), array("i")) for name in counted
        }
        self._columns = {name: array("q") for name in fields_with(document, Role.RANGE)}
        self._texts: list[bytes] = []
        self._stored: list[bytes] = []

    def add(self, document: object) -> None:
        """Add a document; they may come in any order."""
        before = len(self._occurring)
        for name in self._fields:
            value = getattr(document, name)
            texts = (value,) if isinstance(value, str) else dict.fromkeys(value)
            self._occurring.extend([self._terms.setdefault((name, text), len(self._terms)) for text in texts])
        self._counts.append(len(self._occurring) - before)
        for name, (known, items, sizes) in self._counted.items():
            values = dict.fromkeys(getattr(document, name))
            items.extend([known.setdefault(value, len(known)) for value in values])
            sizes.append(len(values))
        for name, column in self._columns.items():
            column.append(getattr(document, name))
        if self._is_shops:
            self._texts.append("\0".join(getattr(document, INFIXES)).encode() + b"\0")
        self._ranks.append(getattr(document, self._rank))
        self._stored.append(orjson.dumps(stored_part(document)))

    def finish(self, folder: Path) -> None:
        """Write the files."""
        folder.mkdir(parents=True)
        order = np.array(sorted(range(len(self._ranks)), key=self._ranks.__getitem__), np.int64)
        arrays = self._postings(order)
        for name, (known, values, sizes) in self._counted.items():
            counts = np.asarray(sizes)
            taken = spans(heads_of(counts, np.int64)[:-1][order], counts[order])
            arrays |= {f"{name}_heads": heads_of(counts[order]), name: np.asarray(values)[taken]}
            (folder / f"{name}.json").write_bytes(orjson.dumps(list(known)))
        arrays |= {name: np.asarray(column)[order] for name, column in self._columns.items()}
        if self._is_shops:
            arrays |= text_arrays([self._texts[index] for index in order.tolist()])
        else:
            arrays |= _joined("ranks", [self._ranks[index].encode() for index in order.tolist()])
        stored = [self._stored[index] for index in order.tolist()]
        dictionary = b"".join(stored[:: max(1, len(stored) // 200)])[-DICTIONARY_BYTES:]
        arrays |= _joined("records", [_deflated(record, dictionary) for record in stored])
        (folder / "dictionary").write_bytes(dictionary)
        for name, items in arrays.items():
            np.save(folder / f"{name}.npy", np.ascontiguousarray(items))
        sums = {path.name: FileSum.of_file(path) for path in folder.iterdir()}
        (folder / SUMS_FILE).write_bytes(orjson.dumps({name: [s.size, s.sha256] for name, s in sums.items()}))

    def _postings(self, order: Items) -> dict[str, Items]:
        """Terms by hash: what a term's value says is the one document that has it, or the number of its list.

        Of the first it is -1 minus the document's number.
        """
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        hashes = np.array([term_hash(*term) for term in self._terms], np.uint64)
        by_hash = np.argsort(hashes)
        places = np.empty(len(hashes), np.int64)
        places[by_hash] = np.arange(len(hashes))
        hashes = hashes[by_hash]
        if bool((hashes[1:] == hashes[:-1]).any()):
            raise ValueError("two terms have the same hash")
        pairs = np.sort(places[np.asarray(self._occurring)] << 32 | np.repeat(numbers, np.asarray(self._counts)))
        owners = (pairs & 0xFFFF_FFFF).astype(np.int32)
        sizes = np.bincount(pairs >> 32, minlength=len(hashes))
        listed = sizes > 1
        values = np.empty(len(hashes), np.int32)
        values[listed] = np.arange(int(listed.sum()))
        in_lists = np.repeat(listed, sizes)
        values[~listed] = -1 - owners[~in_lists]
        return {"hashes": hashes, "values": values, "heads": heads_of(sizes[listed]), "numbers": owners[in_lists]}


def text_arrays(texts: Sequence[bytes]) -> dict[str, Items]:
    """The arrays of the texts of which parts are found: an item for each shop, a zero byte behind each text."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    starts = np.zeros(-(-len(data) // 64) * 64, np.bool_)
    starts[heads_of(np.fromiter(map(len, texts), np.int64, len(texts)), np.int64)[:-1]] = True
    words = np.packbits(starts, bitorder="little").view(np.uint64)
    before = heads_of(np.bitwise_count(words))[:-1]
    return {"data": data, "starts": words, "before": before, "suffixes": sorted_suffixes(data)}


def sorted_suffixes(data: Items) -> Items:
    """The places of all characters, in the order of the bytes from there to the end of the text."""
    places = np.flatnonzero((data != 0) & ((data & 0xC0) != 0x80))
    ends = np.flatnonzero(data == 0)
    left = ends[np.searchsorted(ends, places)] - places
    sorted_places = places.copy()
    group, at = np.zeros(len(places), np.int64), np.arange(len(places))
    depth = 0
    # Those that are equal so far are sorted again by their next bytes, until the last of them has ended.
    while len(places):
        key = _next_bytes(data, places, left, depth)
        order = np.lexsort((key, group)) if depth else np.argsort(key)
        places, left, key, group = places[order], left[order], key[order], group[order]
        sorted_places[at] = places
        depth += _STEP
        differs = np.ones(len(places), np.bool_)
        differs[1:] = (key[1:] != key[:-1]) | (group[1:] != group[:-1])
        group = np.cumsum(differs) - 1
        goes_on = np.zeros(int(group[-1]) + 1, np.bool_)
        goes_on[group[(np.bincount(group)[group] > 1) & (left > depth)]] = True
        kept = goes_on[group]
        places, left, group, at = places[kept], left[kept], group[kept], at[kept]
    return sorted_places.astype(np.int32)


def _next_bytes(data: Items, places: Items, left: Items, depth: int) -> Items:
    """Some bytes of each suffix as one integer, with zeros behind the end of the text."""
    key = np.zeros(len(places), np.uint64)
    for offset in range(depth, depth + _STEP):
        found = data[np.minimum(places + offset, len(data) - 1)]
        key = key << np.uint64(8) | np.where(left > offset, found, 0).astype(np.uint64)
    return key


def _joined(name: str, items: Sequence[bytes]) -> dict[str, Items]:
    lengths = np.fromiter(map(len, items), np.int64, len(items))
    return {name: np.frombuffer(b"".join(items), np.uint8), f"{name}_heads": heads_of(lengths, np.int64)}


def _deflated(record: bytes, dictionary: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, RAW_DEFLATE, 9, zdict=dictionary)
    return compressor.compress(record) + compressor.flush()


def write_kind(kind: str, documents: Iterable[Any], folder: Path) -> None:
    """Write the files of all documents of one kind."""
    files = KindFiles(kind)
    for document in documents:
        files.add(document)
    files.finish(folder)
