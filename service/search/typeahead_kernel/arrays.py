"""What the machine code sees, how it is made, and what it is made of."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray

from index_mappings import tiers, typeahead

Array = np.ndarray[tuple[int], np.dtype[np.int32]]
Ranges = np.ndarray[tuple[int, int], np.dtype[np.int32]]
Firsts = np.ndarray[tuple[int], np.dtype[np.int64]]

# Of bits that say something of each shop, or of each text, so many are in one number.
WORD_BITS: Final = 5
IN_WORD: Final = 31
# No shop, and no bound.
NOBODY: Final = 2**31 - 1

_F = TypeVar("_F", bound=Callable[..., object])
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


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


def inner(function: _F) -> _F:
    """What is only called from here: without the parts that Python would call it by, which take longest to make."""
    bare: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: _F = njit(**bare)(function)
    return compiled


def _told_as_pointer(_typing: object, _address: object) -> tuple[object, Callable[..., object]]:
    """What type the pointer that an address is has, and how it is made."""
    return types.voidptr(types.intp), lambda context, builder, signature, given: builder.inttoptr(
        given[0], context.get_value_type(signature.return_type)
    )


_pointer: Any = intrinsic(_told_as_pointer)


def borrowed(array: _A) -> _A:
    """The same array without an owner, which whoever calls must keep.

    numba counts who has an array by a locked instruction wherever one is handed over, a third of all time here.
    """
    return array


@overload(borrowed)
def _compiled(array: Array) -> Callable[[Array], Array]:  # noqa: ARG001 - numba hands over its type by name
    """What `borrowed` is in machine code, told the type of the array."""

    def made(array: Array) -> Array:
        seen: Array = carray(_pointer(array.ctypes.data), array.shape, array.dtype)
        return seen

    return made


def made_of() -> str:
    """A hash of all files that say what the machine code does: these, and those whose numbers are within it."""
    told = (tiers.__file__, typeahead.__file__)
    files = [*sorted(Path(__file__).parent.glob("*.py")), *(Path(name) for name in told if name is not None)]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
