"""What both engines derive of a generation: its role, and a stamp that replaces another generation's."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from index_mappings.generations import Stamp
from indexer.sinks.protocol import Role


def role_of(name: str, live: str | None, previous: str | None, retired_at: datetime | None) -> Role:
    """The role of a generation, from the pointers to the live and the previous one, and its mark of retirement."""
    if name == live:
        return Role.LIVE
    if name == previous:
        return Role.PREVIOUS
    return Role.UNFINISHED if retired_at is None else Role.RETIRED


def renewed(found: Stamp, generation: str, counts: Mapping[str, int], typeahead: str) -> Stamp:
    """A stamp for a generation whose stamp names another one; caches must see it as new (C1).

    The former sequence number is lost. The seconds since 1970 are above any: a micro-batch a second since then.

    Args:
        found: the stamp that names another generation; its schema version and its date are kept.
        generation: the generation of the new stamp.
        counts: documents by kind.
        typeahead: the name of its typeahead's manifest.
    """
    sequence = max(found.sequence, int(time.time())) + 1
    return replace(found, generation=generation, sequence=sequence, source_position=None, typeahead=typeahead).counted(
        counts
    )
