"""The bulk of the sample: names put together from two lists of words per language, so that many share a beginning.

What a name becomes (domain, countries, categories, aliases) hangs on chance of that name alone.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from indexer.sample.categories import COMMON
from indexer.sample.chance import chance

_PER_TONGUE: Final = 19
_UNDECOMPOSED: Final = str.maketrans({"ß": "ss", "ı": "i", "ł": "l", "ø": "o", "æ": "ae", "'": "", "’": ""})
_UMLAUTS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True, slots=True)
class Outline:
    """A shop before chance has filled in the rest; the domain may be Unicode, the categories are slugs."""

    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    checkout_hosts: tuple[str, ...] = ()
    visibility: str = "public"


@dataclass(frozen=True, slots=True)
class _Tongue:
    pattern: str
    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    homes: tuple[str, ...]
    company: str

    def names(self) -> list[str]:
        pairs = [self.pattern.format(first=a, second=b) for a, b in product(self.firsts, self.seconds)]
        return chance("names", self.pattern, self.company).sample(pairs, _PER_TONGUE)


def _tongue(pattern: str, firsts: str, seconds: str, homes: str, company: str) -> _Tongue:
    return _Tongue(pattern, tuple(firsts.split("/")), tuple(seconds.split("/")), tuple(homes.split()), company)


_TONGUES: Final = (
    _tongue(
        "{first}{second}",
        "Distel/Erlen/Mohn/Hasel/Schlehen/Farn/Quitten/Eiben/Holunder/Ginster/Mühl/Küsten",
        "kontor/lager/stube/truhe/kammer/scheune/regal/körbchen",
        "DE AT CH LU",
        "GmbH",
    ),
    _tongue(
        "{first} & {second}",
        "Thistle/Copper/Heron/Saddler/Marrow/Tallow/Juniper/Wicket/Cobbler/Otter/Plover",
        "Quill/Spoke/Lantern/Barrow/Thimble/Anvil/Kettle/Button/Ledger/Rudder",
        "GB US IE CA AU NZ ZA",
        "Ltd",
    ),
    _tongue(
        "{first} {second}",
        "Maison/Atelier/Comptoir/L’Échoppe/La Fabrique",
        "de l'Églantine/du Hérisson/des Fougères/à Plumes/du Cerfeuil/de la Bécassine/d’Ambrelle/du Pré-Vert",
        "FR BE CH LU CA",
        "SARL",
    ),
    _tongue(
        "{first} {second}",
        "Casa/Tienda/Rincón/Bazar/Almacén",
        "Azulejo/Golondrina/del Níspero/Piñón/Lucerín/Caracola/Cigüeña/Romerillo",
        "ES MX AR CL CO PE",
        "S.L.",
    ),
    _tongue(
        "{first} {second}",
        "Bottega/Emporio/Mercato/Officina/Credenza",
        "del Corbezzolo/Girasole Blu/Ginepraia/della Civetta/Nocciolina/Lupinella/dell'Aquilone/Più",
        "IT CH SM MT",
        "S.r.l.",
    ),
    _tongue(
        "{first}{second}",
        "Björk/Häger/Strå/Lärk/Ljung/Röd/Sjö/Mård/Svale",
        "boden/hyllan/lådan/skåpet/korgen/kroken",
        "SE DK NO FI IS",
        "AB",
    ),
    _tongue(
        "{first} {second}",
        "Sklep/Kram/Skład/Spiżarnia/Chatka",
        "pod Jarzębiną/Źrebak/Kądziel/Srebrna Sowa/Świerszcz/Wrzosowisko/Ćma/u Łucji",
        "PL CZ SK LT",
        "sp. z o.o.",
    ),
    _tongue(
        "{first} {second}",
        "İğde/Çınar/Gümüş/Şimşir/Kırlangıç/Üvez/Ihlamur",
        "Çarşısı/Dükkânı/Köşkü/Pazarı/Odası",
        "TR XK AZ CY",
        "A.Ş.",
    ),
)


def composed() -> Iterator[Outline]:
    """All composed shops, tongue by tongue, each with a domain of its own."""
    for tongue in _TONGUES:
        for name in tongue.names():
            yield _outline(name, tongue)


def _outline(name: str, tongue: _Tongue) -> Outline:
    luck = chance("outline", name)
    slug = _slug(name, german=tongue.company == "GmbH")
    return Outline(
        name=name,
        domain=_domain(name, slug),
        categories=tuple(luck.sample(COMMON, luck.choice((1, 1, 1, 2, 2, 3, 4)))),
        countries=_countries(name, tongue.homes),
        aliases=_aliases(name, slug, tongue.company),
        checkout_hosts=(f"{slug}.tillpost.internal",) if luck.random() < 0.12 else (),  # noqa: PLR2004  a share
    )


def _domain(name: str, slug: str) -> str:
    luck = chance("domain", name)
    unrelated = "".join(luck.choice(("qui", "vo", "tre", "pla", "zin", "mo", "ka", "lu")) for _ in range(3))
    label, prefix = luck.choices(
        (
            (slug, ""),
            (slug.replace("-", ""), ""),
            (slug, luck.choice(("shop.", "store.", "online."))),
            (f"{unrelated}{luck.randint(2, 99)}", ""),
            ("-".join(name.lower().replace("'", "").replace("’", "").replace("&", " ").split()), ""),
        ),
        weights=(38, 30, 16, 10, 6),
    )[0]
    return f"{prefix}{label}.internal"


def _countries(name: str, homes: tuple[str, ...]) -> tuple[str, ...]:
    luck = chance("countries", name)
    kind = luck.choices(("stated", "world", "unstated"), weights=(84, 8, 8))[0]
    if kind == "stated":
        return homes[: luck.choice((1, 1, 1, 2, 2, 3, 4, 5))]
    return ("WORLDWIDE",) if kind == "world" else ()


def _aliases(name: str, slug: str, company: str) -> tuple[str, ...]:
    luck = chance("aliases", name)
    words = slug.split("-")
    short = "".join(word[:3].title() for word in words)
    known_as = [f"{name} {company}", " ".join(words).title(), short, f"formerly {words[-1].title()} & Kin"]
    others = [alias for alias in known_as if alias != name]
    return tuple(luck.sample(others, luck.choice((0, 0, 0, 0, 0, 1, 2))))


def _slug(name: str, *, german: bool) -> str:
    lowered = name.lower().translate(_UMLAUTS) if german else name.lower()
    plain = unicodedata.normalize("NFKD", lowered.translate(_UNDECOMPOSED))
    letters = "".join(c if c.isascii() and c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return "-".join(letters.split())
