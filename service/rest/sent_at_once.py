"""An answer of the short way as it is sent: the parts of its head that many have in common are made once."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.calls import EndedCall
from service.rest.answers import Headers, stamp_headers
from service.search.protocol import Snapshot


@dataclass(slots=True)
class SentAtOnce:
    """An answer.

    Attributes:
        wire: all of it, as it is sent.
        call: what is told of it.
        snapshot: that it comes from.
        address: the caller's, where nothing else of the head mattered but the target; else None.
    """

    wire: bytes
    call: EndedCall
    snapshot: Snapshot | None = None
    address: str | None = None


class Beginning:
    """What all answers of a stamp and of a second begin with.

    Attributes:
        snapshot: of the stamp.
        servers_own: the server's own headers of that second.
        lines: the beginning of the head behind its first line.
        generation: that it names.
    """

    __slots__ = ("generation", "lines", "servers_own", "snapshot")

    def __init__(self, snapshot: Snapshot, servers_own: Sequence[tuple[bytes, bytes]], common: bytes) -> None:
        """Put together what is known before the request; `common` are lines that all answers have."""
        self.snapshot = snapshot
        self.servers_own = servers_own
        self.lines = lines_of((*servers_own, *stamp_headers(snapshot.stamp))) + common
        self.generation = snapshot.stamp.generation


def lines_of(headers: Headers) -> bytes:
    """Headers as the lines of a head."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])
