"""The arrays that the compiled kernel reads, how its functions are compiled, and prefix look-ups among the texts."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import IRProcessing
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray

from index_mappings import tiers
from shop_directory.typeahead import segment
from shop_directory.typeahead.segment import FIRSTS, LETTER_BITS

Array = np.ndarray[tuple[int], np.dtype[np.int32]]
Ranges = np.ndarray[tuple[int, int], np.dtype[np.int32]]
Longs = np.ndarray[tuple[int], np.dtype[np.int64]]
# Packed first characters of texts.
Firsts = Longs
Cells = np.ndarray[tuple[int, int, int], np.dtype[np.int32]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
Doubles = np.ndarray[tuple[int], np.dtype[np.float64]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

# log2 of the number of bits per int32 word of a bitmap, and the mask of a bit's number within its word.
WORD_BITS: Final = 5
IN_WORD: Final = 31
# Greater than every shop number, length and character: stands for "none" and for "no bound".
MAX_INT: Final = 2**31 - 1
# The orders of texts: whole texts; or keys, sorted without the character at this position.
IN_ORDER: Final = -1
WITHOUT_FIRST: Final = 0
WITHOUT_SECOND: Final = 1
# One in this many packed first characters is a sample.
SAMPLED: Final = 64

_F = TypeVar("_F", bound=Callable[..., object])
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


class Lookup(NamedTuple):
    """The arrays by which texts are looked up, as `shop_directory.typeahead.segment` describes them.

    `samples` has every SAMPLED-th item of `firsts`, then of `firsts_0` and `firsts_1`; they fit a processor's cache.
    """

    offsets: Array
    letters: Array
    firsts: Firsts
    rests_0: Array
    firsts_0: Firsts
    rests_1: Array
    firsts_1: Firsts
    samples: Firsts


class KeyOrder(NamedTuple):
    """One of the orders: texts are the numbers in `texts`, unless they are in order, where this is not read."""

    offsets: Array
    letters: Array
    texts: Array
    lacking: int


class Texts(NamedTuple):
    """The texts of one segment and their shops.

    Functions in inner loops take a few arrays instead, because passing this whole tuple takes longer than their work.
    `barred` is DOTTED or 0: a posting with such a mark does not match a query that is only a prefix of its text.
    """

    lookup: Lookup
    heads: Array
    postings: Array
    own_heads: Array
    own: Array
    own_marks: Bytes
    best_leading: Array
    best_key: Array
    best_0: Array
    best_1: Array
    barred: int


class Meanings(NamedTuple):
    """The categories of each shop, as `shop_directory.typeahead.segment` describes them, and those of the query.

    `meant` is empty unless one of several words means a category. Then it has for each word the numbers of the
    categories that it means, as a list of lists: where each begins, the last one's end, then the numbers, ascending.
    """

    own_category_heads: Array
    own_categories: Array
    meant: Array


class Carried(NamedTuple):
    """Which shops carry which categories, as `shop_directory.typeahead.segment` describes it."""

    category_heads: Array
    category_shops: Array
    meanings: Meanings


class Ranking(NamedTuple):
    """The shops found so far, and which ones may be added to them.

    Attributes:
        passing: bitmap of the shops that pass the filter; empty without a filter.
        removed: bitmap of the shops that were removed or are newer in another segment; shops past its end are current.
        found: numbers of shops, at most as many as its length; when it is full, the worst shop is dropped.
        better: how many shops in it are of better tiers.
    """

    passing: Array
    removed: Array
    found: Array
    better: int


class Scratch(NamedTuple):
    """Working memory of a request: views of one array that outlives all calls, so that no references are counted.

    Attributes:
        ranges: ranges of texts, one a row: first, end, order, maximum length of a leading name. The fifth column is a
            separate list, of texts that equal the query.
        rows, path, walk: state of the search for two typing errors (`typos`).
    """

    ranges: Ranges
    rows: Ranges
    path: Array
    walk: Ranges


class _NoEnvironment:
    """Takes the environments of functions that Python does not call, which have none."""

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing."""


_NO_ENVIRONMENT: Final = _NoEnvironment()


class _LinkedCode(JITCodeLibrary):
    """A function that is only linked into its callers.

    numba would optimize it and make machine code of it, with all that it calls, and again for each caller and theirs:
    a third of the compile time. The function that Python calls is optimized with all that is linked into it.
    """

    @property
    def codegen(self) -> _NoEnvironment:
        """By which numba sets the environment of a function."""
        return _NO_ENVIRONMENT

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)  # type: ignore[no-untyped-call]
class _LinkOnly(FunctionPass):
    """Compile the function of this pipeline as code that is only linked."""

    _name = "link_only"

    def __init__(self) -> None:
        """Set up the pass; numba's class leaves that to its subclasses."""

    def run_pass(self, state: Any) -> bool:  # noqa: ANN401 - numba's state of a compilation
        """Replace the library into which numba would compile."""
        state.library = _LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        return True


class _InnerCompiler(CompilerBase):
    """The pipeline of numba's default compiler, for functions that are only linked."""

    def define_pipelines(self) -> list[Any]:
        """The passes of numba, and the one above before code is made."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
        passes.add_pass_after(_LinkOnly, IRProcessing)
        passes.finalize()
        return [passes]


def inner(function: _F) -> _F:
    """Compile a function for calls from compiled code only: the wrappers for Python take longest to compile."""
    bare: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _InnerCompiler}
    compiled: _F = njit(**bare)(function)
    return compiled


def _type_pointer(_typing: object, _address: object) -> tuple[object, Callable[..., object]]:
    """The type of the pointer that an address is, and the code that makes it."""
    return types.voidptr(types.intp), lambda context, builder, signature, given: builder.inttoptr(
        given[0], context.get_value_type(signature.return_type)
    )


_pointer: Any = intrinsic(_type_pointer)


def borrowed(array: _A) -> _A:
    """The same array without an owner; the caller must hold a reference to it.

    Otherwise numba counts references with a locked instruction at each call, which took a third of the kernel's time.
    """
    return array


@overload(borrowed)
def _compiled(array: Array) -> Callable[[Array], Array]:  # noqa: ARG001 - numba passes the type by the argument's name
    """The machine code of `borrowed` for an array's type."""

    def view(array: Array) -> Array:
        unowned: Array = carray(_pointer(array.ctypes.data), array.shape, array.dtype)
        return unowned

    return view


@inner
def ints_at(table: Longs, at: int) -> Array:
    """The int32 array whose address and size are at a position of a table."""
    found: Array = carray(_pointer(table[at]), (table[at + 1],), np.int32)
    return found


@inner
def longs_at(table: Longs, at: int) -> Longs:
    """The int64 array whose address and size are at a position of a table."""
    found: Longs = carray(_pointer(table[at]), (table[at + 1],), np.int64)
    return found


@inner
def doubles_at(table: Longs, at: int) -> Doubles:
    """The float64 array whose address and size are at a position of a table."""
    found: Doubles = carray(_pointer(table[at]), (table[at + 1],), np.float64)
    return found


@inner
def bytes_at(table: Longs, at: int) -> Bytes:
    """The array of bytes whose address and size are at a position of a table."""
    found: Bytes = carray(_pointer(table[at]), (table[at + 1],), np.uint8)
    return found


def read_only(array: _A) -> _A:
    """The same array, made read-only.

    All arrays that the kernel takes are read-only, as memory-mapped ones must be: numba would compile the kernel once
    more for writable ones, during a request.
    """
    array.flags.writeable = False
    return array


NOTHING: Final = read_only(np.zeros(0, np.int32))


def source_hash() -> str:
    """A hash of all sources of the machine code: these modules, and those whose constants are compiled into it."""
    constants = (tiers.__file__, segment.__file__)
    files = [*sorted(Path(__file__).parent.glob("*.py")), *(Path(name) for name in constants if name is not None)]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@inner
def prefix_range(lookup: Lookup, lacking: int, query: Array, start: int, end: int) -> tuple[int, int]:
    """The range of the order `lacking` in which texts begin with query[start:end]."""
    firsts, begin = lookup.firsts, 0
    if lacking != IN_ORDER:
        begin += _samples(len(firsts))
        firsts = lookup.firsts_0
    if lacking == WITHOUT_SECOND:
        begin += _samples(len(firsts))
        firsts = lookup.firsts_1
    least, greatest = _packed_bounds(query, start, end)
    near = first_at_least(lookup.samples, begin, begin + _samples(len(firsts)), least) - begin
    first = first_at_least(firsts, max(0, near - 1) * SAMPLED, min(len(firsts), near * SAMPLED), least)
    low = seek(firsts, first, len(firsts), greatest + 1)
    if end - start <= FIRSTS or first == low:
        return first, low
    texts = lookup.rests_1 if lacking == WITHOUT_SECOND else lookup.rests_0
    depth = FIRSTS if lacking == IN_ORDER else FIRSTS + 1
    order = KeyOrder(lookup.offsets, lookup.letters, texts, lacking)
    return narrow_range(order, query, start + FIRSTS, end, depth, first, low)


@inner
def find_text(lookup: Lookup, query: Array, start: int, end: int) -> int:
    """The number of the text that equals query[start:end]; -1 where there is none."""
    first, last = prefix_range(lookup, IN_ORDER, query, start, end)
    return first if first < last and lookup.offsets[first + 1] - lookup.offsets[first] == end - start else -1


@inner
def narrow_range(
    order: KeyOrder, query: Array, start: int, end: int, depth: int, low: int, high: int
) -> tuple[int, int]:
    """The part of the range low:high of an order, equal before `depth`, that continues there with query[start:end].

    `depth` counts the character that the order leaves out, which is always before it.
    """
    offsets, letters = order.offsets, order.letters
    above = high
    first = -1
    while True:
        while low < high:
            middle = (low + high) >> 1
            text = middle if order.lacking == IN_ORDER else order.texts[middle]
            letter, last = offsets[text] + depth, offsets[text + 1]
            compared = 0
            for at in range(start, end):
                if letter >= last:
                    compared = -1
                    break
                if letters[letter] != query[at]:
                    compared = -1 if letters[letter] < query[at] else 1
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
        # A second search, from the first match on, finds the end of the range.
        first, high = low, above


@inner
def letter_at(offsets: Array, letters: Array, firsts: Firsts, position: int, depth: int) -> int:
    """The character of a text at `depth`; the text must be longer than that.

    The length is not checked, because a condition here takes ten times as long as the rest. `depth` is at most
    SUGGEST_CUT + 2, and the header behind all arrays is longer than that, so a read stays within the segment.
    """
    letter: int
    if depth < FIRSTS:
        letter = firsts[position] >> LETTER_BITS * (FIRSTS - 1 - depth) & ((1 << LETTER_BITS) - 1)
    else:
        letter = letters[offsets[position] + depth]
    return letter


@inner
def after_letter(offsets: Array, letters: Array, firsts: Firsts, depth: int, letter: int, low: int, high: int) -> int:
    """The end of the texts in low:high that share the first one's character at `depth`; a galloping search."""
    leap = 1
    while low + leap < high and letter_at(offsets, letters, firsts, low + leap, depth) == letter:
        low += leap
        leap <<= 1
    return seek_letter(offsets, letters, firsts, depth, letter + 1, low + 1, min(high, low + leap))


@inner
def seek_letter(offsets: Array, letters: Array, firsts: Firsts, depth: int, letter: int, low: int, high: int) -> int:
    """The first text of low:high whose character at `depth` is not less than this one; all must be that long."""
    while low < high:
        middle = (low + high) >> 1
        if letter_at(offsets, letters, firsts, middle, depth) < letter:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def first_at_least(numbers: Array | Firsts, low: int, high: int, least: int) -> int:
    """The first position in low:high, where numbers ascend, of a number that is not less than `least`."""
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def seek(numbers: Array | Firsts, low: int, high: int, least: int) -> int:
    """As `first_at_least`, by a galloping search, which is faster where the position is near `low`."""
    leap = 1
    while low + leap <= high and numbers[low + leap - 1] < least:
        low += leap
        leap <<= 1
    return first_at_least(numbers, low, min(high, low + leap - 1), least)


@inner
def _packed_bounds(query: Array, start: int, end: int) -> tuple[int, int]:
    """The least and the greatest packed first characters that a text beginning with query[start:end] can have."""
    least = greatest = 0
    for at in range(start, start + FIRSTS):
        given = at < end
        least = least << LETTER_BITS | (int(query[at]) if given else 0)
        greatest = greatest << LETTER_BITS | (int(query[at]) if given else (1 << LETTER_BITS) - 1)
    return least, greatest


@inner
def _samples(size: int) -> int:
    return (size + SAMPLED - 1) // SAMPLED
