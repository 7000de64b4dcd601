"""Decides which URLs of a catalogue may be published: checkout URLs of offers (A10) and logos of shops (F21).

A catalogue may be hostile: credentials, IP addresses in any notation, look-alike hosts and templates that lead to other
sites are rejected. No URL is fetched.
"""

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import quote, unquote

from ada_url import URL, HostType

from index_mappings.hosts import domain_parts

PLACEHOLDER: Final = "{url}"

# URL parsers drop or repair these characters, each in its own way.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\x9f\\\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_AUTHORITY: Final = re.compile(r"^https://[^/?#@]+(?:[/?#]|$)", re.IGNORECASE)
_NAMES: Final = re.compile(r"^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$")


def url_of_shop(url: str | None, shop_domain: str, hosts: Collection[str]) -> str | None:
    """The URL in canonical form, if it leads by https to the shop or to one of these hosts; None otherwise.

    Domain and hosts are reduced; the hosts are those that are listed for the purpose besides the shop's own.
    """
    parsed = safe_url(url) if url else None
    if parsed is None:
        return None
    host = parsed.hostname
    allowed = (
        host in (shop_domain, *hosts)
        or _is_below(host, shop_domain)
        or any(host == f"www.{listed}" and _is_below(host, listed) for listed in hosts)
    )
    return parsed.href if allowed else None


def affiliate_url(template: str, network_hosts: Collection[str], url: str) -> str | None:
    """The network's URL for a valid checkout URL, which is percent-encoded once; None if the result is not safe."""
    built = safe_url(template.replace(PLACEHOLDER, quote(url, safe="")))
    return built.href if built is not None and _is_network(built, network_hosts) else None


def template_fault(template: str, network_hosts: Collection[str] | None) -> str | None:
    """What is wrong with a programme's template; None when nothing is.

    Without `network_hosts`, as they are wrong themselves, its host is not compared.
    """
    if template.count(PLACEHOLDER) != 1:
        return f"must hold {PLACEHOLDER} exactly once"
    before = template.partition(PLACEHOLDER)[0]
    if not re.fullmatch(r"https://[^/?#]+[/?][^#]*", before):
        return f"must be an https URL with {PLACEHOLDER} in its path or query"
    remainder = _decoded(template.removeprefix("https://").replace(PLACEHOLDER, ""))
    if "//" in remainder or ":" in remainder or "\\" in remainder:
        return "must lead to no other URL than the offer's"
    built = safe_url(template.replace(PLACEHOLDER, "x"))
    if built is None or (network_hosts is not None and not _is_network(built, network_hosts)):
        return "must be an https URL on one of network_hosts, without credentials or a port"
    return None


def _is_below(host: str, parent: str) -> bool:
    """Whether a host is a sub-domain with the registrable domain of its parent.

    Each name directly below a public suffix (`co.uk`, `myshopify.com`) may have a different owner.
    """
    return host.endswith(f".{parent}") and domain_parts(host).registrable == domain_parts(parent).registrable


def _decoded(text: str) -> str:
    """Percent-decoded until nothing changes, as it is unknown how often the network decodes."""
    while (once := unquote(text)) != text:
        text = once
    return text


def _is_network(url: URL, network_hosts: Collection[str]) -> bool:
    return url.hostname in network_hosts or url.hostname.removeprefix("www.") in network_hosts


def safe_url(text: str) -> URL | None:
    """The URL as browsers parse it (WHATWG), if it is https, to a named host, without credentials or port."""
    if _FORBIDDEN.search(text) or _AUTHORITY.match(text) is None:
        return None
    try:
        url = URL(text)
    except ValueError:
        return None
    plain = url.protocol == "https:" and not url.username and not url.password and not url.port
    named = url.host_type == HostType.DEFAULT and _NAMES.fullmatch(url.hostname) is not None
    return url if plain and named else None
