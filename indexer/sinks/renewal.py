"""A stamp in the place of one that names another generation: caches must take it for news (C1)."""

import time
from collections.abc import Mapping
from dataclasses import replace

from index_mappings.generations import Stamp


def renewed(found: Stamp, generation: str, counts: Mapping[str, int], typeahead: str) -> Stamp:
    """The stamp that a generation gets.

    How far its sequence had come is forgotten. The seconds since 1970 are above any: a micro-batch a second since then.

    Args:
        found: the stamp that lies there; its schema version is taken to be the generation's, and its date stays.
        generation: whose stamp it is to be.
        counts: documents by kind.
        typeahead: the manifest of its typeahead, by name: that of the other generation says nothing of it.
    """
    sequence = max(found.sequence, int(time.time())) + 1
    return replace(found, generation=generation, sequence=sequence, source_position=None, typeahead=typeahead).counted(
        counts
    )
