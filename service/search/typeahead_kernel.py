"""The tiers of /suggest but 4 and but two errors (M9) over sorted texts, as machine code that numba makes of these.

All see plain arrays (`index_mappings.typeahead` tells which) and check no bounds: whoever calls them has checked the
file that they come from. A range of texts is two places, the first and the one after the last.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray

from index_mappings.tiers import HALF_MIN, NAMED_PART, ONE_TYPO_MIN, OVERLAP_WORDS, SuggestTier
from index_mappings.typeahead import (
    BLOCK,
    FIRSTS,
    FULL,
    KEY,
    LACKING,
    LEADING,
    LETTER_BITS,
    NAME,
    POSTING_BITS,
    WORD,
)

Array = np.ndarray[tuple[int], np.dtype[np.int32]]
Ranges = np.ndarray[tuple[int, int], np.dtype[np.int32]]
Firsts = np.ndarray[tuple[int], np.dtype[np.int64]]

# An entry of an answer: the shop's number, and its tier in the lowest bits.
TIER_BITS: Final = 4
_EQUALS: Final = int(SuggestTier.EQUALS_NAME)
_BEGINS_NAME: Final = int(SuggestTier.BEGINS_NAME)
_BEGINS_FORM: Final = int(SuggestTier.BEGINS_FORM)
_WORDS: Final = int(SuggestTier.WORDS)
_TYPO: Final = int(SuggestTier.ONE_TYPO)
_PART: Final = int(SuggestTier.PART_IS_NAME)
_MOST: Final = int(SuggestTier.MOST_OF_WORDS)
_HALF: Final = int(SuggestTier.HALF_OF_WORDS)
# The orders in which texts stand: whole, and without the character at this place.
IN_ORDER: Final = -1
WITHOUT_FIRST: Final = 0
WITHOUT_SECOND: Final = 1
# Twice as deep as any tree is.
_STACK: Final = 128
# Of so many numbers that say what first characters are, one is a sample.
SAMPLED: Final = 64
# So many ranges are noted before they are looked through, and at most so many between two looks at how many there are.
_NOTED: Final = 192
_NOTED_AT_ONCE: Final = 8
# From this share of all texts on it takes less to go through the shops, best first.
_LARGE_SHARE: Final = 100
# Of fewer blocks each text is looked at.
_WORTH_A_TREE: Final = 3
ANY_COUNTRY: Final = -1
_NOBODY: Final = 2**31 - 1
_WORD_BITS: Final = 5
_IN_WORD: Final = 31
# numba keeps machine code for as long as this file is the same. What other files say is within that code, and a change
# there would go unnoticed: whoever makes one has to say so here.
_MADE_WITH: Final = {
    "SuggestTier": {
        "HALF_OF_WORDS": 0,
        "MOST_OF_WORDS": 1,
        "PART_IS_NAME": 2,
        "ONE_TYPO": 3,
        "WORDS_AND_CATEGORY": 4,
        "WORDS": 5,
        "BEGINS_FORM": 6,
        "BEGINS_NAME": 7,
        "EQUALS_NAME": 8,
    },
    "HALF_MIN": 6,
    "NAMED_PART": 4,
    "ONE_TYPO_MIN": 4,
    "OVERLAP_WORDS": 6,
    "BLOCK": 16,
    "FIRSTS": 3,
    "LETTER_BITS": 21,
    "POSTING_BITS": 5,
    "LACKING": (0, 1),
    "FULL": 1,
    "KEY": 2,
    "WORD": 4,
    "NAME": 8,
    "LEADING": 16,
}
_IS_NOW: Final = globals() | {"SuggestTier": {tier.name: int(tier) for tier in SuggestTier}}
if _changed := [name for name, number in _MADE_WITH.items() if _IS_NOW[name] != number]:
    raise ImportError(f"_MADE_WITH does not say what {', '.join(_changed)} is now")


class Texts(NamedTuple):
    """The arrays of one file.

    Attributes:
        offsets: where in `letters` each text begins, and where the last one ends.
        letters: the texts, one behind the other, as code points.
        firsts: of each text what `index_mappings.typeahead` says of its first characters.
        heads: where in `postings` those of each text begin, and where the last ones end.
        postings: of each text, ascending.
        own_heads: where in `own` the texts of each shop begin, and where the last ones end.
        own: of each shop its texts, with the marks of their postings.
        best_leading: a tree over blocks of texts: the best posting that is a leading name.
        best_key: the same of keys.
        rests_0: keys of more than three characters in the order of what is left without their first one.
        firsts_0: of each of these what is said of the first characters of that.
        best_0: a tree over blocks of these.
        rests_1, firsts_1, best_1: the same without the second character.
        markets: for each country a bit for each shop that passes its filter, in whole words.
        known: the same for each shop that is known to sell there.
        samples: of the three arrays of first characters each SAMPLED-th: few enough to stay in a processor's cache.
        gone: a bit for each shop that is no longer what it was; none for those after the last such one.
    """

    offsets: Array
    letters: Array
    firsts: Firsts
    heads: Array
    postings: Array
    own_heads: Array
    own: Array
    best_leading: Array
    best_key: Array
    rests_0: Array
    firsts_0: Firsts
    best_0: Array
    rests_1: Array
    firsts_1: Firsts
    best_1: Array
    markets: Array
    known: Array
    samples: Firsts
    gone: Array


# Those that a file holds, in order.
ARRAYS: Final = Texts._fields[:-2]

_F = TypeVar("_F", bound=Callable[..., object])
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


def _inner(function: _F) -> _F:
    """What is only called from here: without the parts that Python would call it by, which take longest to make."""
    bare: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: _F = njit(cache=True, **bare)(function)
    return compiled


def _told_as_pointer(_typing: object, _address: object) -> tuple[object, Callable[..., object]]:
    """What type the pointer that an address is has, and how it is made."""
    return types.voidptr(types.intp), lambda context, builder, signature, given: builder.inttoptr(
        given[0], context.get_value_type(signature.return_type)
    )


_pointer: Any = intrinsic(_told_as_pointer)


def _borrowed(array: _A) -> _A:
    """The same array without an owner, which whoever calls must keep.

    numba counts who has an array by a locked instruction wherever one is handed over, a third of all time here.
    """
    return array


@overload(_borrowed)
def _compiled(array: Array) -> Callable[[Array], Array]:  # noqa: ARG001 - numba hands over its type by name
    """What `_borrowed` is in machine code, told the type of the array."""

    def made(array: Array) -> Array:
        seen: Array = carray(_pointer(array.ctypes.data), array.shape, array.dtype)
        return seen

    return made


@njit(cache=True)
def suggest(
    items: Array,
    longs: Firsts,
    places: Firsts,
    samples: Firsts,
    gone: Array,
    pressed: Array,
    forms: int,
    wanted: int,
    country: int,
) -> Array:
    """The best shops of a key press, without what needs categories or is two errors away.

    Args:
        items: a whole file of texts, seen as short numbers.
        longs: the same, seen as long ones.
        places: where in that one of them the arrays of `ARRAYS` begin and end.
        samples: of the three arrays of first characters each SAMPLED-th, one behind the other.
        gone: as `Texts` tells, which may be another file's.
        pressed: the query's forms (X3), and its words if there are several, when the first two forms are those spaced
            and joined; each followed by a zero.
        forms: how many forms there are.
        wanted: how many shops at most.
        country: its number, as `markets` counts them, or ANY_COUNTRY.

    Returns:
        entries, best first; see TIER_BITS.
    """
    found = np.empty(wanted, np.int32)
    texts = _seen(_borrowed(items), _borrowed(longs), places, _borrowed(samples), _borrowed(gone))
    return found[: _suggested(texts, _borrowed(pressed), forms, country, _borrowed(found))]


@_inner
def _suggested(texts: Texts, asked: Array, forms: int, country: int, found: Array) -> int:
    """Put the entries into `found`, as many as there is room for. Arguments as of `suggest`. Returns how many."""
    gone, wanted = texts.gone, len(found)
    size = (len(texts.own_heads) - 1 + _IN_WORD) >> _WORD_BITS
    passing = texts.markets[country * size : (country + 1) * size] if country >= 0 else gone[:0]
    known = texts.known[country * size : (country + 1) * size] if country >= 0 else gone[:0]
    tiers = np.empty(wanted, np.int32)
    ranges = np.empty((_NOTED, 4), np.int32)
    bounds = _bounds(asked)
    words = bounds[forms:]
    equal = np.empty(forms, np.int32)
    equals = noted = 0
    for number in range(forms):
        start, end = bounds[number]
        first, last = _begun(texts, IN_ORDER, asked, start, end)
        # What equals the beginning comes first.
        if first < last and texts.offsets[first + 1] - texts.offsets[first] == end - start:
            equal[equals] = first
            equals += 1
        # Of a name at least half is typed.
        most = 2 * (end - start) if end - start >= HALF_MIN else _NOBODY
        ranges[noted, 3] = most
        noted = _noted(ranges, noted, first, last, IN_ORDER)
    equal = equal[:equals]
    count = _having(texts, equal, NAME, passing, found, 0, 0)
    tiers[:count] = _EQUALS
    better = count
    for tier in (_BEGINS_NAME, _BEGINS_FORM, _WORDS, _TYPO, _PART, _MOST, _HALF):
        if count == wanted:
            break
        if tier >= _WORDS:
            count = _beginning(texts, equal, ranges, noted, tier, known, passing, found, better, count)
        if tier == _TYPO:
            for number in range(forms):
                start, end = bounds[number]
                if end - start >= ONE_TYPO_MIN:
                    count = _misspelt(texts, asked[start:end], passing, ranges, found, better, count)
        elif tier < _BEGINS_FORM and len(words):
            count = _by_words(texts, asked, bounds, words, tier, passing, found, better, count)
        tiers[better:count] = tier
        better = count
    for place in range(count):
        found[place] = found[place] << TIER_BITS | tiers[place]
    return count


@_inner
def _seen(items: Array, longs: Firsts, places: Firsts, samples: Firsts, gone: Array) -> Texts:
    """The arrays of a file. Arguments as of `suggest`."""
    # In the order of the arrays of `Texts`. One view of all is handed over in place of them, which takes a third of it.
    return Texts(
        items[places[0] : places[1]],
        items[places[2] : places[3]],
        longs[places[4] : places[5]],
        items[places[6] : places[7]],
        items[places[8] : places[9]],
        items[places[10] : places[11]],
        items[places[12] : places[13]],
        items[places[14] : places[15]],
        items[places[16] : places[17]],
        items[places[18] : places[19]],
        longs[places[20] : places[21]],
        items[places[22] : places[23]],
        items[places[24] : places[25]],
        longs[places[26] : places[27]],
        items[places[28] : places[29]],
        items[places[30] : places[31]],
        items[places[32] : places[33]],
        samples,
        gone,
    )


@_inner
def _bounds(asked: Array) -> Ranges:
    """Where each of the texts begins and ends."""
    bounds = np.empty((len(asked), 2), np.int32)
    count = start = 0
    for place in range(len(asked)):
        if asked[place] == 0:
            bounds[count, 0], bounds[count, 1] = start, place
            count += 1
            start = place + 1
    return bounds[:count]


@_inner
def _having(texts: Texts, own: Array, mark: int, passing: Array, found: Array, better: int, count: int) -> int:
    """Take the shops that have one of these texts with this mark. Returns as `_taken`."""
    heads, postings, gone, offsets = texts.heads, texts.postings, texts.gone, texts.offsets
    for place in range(len(own)):
        text = int(own[place])
        end, most = text + 1, _NOBODY
        count = _scanned(
            heads, postings, gone, offsets, heads, IN_ORDER, mark, text, end, most, passing, found, better, count
        )
    return count


@_inner
def _beginning(
    texts: Texts,
    equal: Array,
    ranges: Ranges,
    noted: int,
    tier: int,
    known: Array,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Take the shops of a tier by texts that begin so. Returns as `_taken`.

    Shops that pass the filter, but are not known to sell in the country, are a tier worse than those that are, which
    have been found by then.
    """
    if tier == _BEGINS_NAME:
        count = _having(texts, equal, FULL, known, found, better, count)
        return _best_of(texts, ranges, noted, LEADING, known, found, better, count)
    if tier == _BEGINS_FORM:
        count = _having(texts, equal, KEY, known, found, better, count)
        count = _best_of(texts, ranges, noted, FULL, known, found, better, count)
        if len(passing):
            count = _having(texts, equal, FULL, passing, found, better, count)
            count = _best_of(texts, ranges, noted, LEADING, passing, found, better, count)
        return count
    return _best_of(texts, ranges, noted, KEY, passing, found, better, count)


@_inner
def _by_words(
    texts: Texts,
    asked: Array,
    bounds: Ranges,
    words: Ranges,
    tier: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Take the shops of a tier of several words. Returns as `_taken`."""
    if tier == _WORDS:
        return _in_any_order(texts, asked, words, passing, found, better, count)
    if tier == _PART:
        return _part_is_name(texts, asked, bounds, words, passing, found, better, count)
    return _sharing(texts, asked, words, tier, passing, found, better, count)


@_inner
def _in_any_order(
    texts: Texts, asked: Array, words: Ranges, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops that have all words but the last, and one that begins with that. Returns as `_taken`."""
    heads, postings = texts.heads, texts.postings
    last = len(words) - 1
    low, high = _begun(texts, IN_ORDER, asked, words[last, 0], words[last, 1])
    whole = np.empty(last, np.int32)
    rarest = -1
    for number in range(last):
        text = _whole(texts, asked, words[number, 0], words[number, 1])
        if text < 0:
            return count
        whole[number] = text
        if rarest < 0 or heads[text + 1] - heads[text] < heads[rarest + 1] - heads[rarest]:
            rarest = text
    # The fewest that can be gone through: those of the rarest word, which are in order, or all that begin so.
    ordered = heads[rarest + 1] - heads[rarest] < heads[high] - heads[low]
    start, end = (heads[rarest], heads[rarest + 1]) if ordered else (heads[low], heads[high])
    for at in range(start, end):
        shop = postings[at] >> POSTING_BITS
        if count == len(found) and found[count - 1] < shop:
            if ordered:
                break
            continue
        if (
            postings[at] & WORD
            and _passes(passing, texts.gone, shop)
            and _has_words(texts.own_heads, texts.own, shop, whole, low, high)
        ):
            count = _taken(shop, found, better, count)
    return count


@_inner
def _has_words(own_heads: Array, own: Array, shop: int, whole: Array, low: int, high: int) -> bool:
    """Whether a shop has all these words, and one of low:high."""
    start, end = own_heads[shop], own_heads[shop + 1]
    begun = False
    for at in range(start, end):
        if own[at] & WORD and low <= own[at] >> POSTING_BITS < high:
            begun = True
    if not begun:
        return False
    for word in whole:
        has = False
        for at in range(start, end):
            if own[at] & WORD and own[at] >> POSTING_BITS == word:
                has = True
        if not has:
            return False
    return True


@_inner
def _part_is_name(
    texts: Texts, asked: Array, bounds: Ranges, words: Ranges, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops of which the first or last words, but not all, are a full form. Returns as `_taken`."""
    letters = bounds[1, 1] - bounds[1, 0]  # joined
    last = len(words) - 1
    for form in range(2):
        start, end = bounds[form]
        between = 1 - form  # a space, in the first form
        until = start - between
        for number in range(min(last, OVERLAP_WORDS)):
            until += between + words[number, 1] - words[number, 0]
            held = until - start - between * number
            if NAMED_PART * held >= letters:
                count = _is_full(texts, asked, start, until, passing, found, better, count)
        since = end + between
        for number in range(last if last < OVERLAP_WORDS else 0):
            since -= between + words[last - number, 1] - words[last - number, 0]
            held = end - since - between * number
            if NAMED_PART * held >= letters:
                count = _is_full(texts, asked, since, end, passing, found, better, count)
    return count


@_inner
def _is_full(
    texts: Texts, asked: Array, start: int, end: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops of which a part of what is asked is a full form. Returns as `_taken`."""
    text = _whole(texts, asked, start, end)
    return count if text < 0 else _having(texts, np.array([text], np.int32), FULL, passing, found, better, count)


@_inner
def _sharing(
    texts: Texts, asked: Array, words: Ranges, tier: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the shops whose words hold enough of the letters.

    Enough for _MOST are three quarters; for _HALF half, or one word that is a full form. Returns as `_taken`.
    """
    postings = texts.postings
    counted = min(len(words), OVERLAP_WORDS)
    letters = possible = 0
    at = np.zeros(counted, np.int32)
    ends = np.zeros(counted, np.int32)
    for number in range(len(words)):
        letters += words[number, 1] - words[number, 0]
        text = _whole(texts, asked, words[number, 0], words[number, 1]) if number < counted else -1
        if text >= 0:
            at[number], ends[number] = texts.heads[text], texts.heads[text + 1]
            possible += words[number, 1] - words[number, 0]
    parts, whole = (3, 4) if tier == _MOST else (1, 2)
    while whole * possible >= parts * letters:
        # The next shop that has any of the words, and what those of them that it has hold.
        shop = _next(postings, at, ends)
        if shop == _NOBODY or (count == len(found) and found[count - 1] < shop):
            break
        shared = 0
        for number in range(counted):
            if at[number] < ends[number] and postings[at[number]] >> POSTING_BITS == shop:
                if postings[at[number]] & WORD:
                    shared += words[number, 1] - words[number, 0]
                at[number] += 1
        if whole * shared >= parts * letters and _passes(passing, texts.gone, shop):
            count = _taken(shop, found, better, count)
    if tier == _HALF:
        for number in range(counted):
            count = _is_full(texts, asked, words[number, 0], words[number, 1], passing, found, better, count)
    return count


@_inner
def _next(postings: Array, at: Array, ends: Array) -> int:
    """The best shop of several lists of postings, each from a place on; _NOBODY at their end."""
    shop = _NOBODY
    for number in range(len(at)):
        if at[number] < ends[number]:
            shop = min(shop, postings[at[number]] >> POSTING_BITS)
    return shop


@_inner
def _whole(texts: Texts, asked: Array, start: int, end: int) -> int:
    """The text that asked[start:end] is; -1 where there is none."""
    first, last = _begun(texts, IN_ORDER, asked, start, end)
    return first if first < last and texts.offsets[first + 1] - texts.offsets[first] == end - start else -1


@_inner
def _misspelt(texts: Texts, asked: Array, passing: Array, ranges: Ranges, found: Array, better: int, count: int) -> int:
    """Take the shops with a key of which a beginning is one error away from the text. Returns as `_taken`."""
    offsets, letters = texts.offsets, texts.letters
    size = len(asked)
    noted = _misspelt_at_first(texts, asked, ranges)
    # Of the texts that are as asked up to `depth`, those with an error right there.
    low, high = _begun(texts, IN_ORDER, asked, 0, len(LACKING))
    swapped = np.empty(size, np.int32)
    for depth in range(len(LACKING), size - 1):
        if low == high:
            break
        # There is one too many.
        first, last = _going_on(offsets, letters, offsets, IN_ORDER, asked, depth + 1, size, depth, low, high)
        noted = _noted(ranges, noted, first, last, IN_ORDER)
        swapped[0] = asked[depth]
        swapped[1 : size - depth - 1] = asked[depth + 2 :]
        below, above = high, high
        if offsets[low + 1] - offsets[low] == depth:
            low += 1  # ends here
        while low < high:
            letter = _letter(texts, low, depth)
            after = _after(texts, depth, letter, low, high)
            if letter == asked[depth]:
                below, above = low, after
            else:
                # Another one stands there, or one is missing.
                for begin in (depth + 1, depth):
                    first, last = _going_on(
                        offsets, letters, offsets, IN_ORDER, asked, begin, size, depth + 1, low, after
                    )
                    noted = _noted(ranges, noted, first, last, IN_ORDER)
                if letter == asked[depth + 1]:
                    # Two have changed places.
                    first, last = _going_on(
                        offsets, letters, offsets, IN_ORDER, swapped, 0, size - depth - 1, depth + 1, low, after
                    )
                    noted = _noted(ranges, noted, first, last, IN_ORDER)
            low = after
            if noted > len(ranges) - _NOTED_AT_ONCE:
                count = _best_of(texts, ranges, noted, KEY, passing, found, better, count)
                noted = 0
        low, high = below, above
    # All but the last character is as asked: whatever follows, that one is the error.
    noted = _noted(ranges, noted, low, high, IN_ORDER)
    return _best_of(texts, ranges, noted, KEY, passing, found, better, count)


@_inner
def _misspelt_at_first(texts: Texts, asked: Array, ranges: Ranges) -> int:
    """Note where keys are with an error in the first two characters: without one of them, all are in order as well.

    Returns:
        how many ranges there are.
    """
    size = len(asked)
    other = np.empty(size, np.int32)
    noted = 0
    for lacking in range(len(LACKING)):
        other[:lacking] = asked[:lacking]
        other[lacking : size - 1] = asked[lacking + 1 :]
        # Another one stands there, one is missing, and there is one too many.
        first, last = _begun(texts, lacking, other, 0, size - 1)
        noted = _noted(ranges, noted, first, last, lacking)
        first, last = _begun(texts, lacking, asked, 0, size)
        noted = _noted(ranges, noted, first, last, lacking)
        first, last = _begun(texts, IN_ORDER, other, 0, size - 1)
        noted = _noted(ranges, noted, first, last, IN_ORDER)
        # Two have changed places.
        other[:] = asked
        other[lacking], other[lacking + 1] = asked[lacking + 1], asked[lacking]
        first, last = _begun(texts, IN_ORDER, other, 0, size)
        noted = _noted(ranges, noted, first, last, IN_ORDER)
    return noted


@_inner
def _noted(ranges: Ranges, noted: int, low: int, high: int, lacking: int) -> int:
    """Note a range of the order that `lacking` names, unless it is empty. Returns how many there are."""
    if low == high:
        return noted
    ranges[noted, 0], ranges[noted, 1], ranges[noted, 2] = low, high, lacking
    return noted + 1


@_inner
def _letter(texts: Texts, place: int, depth: int) -> int:
    """The character of a text that comes after `depth` others."""
    letter: int
    if depth < FIRSTS:
        letter = texts.firsts[place] >> LETTER_BITS * (FIRSTS - 1 - depth) & ((1 << LETTER_BITS) - 1)
    else:
        letter = texts.letters[texts.offsets[place] + depth]
    return letter


@_inner
def _after(texts: Texts, depth: int, letter: int, low: int, high: int) -> int:
    """The place behind the texts low:high that have this letter at `depth`, of which the first one is; by leaps."""
    leap = 1
    while low + leap < high and _letter(texts, low + leap, depth) == letter:
        low += leap
        leap <<= 1
    high = min(high, low + leap)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if _letter(texts, middle, depth) == letter:
            low = middle + 1
        else:
            high = middle
    return low


@_inner
def _begun(texts: Texts, lacking: int, asked: Array, start: int, end: int) -> tuple[int, int]:
    """Of an order, which `lacking` names, the places of texts that begin with asked[start:end]."""
    firsts, begin = texts.firsts, 0
    if lacking != IN_ORDER:
        begin += _samples(len(firsts))
        firsts = texts.firsts_0
    if lacking == WITHOUT_SECOND:
        begin += _samples(len(firsts))
        firsts = texts.firsts_1
    least, most = _spread(asked, start, end)
    near = _place(texts.samples, begin, begin + _samples(len(firsts)), least) - begin
    first = _place(firsts, max(0, near - 1) * SAMPLED, min(len(firsts), near * SAMPLED), least)
    low, leap = first, 1
    while low + leap <= len(firsts) and firsts[low + leap - 1] <= most:
        low += leap
        leap <<= 1
    low = _place(firsts, low, min(len(firsts), low + leap), most + 1)
    if end - start <= FIRSTS or first == low:
        return first, low
    order = texts.rests_1 if lacking == WITHOUT_SECOND else texts.rests_0
    depth = FIRSTS if lacking == IN_ORDER else FIRSTS + 1
    return _going_on(texts.offsets, texts.letters, order, lacking, asked, start + FIRSTS, end, depth, first, low)


@_inner
def _place(numbers: Firsts, low: int, high: int, least: int) -> int:
    """The first place of low:high, where numbers ascend, of one that is no less."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@_inner
def _spread(asked: Array, start: int, end: int) -> tuple[int, int]:
    """The least and the most that may be said of the first characters of a text that begins with asked[start:end]."""
    least = most = 0
    for at in range(start, start + FIRSTS):
        given = at < end
        least = least << LETTER_BITS | (int(asked[at]) if given else 0)
        most = most << LETTER_BITS | (int(asked[at]) if given else (1 << LETTER_BITS) - 1)
    return least, most


@_inner
def _samples(size: int) -> int:
    """How many samples there are of so many numbers."""
    return (size + SAMPLED - 1) // SAMPLED


@_inner
def _going_on(
    offsets: Array,
    letters: Array,
    order: Array,
    lacking: int,
    asked: Array,
    start: int,
    end: int,
    depth: int,
    low: int,
    high: int,
) -> tuple[int, int]:
    """Of the places low:high of an order, alike before `depth`, those of texts that go on there with asked[start:end].

    A character that the order leaves out is before `depth`, and counted.
    """
    above = high
    first = -1
    while True:
        while low < high:
            middle = (low + high) >> 1
            text = middle if lacking == IN_ORDER else order[middle]
            letter, last = offsets[text] + depth, offsets[text + 1]
            compared = 0
            for at in range(start, end):
                if letter >= last:
                    compared = -1
                    break
                if letters[letter] != asked[at]:
                    compared = -1 if letters[letter] < asked[at] else 1
                    break
                letter += 1
            if compared < 0 or (compared == 0 and first >= 0):
                low = middle + 1
            else:
                high = middle
                if compared > 0:
                    above = middle
        if first >= 0 or low == above:
            return (first if first >= 0 else low), low
        # Once more, from the first one on, for the place behind the last one.
        first, high = low, above


@_inner
def _best_of(
    texts: Texts, ranges: Ranges, noted: int, mark: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the best shops of some ranges, each of an order, by texts with this mark. Returns as `_taken`."""
    heads, postings, gone, offsets = texts.heads, texts.postings, texts.gone, texts.offsets
    nodes = np.empty(_STACK, np.int32)
    for number in range(noted):
        low, high, lacking, most = ranges[number]
        most = _longest(mark, most)
        if lacking == IN_ORDER and (high - low) * _LARGE_SHARE > len(texts.firsts):
            count = _by_rank(texts, mark, low, high, most, passing, found, better, count)
            continue
        order, tree = texts.rests_0, texts.best_leading if mark == LEADING else texts.best_key
        if lacking == WITHOUT_FIRST:
            tree = texts.best_0
        elif lacking == WITHOUT_SECOND:
            order, tree = texts.rests_1, texts.best_1
        blocks = len(tree) >> 1
        first, last = (low + BLOCK - 1) // BLOCK, high // BLOCK
        waiting = 0
        # The texts at both ends, or all of few, are looked at one by one.
        one_by_one = high if last - first < _WORTH_A_TREE else first * BLOCK
        count = _scanned(
            heads, postings, gone, offsets, order, lacking, mark, low, one_by_one, most, passing, found, better, count
        )
        if one_by_one == high:
            continue
        count = _scanned(
            heads,
            postings,
            gone,
            offsets,
            order,
            lacking,
            mark,
            last * BLOCK,
            high,
            most,
            passing,
            found,
            better,
            count,
        )
        first, last = first + blocks, last + blocks
        while first < last:
            if first & 1:
                waiting = _stacked(tree, nodes, waiting, first)
                first += 1
            if last & 1:
                last -= 1
                waiting = _stacked(tree, nodes, waiting, last)
            first, last = first >> 1, last >> 1
        while waiting:
            waiting -= 1
            node = nodes[waiting]
            if count == len(found) and found[count - 1] < tree[node] >> POSTING_BITS:
                continue
            if node >= blocks:
                low = (node - blocks) * BLOCK
                high = low + BLOCK
                count = _scanned(
                    heads, postings, gone, offsets, order, lacking, mark, low, high, most, passing, found, better, count
                )
            else:
                nearer = 2 * node + (tree[2 * node + 1] < tree[2 * node])
                nodes[waiting], nodes[waiting + 1] = nearer ^ 1, nearer
                waiting += 2
    return count


@_inner
def _longest(mark: int, of_names: int) -> int:
    """How many letters a text with this mark may have: only of leading names half must have been typed."""
    return of_names if mark == LEADING else _NOBODY


@_inner
def _by_rank(
    texts: Texts, mark: int, low: int, high: int, most: int, passing: Array, found: Array, better: int, count: int
) -> int:
    """Take the best shops of a large range: the first that have a text of it. Returns as `_taken`."""
    heads, own, offsets = texts.own_heads, texts.own, texts.offsets
    shop = 0
    while shop < len(heads) - 1:
        if count == len(found) and found[count - 1] < shop:
            break
        if len(passing) and shop & _IN_WORD == 0 and passing[shop >> _WORD_BITS] == 0:
            shop += _IN_WORD + 1  # few sell in most countries
            continue
        if _passes(passing, texts.gone, shop):
            for at in range(heads[shop], heads[shop + 1]):
                text = own[at] >> POSTING_BITS
                if low <= text < high and own[at] & mark and offsets[text + 1] - offsets[text] <= most:
                    count = _taken(shop, found, better, count)
                    break
        shop += 1
    return count


@_inner
def _stacked(tree: Array, nodes: Array, waiting: int, node: int) -> int:
    """Put a node among those that wait, the best one last. Returns how many wait."""
    place = waiting
    while place and tree[nodes[place - 1]] < tree[node]:
        nodes[place] = nodes[place - 1]
        place -= 1
    nodes[place] = node
    return waiting + 1


@_inner
def _scanned(
    heads: Array,
    postings: Array,
    gone: Array,
    offsets: Array,
    order: Array,
    lacking: int,
    mark: int,
    low: int,
    high: int,
    most: int,
    passing: Array,
    found: Array,
    better: int,
    count: int,
) -> int:
    """Take the best shops of a range, by texts of at most so many letters. Returns as `_taken`."""
    for place in range(low, high):
        text = place if lacking == IN_ORDER else order[place]
        if offsets[text + 1] - offsets[text] > most:
            continue
        for at in range(heads[text], heads[text + 1]):
            shop = postings[at] >> POSTING_BITS
            if count == len(found) and found[count - 1] < shop:
                break
            if postings[at] & mark and _passes(passing, gone, shop):
                count = _taken(shop, found, better, count)
    return count


@_inner
def _passes(passing: Array, gone: Array, shop: int) -> bool:
    """Whether a shop passes the filter, if there is one, and is still what it was."""
    word, bit = shop >> _WORD_BITS, shop & _IN_WORD
    if word < len(gone) and gone[word] >> bit & 1:
        return False
    return len(passing) == 0 or passing[word] >> bit & 1 == 1


@_inner
def _taken(shop: int, found: Array, better: int, count: int) -> int:
    """Put a shop among those found, in order, if it is none of them; found[:better] are of better tiers.

    Returns:
        how many there are now.
    """
    for place in range(better):
        if found[place] == shop:
            return count
    place = count
    while place > better and found[place - 1] > shop:
        place -= 1
    if place > better and found[place - 1] == shop:
        return count
    if count < len(found):
        count += 1
    for later in range(count - 1, place, -1):
        found[later] = found[later - 1]
    found[place] = shop
    return count
