"""The caller of a call; address and country are read from headers of trusted proxies only (Q3, A5).

A client can send any header. So the configured header is read from its right end, where the nearest proxy appended to
it, and only while each hop is a trusted proxy. Reading never raises: where a header can't be read, the address is the
peer's own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

from index_mappings.countries import COUNTRY_CODES

UNKNOWN: Final = "unknown"
UNIX: Final = "unix"

_RawHeaders = Iterable[tuple[bytes, bytes]]
Network = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96
# Longer chains and headers than any real chain of proxies makes.
_MAX_HOPS: Final = 16
_MAX_HEADER: Final = 4096
_MAX_PIECES: Final = 8
_CACHED_PEERS: Final = 10_000

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR: Final = rf'{_NAME}=(?:{_NAME}|"(?:[^"\\]|\\.)*")'
_ELEMENT: Final = re.compile(rf"{_PAIR}(?:[ \t]*;[ \t]*{_PAIR})*;?", re.ASCII)
_PARTS: Final = re.compile(rf'({_NAME})=(?:({_NAME})|"((?:[^"\\]|\\.)*)")', re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)")
_WITH_PORT: Final = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::[0-9]{1,5})?", re.ASCII)


class Channel(StrEnum):
    """The transport of a call."""

    REST = "rest"
    MCP = "mcp"
    STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of one call; trusted proxies report its address (Q3) and country (A5).

    The service makes the request id, never the caller; it is in the log and in the answer (E5).
    """

    channel: Channel
    request_id: str
    token: str | None = field(default=None, repr=False)
    address: str = UNKNOWN
    country: str | None = None


class ForwardingHeader(StrEnum):
    """The header that the trusted proxies write; they may pass others on as a client sent them."""

    X_FORWARDED_FOR = "x-forwarded-for"
    FORWARDED = "forwarded"


class Proxies:
    """The trusted proxies, and the headers in which they write the caller's address and country."""

    def __init__(
        self,
        trusted: Iterable[str] = (),
        header: ForwardingHeader = ForwardingHeader.X_FORWARDED_FOR,
        country_header: str | None = None,
    ) -> None:
        """Trust addresses, networks as address/bits and, with UNIX, peers on Unix sockets; ValueError for others."""
        entries = [text.strip() for text in trusted]
        self.networks = tuple(network_of(text) for text in entries if text != UNIX)
        self.unix = UNIX in entries
        self.header = header
        self.country_header = (country_header or "").strip().lower() or None


class CallOrigin(NamedTuple):
    """The origin of a call.

    The address is an IP address in canonical form, without a zone, IPv4 mapped into IPv6 as IPv4; or UNKNOWN. The
    country is an assigned ISO 3166-1 alpha-2 code or XK, in capitals; None when no trusted proxy reports it.
    """

    address: str
    country: str | None


def origin_of(peer: str | None, headers: _RawHeaders, trusted: Proxies) -> CallOrigin:
    """The origin of a call; never raises. `peer` is None or blank for a Unix socket; header names are in lower case."""
    address, own = _address_of_peer(peer) if peer else (None, UNKNOWN)
    if not (_is_trusted(address, trusted) if peer else trusted.unix):
        return CallOrigin(own, None)
    headers = tuple(headers)
    return CallOrigin(_forwarded(headers, trusted) or own, _country(headers, trusted))


def is_trusted_peer(peer: str, trusted: Proxies) -> bool:
    """Whether the address at the other end of a connection is that of a trusted proxy."""
    return _is_trusted(_address_of_peer(peer)[0], trusted)


def is_loopback(host: str) -> bool:
    """Whether a name or an address reaches this machine only; any name but localhost may resolve to another one."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def names_loopback(host: str) -> bool:
    """Whether a value of Host, with or without a port, is a loopback address or localhost."""
    return is_loopback(_host(host) or "")


def _forwarded(headers: _RawHeaders, trusted: Proxies) -> str | None:
    """The right-most address that is not a trusted proxy, else the left-most one; None when it can't be read."""
    whole = ",".join(_values(headers, trusted.header.value))
    found: str | None = None
    for number, hop in enumerate(_hops(whole[-_MAX_HEADER:], trusted.header)):
        address = None if hop is None or number == _MAX_HOPS else _address(hop)
        if address is None:
            return None
        found = str(address)
        if not _is_trusted(address, trusted):
            break
    return found


def _hops(whole: str, header: ForwardingHeader) -> Iterator[str | None]:
    """The hops from the right; None for one that can't be read."""
    if not whole.strip():
        return
    if header is ForwardingHeader.X_FORWARDED_FOR:
        for text in reversed(whole.split(",")):
            yield _host(text.strip())
        return
    pieces = whole.split(",")
    while pieces:
        element = _last_element(pieces)
        yield None if element is None else _for(element)
        if element is None:
            return


def _last_element(pieces: list[str]) -> str | None:
    """Remove the last element from the pieces between commas; quoted text may contain commas, too.

    Parsed from the left, an unpaired quotation mark of a client would hide the address that the proxy appended.
    """
    joined: list[str] = []
    while pieces and len(joined) < _MAX_PIECES:
        joined.insert(0, pieces.pop())
        element = ",".join(joined).strip(" \t")
        if _ELEMENT.fullmatch(element):
            return element
    return None


def _for(element: str) -> str | None:
    nodes = [
        token or _ESCAPED.sub(r"\1", quoted) for name, token, quoted in _PARTS.findall(element) if name.lower() == "for"
    ]
    return _host(nodes[0]) if len(nodes) == 1 else None


def _host(node: str) -> str | None:
    """The host of a node with or without a port and brackets; None when it is malformed."""
    if node.count(":") > 1 and not node.startswith("["):
        return node
    parts = _WITH_PORT.fullmatch(node)
    return (parts[1] or parts[2]) if parts else None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    # Without its zone, which is meaningful on the proxy's machine only.
    return address.ipv4_mapped or IPv6Address(int(address))


# Texts of peers come from the system: those of clients are never cached.
@lru_cache(_CACHED_PEERS)
def _address_of_peer(peer: str) -> tuple[IPv4Address | IPv6Address | None, str]:
    address = _address(peer)
    return address, UNKNOWN if address is None else str(address)


def _is_trusted(address: IPv4Address | IPv6Address | None, trusted: Proxies) -> bool:
    return bool(trusted.networks) and address is not None and any(address in network for network in trusted.networks)


def _country(headers: _RawHeaders, trusted: Proxies) -> str | None:
    if trusted.country_header is None:
        return None
    values = _values(headers, trusted.country_header)
    code = values[0].strip(" \t").upper() if len(values) == 1 else ""
    return code if code in COUNTRY_CODES else None


def _values(headers: _RawHeaders, name: str) -> list[str]:
    wanted = name.encode("latin-1", "replace")
    return [value.decode("latin-1") for key, value in headers if key == wanted]


def network_of(text: str) -> Network:
    """The network of an address or of address/bits, an IPv4 one also if mapped into IPv6; ValueError if it is none."""
    network = ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None or network.prefixlen < _MAPPED_BITS:
        return network
    return IPv4Network((int(mapped), network.prefixlen - _MAPPED_BITS))
