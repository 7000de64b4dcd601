"""A proxy with TLS and passwords before a real OpenSearch node, as its security plugin would be; it logs the users.

It knows no roles: what a user may do is for the test to judge from what was asked.
"""

import base64
import binascii
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.real.certificates import Certificate

_BOUND_S: Final = 30.0
_PASSED_ON: Final = ("content-type", "accept")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came through.

    Attributes:
        user: who asked.
        method: in capitals.
        path: with its query.
        body: as it was sent.
    """

    user: str
    method: str
    path: str
    body: bytes


@dataclass(slots=True)
class SecuredNode:
    """The proxy, while it runs.

    Attributes:
        port: where it listens, on all loopback names.
        passwords: by user; a change counts for the next request.
        asked: what came through.
        refused: how many requests were turned away for want of the right password.
    """

    port: int
    passwords: dict[str, str]
    asked: list[Asked] = field(default_factory=list)
    refused: int = 0

    def url(self, host: str = "localhost") -> str:
        """Its URL by one of its names."""
        return f"https://{host}:{self.port}"

    def takes(self, header: str | None) -> str | None:
        """The user of an Authorization header; None when it is not let in."""
        kind, _, coded = (header or "").partition(" ")
        try:
            user, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user if kind == "Basic" and user in self.passwords and self.passwords[user] == password else None


@contextmanager
def secured(node: str, certificate: Certificate, **passwords: str) -> Iterator[SecuredNode]:
    """Run a proxy before a node.

    Args:
        node: the node's URL.
        certificate: what the proxy shows.
        passwords: by user.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key_file)

    class Handler(_Handler):
        pass

    with _Server(("127.0.0.1", 0), Handler) as server:
        transport = SecuredNode(server.server_address[1], passwords)
        server.context = context
        Handler.transport, Handler.node = transport, urlsplit(node).netloc
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield transport
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class
        """Greet in the connection's own thread."""
        request.settimeout(_BOUND_S)
        with suppress(OSError):
            super().process_request_thread(self.context.wrap_socket(request, server_side=True), client_address)

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that does not trust the certificate hangs up in the middle."""


class _Handler(BaseHTTPRequestHandler):
    transport: SecuredNode
    node: str
    protocol_version = "HTTP/1.1"
    timeout = _BOUND_S
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _through(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        user = self.transport.takes(self.headers.get("authorization"))
        if user is None:
            self.transport.refused += 1
            self._answer(401, "text/plain; charset=UTF-8", b"Unauthorized", ("www-authenticate", "Basic realm=proxy"))
            return
        self.transport.asked.append(Asked(user, self.command, self.path, body))
        connection = http.client.HTTPConnection(self.node, timeout=_BOUND_S)
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        try:
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            self._answer(response.status, response.headers.get("content-type", ""), response.read())
        finally:
            connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _through  # noqa: N815 - names that the base class looks for

    def _answer(self, status: int, kind: str, body: bytes, *more: tuple[str, str]) -> None:
        self.send_response(status)
        headers: tuple[Any, ...] = (("content-type", kind), ("content-length", str(len(body))), *more)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()
