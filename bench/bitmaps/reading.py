"""Reads the files of the prototype, and evaluates clauses over them as bitmaps."""

import mmap
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from bench.bitmaps import kernels
from bench.bitmaps.kernels import Items, Words
from bench.bitmaps.writing import RAW_DEFLATE, SUMS_FILE, term_hash
from index_mappings.embedded import FileSum
from index_mappings.tiers import CLIPPED_MIN, rank_key
from shop_directory.search.embedded.checks import CheckedFile
from shop_directory.search.plan import AllOf, AnyOf, Below, Clause, Exact, Infix, NoneOf, Prefix
from shop_directory.typeahead.segment import ANY_FULL, ARRAYS, KEY, WORD, read_header

_CACHED: Final = 2_048
# The marks that a posting of the segment has for a field of shops, and those that it has not.
_MARKS: Final = {"full": (ANY_FULL, 0), "words": (WORD, 0), "other_keys": (KEY, ANY_FULL)}
_ONE: Final = np.uint64(1)


def checked_files(folder: Path) -> list[CheckedFile]:
    """The files of a kind with their checksums; OSError or ValueError without these."""
    sums = orjson.loads((folder / SUMS_FILE).read_bytes())
    return [CheckedFile(folder / name, f"{folder.name}/{name}", FileSum(*expected)) for name, expected in sums.items()]


class KindIndex:
    """One kind's documents by number, in the order of their rank; of shops with the typeahead's segment."""

    def __init__(self, folder: Path, segment: Path | None) -> None:
        """Map the files, which were verified."""
        self.arrays: dict[str, Items] = {
            path.stem: np.asarray(np.load(path, mmap_mode="r")) for path in folder.glob("*.npy")
        }
        self.values = {
            path.stem: orjson.loads(path.read_bytes()) for path in folder.glob("*.json") if path.name != SUMS_FILE
        }
        self._dictionary = (folder / "dictionary").read_bytes()
        self._cached: dict[int, dict[str, Any]] = {}
        self.is_shops = segment is not None
        if segment is not None:
            with segment.open("rb") as file:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            for name, part in read_header(data).parts.items():
                self.arrays[f"segment_{name}"] = np.frombuffer(data, np.dtype(ARRAYS[name]), part.size, part.start)
        self.size = len(self.arrays["records_heads"]) - 1
        every = np.full(-(-self.size // 64), ~np.uint64(0))
        if self.size & 63:
            every[-1] = (_ONE << np.uint64(self.size & 63)) - _ONE
        every.flags.writeable = False
        self.every = every

    def stored(self, number: int) -> dict[str, Any]:
        """The stored part of a document, which is shared and must not be changed."""
        found = self._cached.get(number)
        if found is None:
            if len(self._cached) >= _CACHED:
                self._cached.clear()
            decompressor = zlib.decompressobj(RAW_DEFLATE, zdict=self._dictionary)
            found = self._cached[number] = orjson.loads(decompressor.decompress(self._item("records", number)))
        return found

    def up_to(self, rank: str) -> int:
        """The number of documents up to a rank, which no document need have."""
        return _first(self.size, lambda number: self._rank(number) > rank)

    def number_of(self, shop_id: str) -> int | None:
        """The number of a shop."""
        by_id = self.arrays["segment_by_id"]
        place = _first(self.size, lambda place: self._id(int(by_id[place])) >= shop_id)
        return int(by_id[place]) if place < self.size and self._id(int(by_id[place])) == shop_id else None

    def _rank(self, number: int) -> str:
        if self.is_shops:
            return rank_key(float(self.arrays["segment_popularities"][number]), self._id(number))
        return self._item("ranks", number).decode()

    def _id(self, number: int) -> str:
        start, end = self.arrays["segment_id_ends"][number : number + 2]
        return self.arrays["segment_ids"][start:end].tobytes().decode()

    def _item(self, name: str, number: int) -> bytes:
        start, end = self.arrays[f"{name}_heads"][number : number + 2]
        return self.arrays[name][start:end].tobytes()


def _first(size: int, holds: Callable[[int], bool]) -> int:
    """The first number for which something holds that then holds for all."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


class Evaluation:
    """The bitmaps of the clauses of one search, each computed once; None stands for no document."""

    def __init__(self, index: KindIndex) -> None:
        """Begin a search."""
        self.index = index
        self._known: dict[Clause, Words | None] = {}
        self._ranges: dict[str, tuple[int, int]] = {}

    def of(self, clause: Clause) -> Words | None:
        """The documents that meet a clause; the bitmap is shared and must not be changed."""
        try:
            return self._known[clause]
        except KeyError:
            found = self._known[clause] = _EVALUATED[type(clause)](self, clause)
            return found

    def passing(self, filters: Sequence[Clause], excluded: Sequence[Clause]) -> Words | None:
        """The documents that meet all filters and none of the excluded clauses."""
        return self.all_of(AllOf((*filters, NoneOf(tuple(excluded)))))

    def all_of(self, clause: AllOf) -> Words | None:
        """The documents that meet every clause."""
        words: Words | None = None
        for part in clause.clauses:
            if not isinstance(part, NoneOf):
                met = self.of(part)
                if met is None:
                    return None
                words = met if words is None else words & met
        found = self.index.every if words is None else words
        for part in clause.clauses:
            if isinstance(part, NoneOf):
                for other in part.clauses:
                    if (met := self.of(other)) is not None:
                        found = found & ~met
        return found

    def any_of(self, clause: AnyOf) -> Words | None:
        """The documents that meet at least one clause."""
        words: Words | None = None
        for part in clause.clauses:
            if (met := self.of(part)) is not None:
                words = met if words is None else words | met
        return words

    def exact(self, clause: Exact) -> Words | None:
        """The documents with one of the texts."""
        words = np.zeros_like(self.index.every)
        if self.index.is_shops and clause.field in _MARKS:
            self._add_texts(clause, words)
        elif self.index.is_shops and clause.field == "clipped":
            self._add_clipped(clause.texts, words)
        elif self.index.is_shops and clause.field == "id":
            for shop_id in clause.texts:
                if (number := self.index.number_of(shop_id)) is not None:
                    words[number >> 6] |= _ONE << np.uint64(number & 63)
        else:
            self._add_terms(clause, words)
        return words if words.any() else None

    def prefix(self, clause: Prefix) -> Words | None:
        """The documents with a text that begins so."""
        first, end = self._range(clause.text)
        if first == end:
            return None
        words, arrays = np.zeros_like(self.index.every), self.index.arrays
        heads = arrays["segment_heads"]
        kernels.add_postings(arrays["segment_postings"], heads[first], heads[end], *_MARKS[clause.field], words)
        return words

    def infix(self, clause: Infix) -> Words | None:
        """The documents with a text that contains this one."""
        arrays = self.index.arrays
        part = np.frombuffer(clause.text.encode(), np.uint8)
        first, end = kernels.suffixes_with_prefix(arrays["data"], arrays["suffixes"], part)
        if first == end:
            return None
        words = np.zeros_like(self.index.every)
        kernels.add_suffixes(arrays["suffixes"], first, end, arrays["starts"], arrays["before"], words)
        return words

    def below(self, clause: Below) -> Words | None:
        """The documents whose integer is less than the bound."""
        bits = np.zeros(64 * len(self.index.every), np.bool_)
        bits[: self.index.size] = self.index.arrays[clause.field] < clause.bound
        return np.packbits(bits, bitorder="little").view(np.uint64)

    def _add_texts(self, clause: Exact, words: Words) -> None:
        arrays = self.index.arrays
        offsets, heads = arrays["segment_offsets"], arrays["segment_heads"]
        for text in clause.texts:
            first, end = self._range(text)
            # In a range of texts that begin with a text this one is the first.
            if first < end and offsets[first + 1] - offsets[first] == len(text):
                marks = _MARKS[clause.field]
                kernels.add_postings(arrays["segment_postings"], heads[first], heads[first + 1], *marks, words)

    def _add_clipped(self, texts: Sequence[str], words: Words) -> None:
        """The shops with a word that is a text and one letter more, or two if the word is long enough for that."""
        arrays = self.index.arrays
        heads = arrays["segment_heads"]
        for text in texts:
            first, end = self._range(text)
            lengths = np.diff(arrays["segment_offsets"][first : end + 1])
            most = 2 if len(text) >= CLIPPED_MIN else 1
            for number in (first + np.flatnonzero((lengths > len(text)) & (lengths <= len(text) + most))).tolist():
                kernels.add_postings(arrays["segment_postings"], heads[number], heads[number + 1], WORD, 0, words)

    def _add_terms(self, clause: Exact, words: Words) -> None:
        arrays = self.index.arrays
        hashes, values, heads = arrays["hashes"], arrays["values"], arrays["heads"]
        asked = [term_hash(clause.field, text) for text in clause.texts]
        for value, place in zip(asked, np.searchsorted(hashes, np.array(asked, np.uint64)).tolist(), strict=True):
            if place == len(hashes) or hashes[place] != value:
                continue
            if (one := int(values[place])) < 0:
                number = -1 - one
                words[number >> 6] |= _ONE << np.uint64(number & 63)
            else:
                kernels.add_numbers(arrays["numbers"], heads[one], heads[one + 1], words)

    def _range(self, text: str) -> tuple[int, int]:
        """The range of the segment's texts that begin with a text."""
        found = self._ranges.get(text)
        if found is None:
            query = np.frombuffer(text.encode("utf-32-le"), np.int32)
            letters, offsets = self.index.arrays["segment_letters"], self.index.arrays["segment_offsets"]
            found = self._ranges[text] = kernels.texts_with_prefix(letters, offsets, query)
        return found


_EVALUATED: Final[dict[type, Callable[[Evaluation, Any], Words | None]]] = {
    AllOf: Evaluation.all_of,
    AnyOf: Evaluation.any_of,
    NoneOf: lambda evaluation, clause: evaluation.all_of(AllOf((clause,))),
    Exact: Evaluation.exact,
    Prefix: Evaluation.prefix,
    Infix: Evaluation.infix,
    Below: Evaluation.below,
}
