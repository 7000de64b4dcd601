"""The arrays of the prototype of bitmaps find the same shops as a look at every text."""

import random
from typing import Final

import numpy as np
import pytest

from bench.bitmaps import kernels
from bench.bitmaps.writing import sorted_suffixes, text_arrays

_ALPHABETS: Final = ("ab", "abcdefgh", "äß厨房café")


def _texts(alphabet: str) -> list[list[str]]:
    chance = random.Random(alphabet)  # noqa: S311 - the same each time
    return [
        ["".join(chance.choices(alphabet, k=chance.randint(1, 40))) for _ in range(chance.randint(1, 3))]
        for _ in range(200)
    ]


@pytest.mark.parametrize("alphabet", _ALPHABETS)
def test_a_range_of_suffixes_has_the_shops_whose_texts_contain_a_part(alphabet: str) -> None:
    shops = _texts(alphabet)
    arrays = text_arrays(["\0".join(texts).encode() + b"\0" for texts in shops])
    chance = random.Random(alphabet)  # noqa: S311 - the same each time
    for length in (1, 2, 3, 7, 12, 25):
        part = chance.choice(shops)[0][:length]
        encoded = np.frombuffer(part.encode(), np.uint8)
        first, end = kernels.suffixes_with_prefix(arrays["data"], arrays["suffixes"], encoded)
        words = np.zeros(-(-len(shops) // 64), np.uint64)
        kernels.add_suffixes(arrays["suffixes"], first, end, arrays["starts"], arrays["before"], words)
        found = np.empty(len(shops), np.int64)
        filled = kernels.lowest(words, 0, 0, found)
        expected = [number for number, texts in enumerate(shops) if any(part in text for text in texts)]
        assert found[:filled].tolist() == expected
        assert kernels.count(words) == len(expected)


def test_a_page_begins_at_a_number_and_after_the_skipped_ones() -> None:
    words = np.array([0b1011, 0, 1 << 63], np.uint64)
    found = np.empty(2, np.int64)
    assert found[: kernels.lowest(words, 0, 0, found)].tolist() == [0, 1]
    assert found[: kernels.lowest(words, 1, 1, found)].tolist() == [3, 191]
    assert found[: kernels.lowest(words, 4, 1, found)].tolist() == []


def test_suffixes_that_begin_with_the_same_bytes_are_sorted_by_the_rest() -> None:
    # The groups of "a" and of "b" are next to each other, and the bytes behind the first eight are the same.
    texts = [f"{first}{'z' * 15}{last}" for first in "ab" for last in "dcba"]
    data = "".join(f"{text}\0" for text in texts).encode()
    places = sorted_suffixes(np.frombuffer(data, np.uint8)).tolist()
    suffixes = [data[place:].partition(b"\0")[0] for place in places]
    assert len(set(places)) == sum(map(len, texts))
    assert suffixes == sorted(suffixes)
