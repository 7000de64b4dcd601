"""The arrays that the compiled kernel reads, and how its functions are compiled."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray

from index_mappings import tiers
from index_mappings.typeahead import segment

Array = np.ndarray[tuple[int], np.dtype[np.int32]]
Ranges = np.ndarray[tuple[int, int], np.dtype[np.int32]]
Firsts = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

# log2 of the number of bits per int32 word of a bitmap, and the mask of a bit's number within its word.
WORD_BITS: Final = 5
IN_WORD: Final = 31
# Greater than every shop number, length and character: stands for "none" and for "no bound".
MAX_INT: Final = 2**31 - 1

_F = TypeVar("_F", bound=Callable[..., object])
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


class Lookup(NamedTuple):
    """The arrays by which texts are looked up, as `index_mappings.typeahead.segment` describes them.

    Attributes:
        samples: every SAMPLED-th item of `firsts`, `firsts_0` and `firsts_1`, one list after the other; they fit into
            a processor's cache.
    """

    offsets: Array
    letters: Array
    firsts: Firsts
    rests_0: Array
    firsts_0: Firsts
    rests_1: Array
    firsts_1: Firsts
    samples: Firsts


class Texts(NamedTuple):
    """The texts of one segment and their shops.

    Functions in inner loops take single arrays instead, because passing this whole tuple takes longer than their work.

    Attributes:
        lookup: the arrays by which texts are looked up.
        removed: bitmap of the shops that were removed or are newer in another segment; shops past its end are current.
        barred: DOTTED or 0; a posting with such a mark does not match a query that is only a prefix of its text.
    """

    lookup: Lookup
    heads: Array
    postings: Array
    own_heads: Array
    own: Array
    best_leading: Array
    best_key: Array
    best_0: Array
    best_1: Array
    removed: Array
    barred: int


class Carried(NamedTuple):
    """Which shops carry which categories, as `index_mappings.typeahead.segment` describes it."""

    category_heads: Array
    category_shops: Array
    own_category_heads: Array
    own_categories: Array


class Scratch(NamedTuple):
    """Working memory of a request: views of one array that outlives all calls, so that no references are counted.

    Attributes:
        ranges: ranges of texts, one a row: first, end, order, maximum length of a leading name. The fifth column is a
            list of its own, of texts that equal the query.
        rows, path, walk: state of the search for two typing errors (`typos`).
    """

    ranges: Ranges
    rows: Ranges
    path: Array
    walk: Ranges


# The arrays of a segment that the kernel reads, in the order in which `suggest` takes their extents.
ARRAYS: Final = (
    *Lookup._fields[:-1],
    *Texts._fields[1:-2],
    *Carried._fields,
    "markets",
    "known",
)


def inner(function: _F) -> _F:
    """Compile a function for calls from compiled code only: the wrappers for Python take longest to compile."""
    bare: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
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
