"""All that a tool may touch."""

from dataclasses import dataclass

from service.search.protocol import Snapshot


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call of a tool works with.

    Attributes:
        search: the generation that the whole answer comes from (C2).
    """

    search: Snapshot
