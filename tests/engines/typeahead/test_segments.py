"""Segments and manifests as they are opened: whatever is not as it was written is refused."""

from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from index_mappings.documents import CategoryEntry, ShopDocument
from index_mappings.forms import query_forms
from shop_directory.typeahead.compiled import compile_kernel
from shop_directory.typeahead.kernel.arrays import NOTHING
from shop_directory.typeahead.kernel.suggest import suggest
from shop_directory.typeahead.manifest import SegmentUse, TypeaheadManifest
from shop_directory.typeahead.reading.segments import MappedSegment, SegmentPool
from shop_directory.typeahead.reading.typeahead import open_typeahead
from shop_directory.typeahead.segment import ARRAYS, read_header, segment_path
from shop_directory.typeahead.suggestions import SuggestQuery
from tests.engines.typeahead.segmented import Segmented, document, written

_FAR: Final = 2**30
_HEADS: Final = ("offsets", "heads", "own_heads", "shown_ends", "id_ends", "category_heads", "own_category_heads")
_NUMBERS: Final = ("postings", "own", "category_shops", "own_categories", "by_id", "rests_0", "rests_1")
# An array, a position in it (from its end where negative), and a value that leads out of another array.
_DAMAGE: Final = (
    *((name, position, _FAR) for name in _HEADS for position in (0, 1, -1)),
    *((name, 2, -1) for name in _HEADS),
    *((name, 1, -1) for name in _NUMBERS),
    *((name, -1, _FAR) for name in _NUMBERS),
    ("letters", 0, 0),
    ("letters", -1, 0x110000),
)
# Those of which only the size can lead anywhere.
_SIZED: Final = (
    "firsts", "firsts_0", "firsts_1", "best_leading", "best_key", "best_0", "best_1", "markets", "known",
    "popularities", "own", "own_marks", "by_id",
)  # fmt: skip


def _shops(number_of: int = 60) -> list[ShopDocument]:
    return [
        document(
            f"s{number:02d}",
            f"Kestrel {number} Bird",
            popularity=float(number % 7),
            countries=("DE", "FR")[: number % 3],
            categories=("birds", "books", "toys")[: 1 + number % 3],
        )
        for number in range(number_of)
    ]


@pytest.fixture
def use(tmp_path: Path) -> SegmentUse:
    return written(tmp_path, _shops())


def _named(directory: Path, data: bytes) -> Path:
    """A file with these bytes, by the name that they have."""
    path = segment_path(directory, sha256(data).hexdigest())
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("byte", [0, 255])
def test_all_domains_are_listed_whatever_was_in_memory(tmp_path: Path, use: SegmentUse, byte: int) -> None:
    segment = MappedSegment(segment_path(tmp_path, use.name))
    np.full(use.shops, byte, np.uint8)  # the next array of that size gets its memory
    count, domains = segment.domains(NOTHING, 0, use.shops)
    assert (count, len(set(domains))) == (use.shops, use.shops)


def test_the_damaged_arrays_are_all_that_there_are() -> None:
    # What is shown is JSON, and any byte may be in an id; `shown_ends` and `id_ends` say how many there are.
    assert {*(name for name, _, _ in _DAMAGE), *_SIZED, "shown", "ids"} == set(ARRAYS)


@pytest.mark.parametrize(("name", "position", "value"), _DAMAGE)
def test_a_number_that_leads_out_of_an_array_is_refused(
    tmp_path: Path, use: SegmentUse, name: str, position: int, value: int
) -> None:
    data = bytearray(segment_path(tmp_path, use.name).read_bytes())
    part = read_header(memoryview(data)).parts[name]
    array = np.frombuffer(data, np.dtype(ARRAYS[name]), part.size, part.start)
    array[position] = value
    with pytest.raises(ValueError, match=f"the array {name} of a segment is damaged"):
        MappedSegment(_named(tmp_path, bytes(data)))


@pytest.mark.parametrize("name", _SIZED)
def test_an_array_of_another_size_is_refused(tmp_path: Path, use: SegmentUse, name: str) -> None:
    data = segment_path(tmp_path, use.name).read_bytes()
    part = read_header(memoryview(data)).parts[name]
    shorter = data.replace(
        f'"{name}": [{part.start}, {part.size}]'.encode(), f'"{name}": [{part.start}, {part.size - 1}]'.encode()
    )
    # The header is as long as it was: the size loses no digit.
    assert len(shorter) == len(data)
    assert shorter != data
    with pytest.raises(ValueError, match="of a segment is damaged"):
        MappedSegment(_named(tmp_path, shorter))


def test_a_segment_with_one_other_byte_is_refused_wherever_that_is(tmp_path: Path, use: SegmentUse) -> None:
    path = segment_path(tmp_path, use.name)
    whole = path.read_bytes()
    for position in (*range(0, len(whole), 997), len(whole) - 1):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(ValueError, match="damaged"):
            MappedSegment(path)
    path.write_bytes(whole)
    assert MappedSegment(path).shops == 60


def test_what_is_no_segment_is_refused(tmp_path: Path) -> None:
    for data in (b"1", b"{}" + (2).to_bytes(8, "little"), bytes(200)):
        with pytest.raises(ValueError, match="not a segment"):
            MappedSegment(_named(tmp_path, data))


def test_a_segment_is_mapped_once_and_unmapped_with_its_last_user(tmp_path: Path, use: SegmentUse) -> None:
    pool = SegmentPool()
    first, second = (pool.open(tmp_path, [use.name])[0] for _ in range(2))
    assert first is second
    del first
    assert dict(pool._open) == {use.name: second}
    del second
    assert dict(pool._open) == {}


def test_the_first_covering_of_which_all_files_are_there_is_used(tmp_path: Path, use: SegmentUse) -> None:
    small = written(tmp_path, [document("other", "Kestrel Other")])
    manifest = TypeaheadManifest(((small,), (use,)))
    query = SuggestQuery.of("kestrel other", None, 3)

    def found() -> list[str]:
        return [one.shop.id for one in open_typeahead(tmp_path, manifest, SegmentPool()).suggest(query).shops]

    assert found() == ["other"]
    segment_path(tmp_path, small.name).unlink()
    assert "other" not in found()
    segment_path(tmp_path, use.name).unlink()
    with pytest.raises(ValueError, match="files of the typeahead are missing"):
        found()


def test_a_manifest_that_contradicts_a_segment_is_refused(tmp_path: Path, use: SegmentUse) -> None:
    for other in (use.__class__(use.name, use.size + 1, use.shops), use.__class__(use.name, use.size, use.shops - 1)):
        with pytest.raises(ValueError, match="does not fit"):
            open_typeahead(tmp_path, TypeaheadManifest(((other,),)), SegmentPool())


@pytest.mark.rule("M10")
def test_segments_without_shops_have_no_answers(tmp_path: Path) -> None:
    empty = written(tmp_path, [])
    typeahead = open_typeahead(tmp_path, TypeaheadManifest(((empty, empty),)), SegmentPool())
    for text in ("", "a", "kestrel", "red kestrel bird", "???", "shop.internal"):
        for country in (None, "DE"):
            answer = typeahead.suggest(SuggestQuery.of(text, country, 20))
            assert (answer.shops, answer.categories) == ((), ()), text
            assert typeahead.near([query_forms(text)], (country,) if country else (), ("birds",), 3) == ()


def test_no_request_has_the_machine_code_compiled_once_more(tmp_path: Path) -> None:
    compile_kernel()
    before = _compiled()
    segmented = Segmented(tmp_path, _shops(), [CategoryEntry("birds", "Birds", 60, ("birds",))])
    whole = segmented.opened()
    segmented.change([document("new", "Kestrel Other")], removed=["s01"])

    for typeahead in (whole, segmented.opened()):
        for text in ("", "kestrel", "kestrel birds", "kestral birx", "???", "s01.internal"):
            for country in (None, "DE"):
                typeahead.suggest(SuggestQuery.of(text, country, 8))
                for categories in ((), ("birds",), ("birds", "none")):
                    forms, countries = [query_forms(text)], (country, "AT") if country else ()
                    typeahead.near(forms, countries, categories, 3)
                    typeahead.near(forms, countries, categories, 3, ("kestrel",))

    assert _compiled() == before


def _compiled() -> list[object]:
    entry: Any = suggest
    return list(entry.signatures)
