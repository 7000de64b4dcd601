"""The settings by which Redis is reached: one server, a master behind sentinels, or a cluster; its users and TLS.

Contradictory settings are refused by name; none is silently ignored.
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

DEFAULT_REDIS_URL: Final = "redis://127.0.0.1:6379/0"

_TLS_SCHEME: Final = "rediss"
_SCHEMES: Final = ("redis", _TLS_SCHEME, "unix")
# Other options of the client could, for instance, disable the verification of certificates.
_OPTIONS: Final = {"db"}
_ONLY_TLS: Final = "given only with a rediss:// URL"
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
        _check_url(self)
        _check_tls(self)
        _check_sentinels(self)
        _check_cluster(self)

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


def _check_url(access: RedisAccess) -> None:
    must = "a redis://, rediss:// or unix:// URL, without options other than db"
    parts = _split(access.url)
    if parts is None or parts.scheme not in _SCHEMES or parts.fragment or set(parse_qs(parts.query)) - _OPTIONS:
        raise RedisAccessError("redis_url", must)
    if parts.scheme == "unix" and not parts.path:
        raise RedisAccessError("redis_url", must)
    if _database(parts) is None:
        raise RedisAccessError("redis_url", f"{must}; a database is a whole number")
    if access.user is not None and parts.username:
        raise RedisAccessError("redis_user", "given once, in the URL or here")
    if access.password is not None and parts.password:
        raise RedisAccessError("redis_password", "given once, in the URL or here")
    if access.user is not None and not (access.password or parts.password):
        raise RedisAccessError("redis_password", "given with redis_user")


def _check_tls(access: RedisAccess) -> None:
    files = {
        "redis_ca_file": access.ca_file,
        "redis_certificate_file": access.certificate_file,
        "redis_key_file": access.key_file,
    }
    if not access.with_tls:
        for name, path in files.items():
            if path is not None:
                raise RedisAccessError(name, _ONLY_TLS)
    if access.certificate_file is None and access.key_file is not None:
        raise RedisAccessError("redis_certificate_file", "given with redis_key_file")
    if access.key_file is None and access.certificate_file is not None:
        raise RedisAccessError("redis_key_file", "given with redis_certificate_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if access.ca_file is not None:
            context.load_verify_locations(access.ca_file)
    except OSError as error:
        raise RedisAccessError("redis_ca_file", "a readable file of PEM certificates") from error
    try:
        if access.certificate_file is not None and access.key_file is not None:
            # With no password given, OpenSSL would ask for a pass phrase at the terminal.
            context.load_cert_chain(access.certificate_file, access.key_file, password="")
    except OSError as error:
        raise RedisAccessError(
            "redis_certificate_file", "a readable PEM certificate, and redis_key_file its key"
        ) from error


def _check_sentinels(access: RedisAccess) -> None:
    if access.sentinels:
        if _unix(access) or not all(map(address_of, access.sentinels)):
            raise RedisAccessError("redis_sentinels", _ADDRESSES.format(port=26379))
        if not access.sentinel_name:
            raise RedisAccessError("redis_sentinel_name", "what the sentinels call the master, given with them")
        if access.sentinel_user and not access.sentinel_password:
            raise RedisAccessError("redis_sentinel_password", "given with redis_sentinel_user")
        return
    stated = {
        "redis_sentinel_name": access.sentinel_name,
        "redis_sentinel_user": access.sentinel_user,
        "redis_sentinel_password": access.sentinel_password,
    }
    for name, text in stated.items():
        if text is not None:
            raise RedisAccessError(name, "given only with redis_sentinels")


def _check_cluster(access: RedisAccess) -> None:
    if not access.cluster_nodes:
        return
    if _unix(access) or not all(map(address_of, access.cluster_nodes)):
        raise RedisAccessError("redis_cluster_nodes", _ADDRESSES.format(port=6379))
    if access.sentinels:
        raise RedisAccessError("redis_cluster_nodes", "given without redis_sentinels")
    parts = urlsplit(access.url)
    if _database(parts):
        raise RedisAccessError("redis_url", "without a database other than 0: a cluster has no other")


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


def _unix(access: RedisAccess) -> bool:
    return urlsplit(access.url).scheme == "unix"


# At the end of the module, because its construction calls the checks.
DEFAULT_REDIS: Final = RedisAccess()
