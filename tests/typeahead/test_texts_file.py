"""The file of sorted texts: whatever is not as it was written is refused, and it is there whole or not at all."""

import errno
import os
import random
from pathlib import Path
from typing import Final, NoReturn

import pytest

from index_mappings.documents import ShopDocument
from index_mappings.forms import forms_of_words
from index_mappings.typeahead import TYPEAHEAD_VERSION
from indexer.sinks import typeahead_texts
from indexer.sinks.typeahead_reading import Texts
from indexer.sinks.typeahead_shop import Findable
from indexer.sinks.typeahead_texts import write_texts
from service.search.protocol import SuggestedShop
from service.search.typeahead import TextsFile, Typeahead
from tests.typeahead.kept import Kept, assert_answers, document, forms_of

_TABLES: Final = typeahead_texts._TABLES


def _shops() -> list[ShopDocument]:
    names = ("Kestrel Bird", "Kestrel", "Wren & Owl", "Bird of Wren", "Kite", "Müller 緑", "???")
    return [
        document(f"s{number}", name, popularity=(None, 0.0, 2.5)[number % 3], countries=("DE", "FR")[: number % 3])
        for number, name in enumerate(names)
    ]


def _written(path: Path, shops: list[ShopDocument], notes: bytes = b"") -> Path:
    write_texts(path, map(Findable.of, shops), notes=notes)
    return path


@pytest.mark.parametrize("country", [None, "DE"])
def test_a_file_without_shops_has_no_answers(tmp_path: Path, country: str | None) -> None:
    typeahead = Typeahead(TextsFile(_written(tmp_path / "none.texts", [])), None)
    for texts in (("a",), ("kestrel", "kest"), ("\U0010ffff",)):
        assert typeahead.best(forms_of(*texts), country, 20) == []
    assert typeahead.best(forms_of_words(("red", "kestrel")), country, 20) == []
    assert [part.tolist() for part in Texts(tmp_path / "none.texts").ids()] == [[], []]


@pytest.mark.rule("M9", "M7")
def test_a_file_with_one_shop_has_that_one(tmp_path: Path) -> None:
    shop = document("one", "Red Kestrel", "kite.internal", popularity=3.5, countries=["DE"])
    typeahead = Typeahead(TextsFile(_written(tmp_path / "one.texts", [shop])), None)
    shown = SuggestedShop("one", "Red Kestrel", "kite.internal", "things", 3.5)
    for texts, tier in ((("red kestrel",), 8), (("red",), 7), (("kestrel",), 6), (("kest",), 5), (("kesrel",), 3)):
        for country in (None, "DE"):
            found = typeahead.best(forms_of(*texts), country, 20)
            assert [(one.tier, one.shop) for one in found] == [(tier, shown)], texts
        assert typeahead.best(forms_of(*texts), "FR", 20) == []


def test_from_no_shop_to_some_and_back_to_none(tmp_path: Path) -> None:
    kept = Kept(tmp_path, [])
    for shops, removed in ((_shops(), []), ([], ["s0", "s5"]), ([], [f"s{number}" for number in range(7)])):
        kept.change(shops, removed)
        for texts in (("kest",), ("wren",), ("brid",)):
            assert_answers(kept, kept.opened(), forms_of(*texts), None, (1, 20))
            assert_answers(kept, kept.opened(), forms_of(*texts), "FR", (20,))
    assert kept.shops == {}


def test_the_order_in_which_shops_come_makes_no_difference(tmp_path: Path) -> None:
    shops = _shops()
    first = _written(tmp_path / "first.texts", shops).read_bytes()
    for seed in range(5):
        random.Random(seed).shuffle(shops)  # noqa: S311 - the same each time
        assert _written(tmp_path / f"{seed}.texts", shops).read_bytes() == first


def test_notes_and_ids_are_read_back(tmp_path: Path) -> None:
    path = _written(tmp_path / "some.texts", _shops(), b"what the writer noted")
    assert Texts(path).notes() == b"what the writer noted"
    # Numbered by rank.
    ids, numbers = Texts(path).ids()
    assert ids.tolist() == [b"s0", b"s1", b"s2", b"s3", b"s4", b"s5", b"s6"]
    assert numbers.tolist() == [2, 3, 0, 4, 5, 1, 6]


def test_what_is_shown_between_two_ids_is_read_back(tmp_path: Path) -> None:
    texts = Texts(_written(tmp_path / "some.texts", _shops()))
    everything = {shop.id: (shop.id, shop.name, shop.domain, "things", shop.popularity) for shop in _shops()}
    assert texts.shown("", None, set()) == everything
    assert texts.gone() == set()
    # The first one's and the third one's numbers.
    assert texts.shown("", "s2", {2, 0}) == {"s1": everything["s1"]}
    assert list(texts.shown("s2", "s4", set())) == ["s3", "s4"]
    assert list(texts.shown("s2-and-more", "s3-and-more", set())) == ["s3"]
    assert texts.shown("s6", None, set()) == {}
    assert Texts(_written(tmp_path / "none.texts", [])).shown("", None, set()) == {}


def _assert_refused(path: Path) -> None:
    for read in (TextsFile, Texts):
        with pytest.raises(ValueError, match="file of texts"):
            read(path)


def test_a_file_that_ends_early_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path / "some.texts", _shops())
    whole = path.read_bytes()
    for size in (*range(1, len(whole) - 1, 97), *range(len(whole) - 20, len(whole))):
        path.write_bytes(whole[:size])
        _assert_refused(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        TextsFile(path)
    path.write_bytes(whole + b"\0")
    _assert_refused(path)


def test_a_file_with_one_other_byte_is_refused_wherever_that_is(tmp_path: Path) -> None:
    path = _written(tmp_path / "some.texts", _shops())
    whole = path.read_bytes()
    # All of the table at the end, which tells where everything is, and some of the rest.
    for place in (*range(0, len(whole), 61), *range(len(whole) - 2_500, len(whole))):
        for bit in (0, 4):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            with pytest.raises(ValueError, match="file of texts"):
                TextsFile(path)


def test_a_file_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typeahead_texts, "TYPEAHEAD_VERSION", TYPEAHEAD_VERSION + 1)
    _assert_refused(_written(tmp_path / "later.texts", _shops()))


def _full(_: int) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_at_the_end_leaves_nothing_and_the_file_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _written(tmp_path / "some.texts", _shops())
    before = path.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _full)
        with pytest.raises(OSError, match="No space"):
            _written(path, _shops()[:3])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_full_while_it_is_sorted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typeahead_texts, "_TABLES", f"{_TABLES} PRAGMA max_page_count = 5;")
    many = [document(f"s{number}", f"Shop {number}") for number in range(2_000)]
    with pytest.raises(OSError, match="could not be written"):
        _written(tmp_path / "some.texts", many)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_on_which_nothing_can_be_begun_is_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match="could not be written"):
        _written(tmp_path / "nowhere" / "some.texts", _shops())
    monkeypatch.setattr(typeahead_texts, "_TABLES", f"PRAGMA max_page_count = 1; {_TABLES}")
    with pytest.raises(OSError, match="could not be written"):
        _written(tmp_path / "some.texts", _shops())
    assert list(tmp_path.iterdir()) == []
