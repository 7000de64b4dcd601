"""The function that is called from Python.

It is one function for all that is asked: numba optimizes all that a function calls once more for each such function,
so that a second one would take as long to compile as the first.
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
        source: `source_hash()`; numba caches machine code by this file and by what the function closes over, so code of
            another source is never used.
    """  # fmt: skip

    @njit(cache=True)
    def suggest(
        items: Array,
        longs: Firsts,
        places: Firsts,
        samples: Firsts,
        removed: Array,
        asked: Array,
        forms: int,
        meant: Array,
        filtered: Array,
        wanted: int,
        country: int,
        flags: int,
    ) -> Array:
        """The best shops for a suggest request, or for a text that is near to one.

        Args:
            items: the whole segment as int32.
            longs: the same as int64.
            places: where in `items` or `longs` the arrays of ARRAYS begin and end.
            samples: as `Lookup` describes them.
            removed: as `Texts` describes it.
            asked: the query's forms (X3), and its words if there are several, when the first two forms are those
                spaced and joined; each followed by a zero.
            forms: how many forms there are; 0 asks for the most popular shops.
            meant: as `Request` describes it.
            filtered: without a country, a bitmap of the shops that pass other filters; empty where there is none.
            wanted: how many shops at most.
            country: its number, as `markets` counts them, or ANY_COUNTRY.
            flags: as `Request` describes them.

        Returns:
            entries, best first; see TIER_BITS.
        """
        _ = source
        # All memory of the request is one array, which is returned, and so outlives what borrows it.
        whole = np.empty(2 * wanted + 2 * len(asked) + SCRATCH, np.int32)
        memory, query, segment = borrowed(whole), borrowed(asked), borrowed(items)
        barred = 0 if flags & WITH_DOT else DOTTED
        texts = texts_of(segment, borrowed(longs), places, borrowed(samples), borrowed(removed), barred)
        passing = known = borrowed(filtered)
        if country >= 0:
            size = (len(texts.own_heads) - 1 + IN_WORD) >> WORD_BITS
            first, last = country * size, (country + 1) * size
            passing = segment[places[38] + first : places[38] + last]
            known = segment[places[40] + first : places[40] + last]
        request = Request(
            query,
            bounds_of(query, memory[2 * wanted : 2 * wanted + 2 * len(asked)]),
            forms,
            borrowed(meant),
            Carried(
                segment[places[30] : places[31]],
                segment[places[32] : places[33]],
                segment[places[34] : places[35]],
                segment[places[36] : places[37]],
            ),
            passing,
            known,
            flags,
        )
        scratch = scratch_of(memory[2 * wanted + 2 * len(asked) :])
        count = collect_entries(texts, request, scratch, memory[wanted : 2 * wanted], memory[:wanted])
        return whole[:count]

    return suggest


suggest: Final = suggest_entry(source_hash())
