"""Who calls and by which door: what dispatch needs to know beside the input."""

import secrets
from dataclasses import dataclass
from enum import StrEnum


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
    """

    channel: Channel
    request_id: str


def new_request_id() -> str:
    """32 hexadecimal digits."""
    return secrets.token_hex(16)
