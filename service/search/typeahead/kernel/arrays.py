"""The arrays that the machine code reads, and how its functions are compiled."""

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
# No shop, and no bound.
NOBODY: Final = 2**31 - 1

_F = TypeVar("_F", bound=Callable[..., object])
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


class Lookup(NamedTuple):
    """The arrays by which texts are looked up, as `index_mappings.typeahead.segment` describes them.

    Attributes:
        samples: every SAMPLED-th item of `firsts`, `firsts_0` and `firsts_1`, one list after the other: few enough for
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

    A function that is called often is given the arrays that it reads: passing all of these takes longer than most do.

    Attributes:
        lookup: where texts are.
        removed: bitmap of the shops that are gone or newer in another segment; shops after its end are not removed.
        barred: marks that keep a posting from being evidence where its text is only begun: DOTTED or 0.
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
    """Memory that a request works in: parts of one array that outlives all calls, so that no owners are counted.

    Attributes:
        ranges: of texts: first, end, order, and how long a leading name may be; the last column holds other texts.
        rows, path, walk: of two typing errors.
    """

    ranges: Ranges
    rows: Ranges
    path: Array
    walk: Ranges


# The arrays of a segment that are read here, in the order in which their positions are passed.
ARRAYS: Final = (
    *Lookup._fields[:-1],
    *Texts._fields[1:-2],
    *Carried._fields,
    "markets",
    "known",
)


def inner(function: _F) -> _F:
    """Compile a function that is only called from machine code: without wrappers for Python, which compile slowest."""
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

    numba counts references by a locked instruction wherever an array is passed, which took a third of all time here.
    """
    return array


@overload(borrowed)
def _compiled(array: Array) -> Callable[[Array], Array]:  # noqa: ARG001 - numba passes the type by the argument's name
    """The machine code of `borrowed` for an array's type."""

    def made(array: Array) -> Array:
        seen: Array = carray(_pointer(array.ctypes.data), array.shape, array.dtype)
        return seen

    return made


def source_hash() -> str:
    """A hash of all files that the machine code is made of: these modules, and those whose constants they contain."""
    constants = (tiers.__file__, segment.__file__)
    files = [*sorted(Path(__file__).parent.glob("*.py")), *(Path(name) for name in constants if name is not None)]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
