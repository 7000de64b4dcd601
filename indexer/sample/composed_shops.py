"""Most shops of the sample: names composed of two lists of words per language, so that many share a prefix.

The domain, countries, categories and aliases of a shop are random, and depend on its name only.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from indexer.sample.categories import COMMON
from indexer.sample.seeded_random import seeded_random

_PER_LANGUAGE: Final = 19
_UNDECOMPOSED: Final = str.maketrans({"ß": "ss", "ı": "i", "ł": "l", "ø": "o", "æ": "ae", "'": "", "’": ""})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True, slots=True)
class Outline:
    """A shop before its random fields are added; the domain may be Unicode, the categories are slugs."""

    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    checkout_hosts: tuple[str, ...] = ()
    visibility: str = "public"


@dataclass(frozen=True, slots=True)
class _Language:
    pattern: str
    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    homes: tuple[str, ...]
    company: str

    def names(self) -> list[str]:
        pairs = [self.pattern.format(first=a, second=b) for a, b in product(self.firsts, self.seconds)]
        return seeded_random("names", self.pattern, self.company).sample(pairs, _PER_LANGUAGE)


def _language(pattern: str, firsts: str, seconds: str, homes: str, company: str) -> _Language:
    return _Language(pattern, tuple(firsts.split("/")), tuple(seconds.split("/")), tuple(homes.split()), company)


_LANGUAGES: Final = (
    _language(
        "{first}{second}",
        "Distel/Erlen/Mohn/Hasel/Schlehen/Farn/Quitten/Eiben/Holunder/Ginster/Mühl/Küsten",
        "kontor/lager/stube/truhe/kammer/scheune/regal/körbchen",
        "DE AT CH LU",
        "GmbH",
    ),
    _language(
        "{first} & {second}",
        "Thistle/Copper/Heron/Saddler/Marrow/Tallow/Juniper/Wicket/Cobbler/Otter/Plover",
        "Quill/Spoke/Lantern/Barrow/Thimble/Anvil/Kettle/Button/Ledger/Rudder",
        "GB US IE CA AU NZ ZA",
        "Ltd",
    ),
    _language(
        "{first} {second}",
        "Maison/Atelier/Comptoir/L’Échoppe/La Fabrique",
        "de l'Églantine/du Hérisson/des Fougères/à Plumes/du Cerfeuil/de la Bécassine/d’Ambrelle/du Pré-Vert",
        "FR BE CH LU CA",
        "SARL",
    ),
    _language(
        "{first} {second}",
        "Casa/Tienda/Rincón/Bazar/Almacén",
        "Azulejo/Golondrina/del Níspero/Piñón/Lucerín/Caracola/Cigüeña/Romerillo",
        "ES MX AR CL CO PE",
        "S.L.",
    ),
    _language(
        "{first} {second}",
        "Bottega/Emporio/Mercato/Officina/Credenza",
        "del Corbezzolo/Girasole Blu/Ginepraia/della Civetta/Nocciolina/Lupinella/dell'Aquilone/Più",
        "IT CH SM MT",
        "S.r.l.",
    ),
    _language(
        "{first}{second}",
        "Björk/Häger/Strå/Lärk/Ljung/Röd/Sjö/Mård/Svale",
        "boden/hyllan/lådan/skåpet/korgen/kroken",
        "SE DK NO FI IS",
        "AB",
    ),
    _language(
        "{first} {second}",
        "Sklep/Kram/Skład/Spiżarnia/Chatka",
        "pod Jarzębiną/Źrebak/Kądziel/Srebrna Sowa/Świerszcz/Wrzosowisko/Ćma/u Łucji",
        "PL CZ SK LT",
        "sp. z o.o.",
    ),
    _language(
        "{first} {second}",
        "İğde/Çınar/Gümüş/Şimşir/Kırlangıç/Üvez/Ihlamur",
        "Çarşısı/Dükkânı/Köşkü/Pazarı/Odası",
        "TR XK AZ CY",
        "A.Ş.",
    ),
)


def composed() -> Iterator[Outline]:
    """All composed shops, language by language, each with its own domain."""
    for language in _LANGUAGES:
        for name in language.names():
            yield _outline(name, language)


def _outline(name: str, language: _Language) -> Outline:
    rng = seeded_random("outline", name)
    slug = _slug(name, german=language.company == "GmbH")
    return Outline(
        name=name,
        domain=_domain(name, slug),
        categories=tuple(rng.sample(COMMON, rng.choice((1, 1, 1, 2, 2, 3, 4)))),
        countries=_countries(name, language.homes),
        aliases=_aliases(name, slug, language.company),
        checkout_hosts=(f"{slug}.tillpost.internal",) if rng.random() < 0.12 else (),  # noqa: PLR2004  a share
    )


def _domain(name: str, slug: str) -> str:
    rng = seeded_random("domain", name)
    unrelated = "".join(rng.choice(("qui", "vo", "tre", "pla", "zin", "mo", "ka", "lu")) for _ in range(3))
    label, prefix = rng.choices(
        (
            (slug, ""),
            (slug.replace("-", ""), ""),
            (slug, rng.choice(("shop.", "store.", "online."))),
            (f"{unrelated}{rng.randint(2, 99)}", ""),
            ("-".join(name.lower().replace("'", "").replace("’", "").replace("&", " ").split()), ""),
        ),
        weights=(38, 30, 16, 10, 6),
    )[0]
    return f"{prefix}{label}.internal"


def _countries(name: str, homes: tuple[str, ...]) -> tuple[str, ...]:
    rng = seeded_random("countries", name)
    kind = rng.choices(("stated", "world", "unstated"), weights=(84, 8, 8))[0]
    if kind == "stated":
        return homes[: rng.choice((1, 1, 1, 2, 2, 3, 4, 5))]
    return ("WORLDWIDE",) if kind == "world" else ()


def _aliases(name: str, slug: str, company: str) -> tuple[str, ...]:
    rng = seeded_random("aliases", name)
    words = slug.split("-")
    short = "".join(word[:3].title() for word in words)
    known_as = [f"{name} {company}", " ".join(words).title(), short, f"formerly {words[-1].title()} & Kin"]
    others = [alias for alias in known_as if alias != name]
    return tuple(rng.sample(others, rng.choice((0, 0, 0, 0, 0, 1, 2))))


def _slug(name: str, *, german: bool) -> str:
    lowered = name.lower().translate(_UMLAUTS) if german else name.lower()
    plain = unicodedata.normalize("NFKD", lowered.translate(_UNDECOMPOSED))
    letters = "".join(c if c.isascii() and c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return "-".join(letters.split())
