"""A relay in front of an OpenSearch node that spoils bulk requests as a test says, and notes what it was sent.

All other requests go through as they are.
"""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

_JSON: Final = {"content-type": "application/json"}
_TYPES: Final = {429: "rejected_execution_exception", 503: "unavailable_shards_exception"}


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

    class Handler(_Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        relay = Relay(f"http://127.0.0.1:{server.server_address[1]}", spoil)
        Handler.relay, Handler.node = relay, urlsplit(node).netloc
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield relay
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    relay: Relay
    node: str
    protocol_version = "HTTP/1.1"
    timeout = 10

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _through(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if "/_bulk" in self.path:
            self._bulk(body)
        else:
            self._answer(*self._ask(body))

    do_GET = do_POST = do_PUT = do_DELETE = _through  # noqa: N815 - names that the base class looks for

    def _bulk(self, body: bytes) -> None:
        operations = _operations(body)
        spoil = self.relay.take(tuple(one for one, _ in operations))
        settled = 0
        try:
            if spoil.status is not None:
                self._answer(spoil.status, json.dumps({"error": {"type": "spoilt"}}).encode())
            elif spoil.drop == "before":
                self.close_connection = True
            else:
                status, answer = self._ask_for(operations, spoil.reject)
                settled = len(operations) - len(spoil.reject.intersection(one for one, _ in operations))
                if spoil.drop == "after":
                    self.close_connection = True
                else:
                    self._answer(status, answer)
        finally:
            self.relay.end(settled)

    def _ask_for(self, operations: list[tuple[str, bytes]], reject: frozenset[str]) -> tuple[int, bytes]:
        passed = [lines for one, lines in operations if one not in reject]
        items: list[Any] = []
        if passed:
            status, answer = self._ask(b"".join(passed))
            if status != 200 or len(passed) == len(operations):
                return status, answer
            items = json.loads(answer)["items"]
        answered = iter(items)
        rejected = {"index": {"status": 429, "error": {"type": _TYPES[429]}}}
        return 200, json.dumps(
            {"errors": True, "items": [rejected if one in reject else next(answered) for one, _ in operations]}
        ).encode()

    def _ask(self, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.node, timeout=30)
        try:
            connection.request(self.command, self.path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        for name, value in {**_JSON, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _operations(body: bytes) -> list[tuple[str, bytes]]:
    """The ids of a bulk body with their lines."""
    found = []
    lines = iter(body.splitlines(keepends=True))
    for action in lines:
        ((name, about),) = json.loads(action).items()
        found.append((about["_id"], action + (next(lines) if name == "index" else b"")))
    return found
