"""A proxy with TLS and passwords before a real OpenSearch node, and the certificate authorities of a test's own."""

import base64
import binascii
import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.loopback import Forwarding, listening

_DAY: Final = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    file: Path
    key_file: Path


class Authority:
    """Signs certificates; its own is `file`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        own = _builder(self._name, self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        own = own.add_extension(_usage(signs_certificates=True), critical=True)
        own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, *hosts: str, days: int = 1) -> Certificate:
        """A certificate for host names and addresses; it ended already when `days` is negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        made = _builder(name, self._name, key.public_key(), days)
        made = made.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(signs_certificates=False), critical=True)
        made = made.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        signed = made.sign(self._key, hashes.SHA256())
        stem = f"{hosts[0]}-{signed.serial_number:x}"
        certificate = Certificate(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        certificate.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        certificate.key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 1
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    begin = now - 2 * abs(days) * _DAY
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(now + days * _DAY)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


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
