"""The only function of the kernel that is called from Python.

numba compiles everything that such a function calls again for each one, so a second one would double the compile time.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numba import njit

from index_mappings.typeahead.segment import DOTTED
from service.search.typeahead.kernel.arrays import (
    IN_WORD,
    WORD_BITS,
    Array,
    Carried,
    Firsts,
    borrowed,
    source_hash,
)
from service.search.typeahead.kernel.ranked import collect_entries
from service.search.typeahead.kernel.request import SCRATCH, WITH_DOT, Request, bounds_of, scratch_of, texts_of

ANY_COUNTRY: Final = -1


def suggest_entry(
    source: str,
) -> Callable[[Array, Firsts, Firsts, Firsts, Array, Array, int, Array, Array, int, int, int], Array]:
    """The function that is called from Python.

    Args:
        source: `source_hash()`; numba's cache key is this file and the variables that the function closes over, so
            this hash keeps machine code of other sources from being used.
    """  # fmt: skip

    @njit(cache=True)
    def suggest(
        items: Array,
        longs: Firsts,
        extents: Firsts,
        samples: Firsts,
        removed: Array,
        query: Array,
        forms: int,
        meant: Array,
        filtered: Array,
        limit: int,
        country: int,
        flags: int,
    ) -> Array:
        """The best shops for a suggest request, or those that a misspelt query may mean.

        Args:
            items: the whole segment as int32.
            longs: the same as int64.
            extents: where in `items` or `longs` the arrays of ARRAYS begin and end.
            samples: as `Lookup` describes them.
            removed: as `Texts` describes it.
            query: as `Request` describes it; if there are several words, the first two forms (X3) are the spaced and
                the joined one.
            forms: the number of forms; 0 asks for the most popular shops.
            meant: as `Request` describes it.
            filtered: without a country, a bitmap of the shops that pass other filters; empty without a filter.
            limit: the maximum number of shops.
            country: its row in `markets`, or ANY_COUNTRY.
            flags: as `Request` describes them.

        Returns:
            Entries, best first; see TIER_BITS.
        """
        _ = source
        # All memory of the request is one array; it is returned, so it outlives the views of it.
        whole = np.empty(2 * limit + 2 * len(query) + SCRATCH, np.int32)
        memory, borrowed_query, segment = borrowed(whole), borrowed(query), borrowed(items)
        barred = 0 if flags & WITH_DOT else DOTTED
        texts = texts_of(segment, borrowed(longs), extents, borrowed(samples), borrowed(removed), barred)
        passing = known = borrowed(filtered)
        if country >= 0:
            size = (len(texts.own_heads) - 1 + IN_WORD) >> WORD_BITS
            first, last = country * size, (country + 1) * size
            passing = segment[extents[38] + first : extents[38] + last]
            known = segment[extents[40] + first : extents[40] + last]
        request = Request(
            borrowed_query,
            bounds_of(borrowed_query, memory[2 * limit : 2 * limit + 2 * len(query)]),
            forms,
            borrowed(meant),
            Carried(
                segment[extents[30] : extents[31]],
                segment[extents[32] : extents[33]],
                segment[extents[34] : extents[35]],
                segment[extents[36] : extents[37]],
            ),
            passing,
            known,
            flags,
        )
        scratch = scratch_of(memory[2 * limit + 2 * len(query) :])
        count = collect_entries(texts, request, scratch, memory[limit : 2 * limit], memory[:limit])
        return whole[:count]

    return suggest


suggest: Final = suggest_entry(source_hash())
