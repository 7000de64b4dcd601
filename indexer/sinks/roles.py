"""What a generation is, from the pointers and marks that both engines keep."""

from datetime import datetime

from indexer.sinks.protocol import Role


def role_of(name: str, live: str | None, previous: str | None, retired_at: datetime | None) -> Role:
    """A generation that is neither live nor previous was live once if it is marked as retired, else it never was."""
    if name == live:
        return Role.LIVE
    if name == previous:
        return Role.PREVIOUS
    return Role.UNFINISHED if retired_at is None else Role.RETIRED
