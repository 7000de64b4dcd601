"""Reduces pasted hosts to one form (R1), and splits domains by a bundled public suffix list (X2)."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import idna
from publicsuffixlist import PublicSuffixList

from index_mappings.countries import COUNTRY_CODES

MAX_REFERENCE: Final = 2_048
MAX_HOST: Final = 253
# A-labels have more characters than the labels that they encode.
_MAX_LABEL: Final = 63

_DOTS: Final = re.compile("[.。．｡]")
# What is not seen of pasted text: marks of direction, as around links in right-to-left text, joiners, byte order marks.
INVISIBLE: Final = "".join(
    map(chr, (0x061C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF))
)
# What pasting brings along at both ends: brackets, quotation marks, commas, and the text of a Markdown link before it.
_AROUND: Final = "<>()[]\"',;" + INVISIBLE + "".join(char for char in map(chr, range(0x3001)) if char.isspace())
_MARKDOWN: Final = re.compile(rf"[{re.escape(_AROUND)}]*\[[^\[\]]*\]\(")
_SCHEME: Final = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//")
_AFTER_AUTHORITY: Final = re.compile(r"[/\\?#]")
_PORT: Final = re.compile(r":\d*$")
_SUFFIXES: Final = PublicSuffixList(accept_unknown=True, only_icann=False)
# The only country whose top-level domain is not its ISO code.
_UNITED_KINGDOM: Final = {"UK": "GB"}
# Top-level domains that are sold world-wide for their spelling: they state no country, except below `co` and `com`.
_GENERIC: Final = frozenset((
    "AC", "AD", "AG", "AI", "AM", "AS", "BZ", "CC", "CD", "CO", "DJ", "FM", "GG", "IO",
    "LA", "LY", "ME", "MS", "NU", "SC", "SH", "SR", "TK", "TO", "TV", "VC", "WS",
))  # fmt: skip
_COMMERCIAL: Final = frozenset(("co", "com"))


@dataclass(frozen=True, slots=True)
class DomainParts:
    """A domain split at its public suffix: the labels left of it, the last one of these, and that with the suffix.

    A domain that is itself a suffix has its first label as label and main label, and is registrable as a whole.
    """

    labels: tuple[str, ...]
    main_label: str
    registrable: str

    @property
    def joined_label(self) -> str:
        """The main label without its hyphens, in Unicode, for comparing two shops (A12)."""
        return unicode_host(self.main_label).replace("-", "")


def has_dot(text: str) -> bool:
    """Whether the text has a dot in any form of UTS 46; a reference without one is a shop id (R1)."""
    return _DOTS.search(text) is not None


def without_scheme(text: str) -> str:
    """The text without white space around it and without a scheme that ends with ``//``, such as ``https://``."""
    return _SCHEME.sub("", text.strip()) if "//" in text else text


def reduce_host(text: str) -> str | None:
    """Reduce a pasted domain, URL or mail address to its host in A-labels and lower case (R1).

    Punctuation around it, the text of a Markdown link, scheme, credentials, port, path, ``www.`` and a trailing dot are
    removed. None if it is empty or longer than 253 characters. A host that the IDNA rules reject is only lower-cased.
    """
    link = _MARKDOWN.match(text)
    bare = text[link.end() if link else 0 :].lstrip(_AROUND).rstrip(_AROUND + ".")
    authority = _AFTER_AUTHORITY.split(_SCHEME.sub("", bare), maxsplit=1)[0]
    host = _DOTS.sub(".", _PORT.sub("", authority.rpartition("@")[2].strip())).lower().rstrip(".")
    host = host if host.isascii() and "xn--" not in host else _encode(host)
    # Repeated, so that reducing is idempotent: a host from an answer must be found unchanged.
    while host.startswith("www."):
        host = host.removeprefix("www.")
    return host if 0 < len(host) <= MAX_HOST else None


@lru_cache(maxsize=4_096)
def unicode_host(host: str) -> str:
    """The host with its A-labels in Unicode; a label that IDNA rejects is unchanged."""
    if "xn--" not in host:
        return host
    return ".".join(_decode(label) for label in host.split("."))


@lru_cache(maxsize=4_096)
def domain_parts(host: str) -> DomainParts:
    """Split a reduced host at its public suffix, private rules included; an unlisted last label is a suffix."""
    registrable = _SUFFIXES.privatesuffix(host)
    if not registrable:
        first = host.split(".", maxsplit=1)[0]
        return DomainParts(labels=(first,), main_label=first, registrable=host)
    suffix_labels = registrable.count(".")
    labels = tuple(host.split("."))[:-suffix_labels] if suffix_labels else (host,)
    return DomainParts(labels=labels, main_label=labels[-1], registrable=registrable)


def country_of(host: str) -> str | None:
    """The ISO code of a host's top-level domain; None without one, and in other scripts, which no library maps."""
    *others, last = host.split(".")
    code = _UNITED_KINGDOM.get(last.upper(), last.upper())
    if code not in COUNTRY_CODES or (code in _GENERIC and not _COMMERCIAL.intersection(others[1:][-1:])):
        return None
    return code


def _encode(host: str) -> str:
    try:
        mapped = idna.uts46_remap(host, std3_rules=False)
        if any(len(label) > _MAX_LABEL for label in mapped.split(".")):
            return host  # it would be rejected after all, and the time of encoding grows with the square of the length
        return idna.encode(mapped).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        return host


def _decode(label: str) -> str:
    try:
        return idna.decode(label)
    except (idna.IDNAError, UnicodeError):
        return label
