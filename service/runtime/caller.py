"""The caller of a call, and its request id."""

from dataclasses import dataclass, field
from enum import StrEnum
from random import getrandbits

from service.runtime.addresses import UNKNOWN


class Channel(StrEnum):
    """The transport of a call."""

    REST = "rest"
    MCP = "mcp"
    STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of one call.

    Attributes:
        channel: the transport.
        request_id: made by the service, never by the caller; in the log and in the answer (E5).
        token: the text of the supplied token; hidden from `repr`.
        address: the caller's address, as trusted proxies report it (Q3).
        country: the caller's country, where a trusted proxy reports it (A5).
    """

    channel: Channel
    request_id: str
    token: str | None = field(default=None, repr=False)
    address: str = UNKNOWN
    country: str | None = None


def new_request_id() -> str:
    """A new random request id."""
    # Not a secret, so a fast generator is enough.
    return f"{getrandbits(128):032x}"
