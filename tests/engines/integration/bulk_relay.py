"""A relay in front of an OpenSearch node that spoils bulk requests as a test says, and notes what it was sent.

All other requests go through as they are.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.loopback import Forwarding, listening


@dataclass(frozen=True, slots=True)
class Spoil:
    """What happens to one bulk request; without anything said it goes through.

    Attributes:
        status: the answer's status, instead of the node's answer.
        drop: the connection is closed: "before" the node was asked, or "after".
        reject: ids that are answered 429 and never reach the node.
    """

    status: int | None = None
    drop: str | None = None
    reject: frozenset[str] = frozenset()


THROUGH: Final = Spoil()


@dataclass(frozen=True, slots=True)
class Sent:
    """One bulk request as it came: the ids in it, what was done with it, and how many were in flight with it."""

    ids: tuple[str, ...]
    spoil: Spoil
    in_flight: int


@dataclass(slots=True)
class Relay:
    """What the relay does and has seen.

    Attributes:
        url: where it listens.
        spoil: asked of each bulk request: its number, from 0, and its ids.
        sent: all bulk requests so far.
        settled: how many operations were answered with the node's own word.
    """

    url: str
    spoil: Callable[[int, tuple[str, ...]], Spoil]
    sent: list[Sent] = field(default_factory=list)
    settled: int = 0
    _in_flight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, ids: tuple[str, ...]) -> Spoil:
        """Note a bulk request, and decide on it."""
        with self._lock:
            self._in_flight += 1
            spoil = self.spoil(len(self.sent), ids)
            self.sent.append(Sent(ids, spoil, self._in_flight))
            return spoil

    def end(self, settled: int) -> None:
        """Note that a bulk request is answered."""
        with self._lock:
            self._in_flight -= 1
            self.settled += settled


@contextmanager
def relay_to(node: str, spoil: Callable[[int, tuple[str, ...]], Spoil] = lambda _, __: THROUGH) -> Iterator[Relay]:
    """A relay that listens on loopback until the end."""
    relay = Relay("", spoil)
    with listening(_Handler, relay=relay, node=urlsplit(node).netloc) as port:
        relay.url = f"http://127.0.0.1:{port}"
        yield relay


class _Handler(Forwarding):
    relay: Relay

    def through(self, body: bytes) -> None:
        if "/_bulk" not in self.path:
            super().through(body)
            return
        operations = _operations(body)
        spoil = self.relay.take(tuple(one for one, _ in operations))
        settled = 0
        try:
            if spoil.status is not None:
                self.reply(spoil.status, json.dumps({"error": {"type": "spoilt"}}).encode())
            elif spoil.drop == "before":
                self.close_connection = True
            else:
                status, answer = self._ask_for(operations, spoil.reject)
                settled = len(operations) - len(spoil.reject.intersection(one for one, _ in operations))
                if spoil.drop == "after":
                    self.close_connection = True
                else:
                    self.reply(status, answer)
        finally:
            self.relay.end(settled)

    def _ask_for(self, operations: list[tuple[str, bytes]], reject: frozenset[str]) -> tuple[int, bytes]:
        passed = [lines for one, lines in operations if one not in reject]
        items: list[Any] = []
        if passed:
            status, answer = self.forwarded(b"".join(passed))
            if status != 200 or len(passed) == len(operations):
                return status, answer
            items = json.loads(answer)["items"]
        answered = iter(items)
        rejected = {"index": {"status": 429, "error": {"type": "rejected_execution_exception"}}}
        return 200, json.dumps(
            {"errors": True, "items": [rejected if one in reject else next(answered) for one, _ in operations]}
        ).encode()


def _operations(body: bytes) -> list[tuple[str, bytes]]:
    """The ids of a bulk body with their lines."""
    found = []
    lines = iter(body.splitlines(keepends=True))
    for action in lines:
        ((name, about),) = json.loads(action).items()
        found.append((about["_id"], action + (next(lines) if name == "index" else b"")))
    return found
