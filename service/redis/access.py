"""The settings by which Redis is reached: one server, a master behind sentinels, or a cluster; its users and TLS.

Contradictory settings are refused by name; none is silently ignored.
"""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

DEFAULT_REDIS_URL: Final = "redis://127.0.0.1:6379/0"

_TLS_SCHEME: Final = "rediss"
_SCHEMES: Final = ("redis", _TLS_SCHEME, "unix")
# Other options of the client could, for instance, disable the verification of certificates.
_OPTIONS: Final = {"db"}
_URL: Final = "a redis://, rediss:// or unix:// URL, without options other than db"
_ONCE: Final = "given once, in the URL or here"
_ONLY_TLS: Final = "given only with a rediss:// URL"
_CERTIFICATE: Final = "a readable PEM certificate, and redis_key_file its key"
_MASTER: Final = "what the sentinels call the master, given with them"
_ADDRESSES: Final = "addresses such as redis-1.example:{port}, separated by commas, and not with a unix:// URL"


class RedisAccessError(ValueError):
    """A field of the service's settings is invalid; `must` continues "must be", and holds no value."""

    def __init__(self, setting: str, must: str) -> None:
        self.setting = setting
        self.must = must
        super().__init__(f"{setting} must be {must}")


@dataclass(frozen=True, slots=True)
class RedisAccess:
    """How Redis is reached, as the settings `redis_...` describe it.

    Without `ca_file` the authorities of the system are trusted. Addresses of sentinels and nodes are `host:port`; with
    either, host and port of the URL are not used. RedisAccessError is raised for the first invalid setting, also for a
    file that can't be read.
    """

    url: str = field(default=DEFAULT_REDIS_URL, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    sentinels: tuple[str, ...] = ()
    sentinel_name: str | None = None
    sentinel_user: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    cluster_nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for setting, wrong, must in _rules(self):
            if wrong:
                raise RedisAccessError(setting, must)

    @property
    def with_tls(self) -> bool:
        """Whether connections are TLS."""
        return urlsplit(self.url).scheme == _TLS_SCHEME


def address_of(text: str) -> tuple[str, int] | None:
    """Host and port of `host:port` or `[IPv6]:port`; None for any other text."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (host, port) if host and port and parts.netloc == text and "@" not in text else None


def _rules(access: RedisAccess) -> Iterator[tuple[str, object, str]]:
    """The rules in the order in which they are checked: a setting, whether it is wrong, and its valid values."""
    parts = _split(access.url)
    if parts is None or parts.scheme not in _SCHEMES or parts.fragment or set(parse_qs(parts.query)) - _OPTIONS:
        yield "redis_url", True, _URL
        return
    user, password, unix, tls = access.user, access.password, parts.scheme == "unix", access.with_tls
    database = _database(parts)
    yield "redis_url", unix and not parts.path, _URL
    yield "redis_url", database is None, f"{_URL}; a database is a whole number"
    yield "redis_user", user is not None and parts.username, _ONCE
    yield "redis_password", password is not None and parts.password, _ONCE
    yield "redis_password", user is not None and not (password or parts.password), "given with redis_user"

    authorities, certificate, key = access.ca_file, access.certificate_file, access.key_file
    yield "redis_ca_file", authorities and not tls, _ONLY_TLS
    yield "redis_certificate_file", certificate and not tls, _ONLY_TLS
    yield "redis_key_file", key and not tls, _ONLY_TLS
    yield "redis_certificate_file", key and not certificate, "given with redis_key_file"
    yield "redis_key_file", certificate and not key, "given with redis_certificate_file"
    yield "redis_ca_file", not _loads(authorities), "a readable file of PEM certificates"
    yield "redis_certificate_file", not _loads(None, certificate, key), _CERTIFICATE

    sentinels, nodes = access.sentinels, access.cluster_nodes
    yield "redis_sentinels", sentinels and (unix or not all(map(address_of, sentinels))), _ADDRESSES.format(port=26379)
    yield "redis_sentinel_name", sentinels and not access.sentinel_name, _MASTER
    yield (
        "redis_sentinel_password",
        sentinels and access.sentinel_user and not access.sentinel_password,
        "given with redis_sentinel_user",
    )
    for name in ("sentinel_name", "sentinel_user", "sentinel_password"):
        yield f"redis_{name}", not sentinels and getattr(access, name) is not None, "given only with redis_sentinels"
    yield "redis_cluster_nodes", nodes and (unix or not all(map(address_of, nodes))), _ADDRESSES.format(port=6379)
    yield "redis_cluster_nodes", nodes and sentinels, "given without redis_sentinels"
    yield "redis_url", nodes and database, "without a database other than 0: a cluster has no other"


def _loads(authorities: Path | None, certificate: Path | None = None, key: Path | None = None) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if authorities is not None:
            context.load_verify_locations(authorities)
        if certificate is not None:
            # With no password given, OpenSSL would ask for a pass phrase at the terminal.
            context.load_cert_chain(certificate, key, password="")
    except OSError:
        return False
    return True


def _split(url: str) -> SplitResult | None:
    parts = urlsplit(url)
    try:
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def _database(parts: SplitResult) -> int | None:
    stated = parse_qs(parts.query).get("db", [parts.path.strip("/") if parts.scheme != "unix" else ""])[0]
    try:
        return int(stated or "0")
    except ValueError:
        return None


# At the end of the module, because its construction calls the checks.
DEFAULT_REDIS: Final = RedisAccess()
