"""Hosts as people paste them, reduced to one form, and the parts of a domain that a name can hide in (R1, X2).

The public suffix list is the library's bundled copy: nothing is downloaded at run time.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import idna
from publicsuffixlist import PublicSuffixList

from index_mappings.countries import COUNTRY_CODES

MAX_REFERENCE: Final = 2_048
MAX_HOST: Final = 253

_DOTS: Final = re.compile("[.。．｡]")
_SCHEME: Final = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//")
_AFTER_AUTHORITY: Final = re.compile(r"[/\\?#]")
_PORT: Final = re.compile(r":\d*$")
_SUFFIXES: Final = PublicSuffixList(accept_unknown=True, only_icann=False)
# Top-level domains of countries are their ISO codes, but for this one.
_UNITED_KINGDOM: Final = {"UK": "GB"}
# Sold to the world for what they spell: whoever has one says no country by it, unless it is the second level for trade.
_WORLDLY: Final = frozenset((
    "AC", "AD", "AG", "AI", "AM", "AS", "BZ", "CC", "CD", "CO", "DJ", "FM", "GG", "IO",
    "LA", "LY", "ME", "MS", "NU", "SC", "SH", "SR", "TK", "TO", "TV", "VC", "WS",
))  # fmt: skip
_FOR_TRADE: Final = frozenset(("co", "com"))


@dataclass(frozen=True, slots=True)
class DomainParts:
    """A domain taken apart at its public suffix.

    Attributes:
        labels: the labels left of the public suffix, in order; the first label where the domain is itself a suffix.
        main_label: the label before the public suffix.
        registrable: main label and public suffix; the whole domain where it is itself a suffix.
    """

    labels: tuple[str, ...]
    main_label: str
    registrable: str

    @property
    def without_suffix(self) -> str:
        """The labels left of the public suffix, joined by dots."""
        return ".".join(self.labels)


def has_dot(text: str) -> bool:
    """Whether the text holds a dot in any form that UTS 46 reads as one; without, it is a shop id (R1)."""
    return _DOTS.search(text) is not None


def reduce_host(text: str) -> str | None:
    """Reduce a pasted domain, URL or mail address to its host in A-labels (R1).

    Args:
        text: as pasted; scheme, credentials, port, path, ``www.`` and a trailing dot go.

    Returns:
        The host in lower case, or None when nothing is left or it is longer than a host can be (253 characters). A
        host that the IDNA rules refuse is only lower-cased.
    """
    authority = _AFTER_AUTHORITY.split(_SCHEME.sub("", text.strip()), maxsplit=1)[0]
    host = _DOTS.sub(".", _PORT.sub("", authority.rpartition("@")[2].strip())).lower().rstrip(".")
    host = host if _plain(host) else _encode(host)
    # All of them: a host that an answer showed must stay as it is when it is asked for.
    while host.startswith("www."):
        host = host.removeprefix("www.")
    return host if 0 < len(host) <= MAX_HOST else None


@lru_cache(maxsize=4_096)
def unicode_host(host: str) -> str:
    """The host with its A-labels in Unicode; a label that IDNA refuses stays as it is."""
    if "xn--" not in host:
        return host
    return ".".join(_decode(label) for label in host.split("."))


@lru_cache(maxsize=4_096)
def domain_parts(host: str) -> DomainParts:
    """Take a reduced host apart at its public suffix, private rules included; an unlisted last label is a suffix."""
    registrable = _SUFFIXES.privatesuffix(host)
    if not registrable:
        first = host.split(".", maxsplit=1)[0]
        return DomainParts(labels=(first,), main_label=first, registrable=host)
    suffix_labels = registrable.count(".")
    labels = tuple(host.split("."))[:-suffix_labels] if suffix_labels else (host,)
    return DomainParts(labels=labels, main_label=labels[-1], registrable=registrable)


def country_of(host: str) -> str | None:
    """The country under whose top-level domain a reduced host is: an ISO code, or None.

    Top-level domains in other scripts than Latin say none, as nothing that we use maps them.
    """
    *others, last = host.split(".")
    code = _UNITED_KINGDOM.get(last.upper(), last.upper())
    if code not in COUNTRY_CODES or (code in _WORLDLY and not _FOR_TRADE.intersection(others[1:][-1:])):
        return None
    return code


def _plain(host: str) -> bool:
    return host.isascii() and "xn--" not in host


def _encode(host: str) -> str:
    try:
        return idna.encode(host, uts46=True, transitional=False).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        return host


def _decode(label: str) -> str:
    try:
        return idna.decode(label)
    except (idna.IDNAError, UnicodeError):
        return label
