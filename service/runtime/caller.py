"""Who calls and by which door: what dispatch needs to know beside the input."""

from dataclasses import dataclass, field
from enum import StrEnum
from random import getrandbits

from service.runtime.addresses import UNKNOWN


class Channel(StrEnum):
    """The door that a call came by."""

    REST = "rest"
    MCP = "mcp"
    STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class Caller:
    """One call's origin.

    Attributes:
        channel: the door.
        request_id: ours, never the caller's: the log and the answer share it (E5).
        token: the text of the token that came with the call; in no representation.
        address: the caller's, as far as configured proxies tell it (Q3).
        country: the caller's, where a trusted edge tells it (A5).
    """

    channel: Channel
    request_id: str
    token: str | None = field(default=None, repr=False)
    address: str = UNKNOWN
    country: str | None = None


def new_request_id() -> str:
    """A fresh request id."""
    # It tells requests apart and guards nothing.
    return f"{getrandbits(128):032x}"
