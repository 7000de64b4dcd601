"""A proxy with TLS and passwords before a real OpenSearch node, as its security plugin would be; it logs the users.

It knows no roles: what a user may do is for the test to judge from what was asked.
"""

import base64
import binascii
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.loopback import Forwarding, listening
from tests.support.real.certificates import Certificate

_BOUND_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came through: its user, its method in capitals, its path with the query, its body."""

    user: str
    method: str
    path: str
    body: bytes


@dataclass(slots=True)
class SecuredNode:
    """The proxy, while it runs, on all loopback names.

    A change of `passwords`, by user, counts for the next request; `refused` ones lacked the right password.
    """

    port: int
    passwords: dict[str, str]
    asked: list[Asked] = field(default_factory=list)
    refused: int = 0

    def url(self, host: str = "localhost") -> str:
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
    """Run a proxy before a node, by its URL; the certificate is the proxy's, the passwords are by user."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key_file)

    class Server(_Server):
        pass

    Server.context = context
    transport = SecuredNode(0, passwords)
    with listening(_Handler, Server, transport=transport, node=urlsplit(node).netloc) as port:
        transport.port = port
        yield transport


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class
        request.settimeout(_BOUND_S)
        with suppress(OSError):
            super().process_request_thread(self.context.wrap_socket(request, server_side=True), client_address)

    def handle_error(self, *_: object) -> None:
        """Say nothing: a client that does not trust the certificate hangs up in the middle."""


class _Handler(Forwarding):
    transport: SecuredNode

    def through(self, body: bytes) -> None:
        user = self.transport.takes(self.headers.get("authorization"))
        if user is None:
            self.transport.refused += 1
            self.reply(401, b"Unauthorized")
            return
        self.transport.asked.append(Asked(user, self.command, self.path, body))
        super().through(body)
