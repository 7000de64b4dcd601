"""Makes shops of brands: one for each registrable domain, with nothing that the package does not state.

A brand's domain is the official site that has its name, or else the first one. Its further sites under a country's
top-level domain with the same main label are separate shops (`ikea.com`, `ikea.cn`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from rapidfuzz.fuzz import ratio

from index_mappings.countries import COUNTRY_CODES, GROUPS, WORLDWIDE
from index_mappings.hosts import MAX_REFERENCE, DomainParts, country_of, domain_parts, reduce_host
from index_mappings.text import words_of
from indexer.catalogue.open_data.package import NAME, Brand, OpenData
from indexer.records.faults import RefusedRecordError
from indexer.records.shop import ShopRecord, validated

_WORLD: Final = "001"
_ENTRY: Final = "brand:wikidata"
_SITE: Final = "website"
# Kinds of shops outside the key `shop`.
_ELSEWHERE: Final = {"amenity/pharmacy": "pharmacy"}
_SHOP: Final = "shop/"
# Official sites on these are pages of a network or a platform, which has many brands.
PLATFORMS: Final = frozenset((
    "archive.org", "facebook.com", "fb.com", "google.com", "instagram.com", "line.me", "linkedin.com", "linktr.ee",
    "ok.ru", "pinterest.com", "t.me", "telegram.me", "tiktok.com", "twitter.com", "vk.com", "weibo.com", "whatsapp.com",
    "wikipedia.org", "x.com", "youtube.com",
))  # fmt: skip
# What country-coder, by which the package writes areas, calls them beyond the codes of ISO 3166-1.
_AREAS: Final = {"fx": "FR"}
_NAMES: Final = re.compile(r"^(?:(?:alt_|official_|short_)?name|brand)(?::(?:short|[a-z]{2,3}(?:-[A-Za-z]+)*))?$")
_MOST_ALIASES: Final = 50
_MOST_CATEGORIES: Final = 20


class LeftOut(NamedTuple):
    """A brand without a shop, because another brand's shop has the registrable domain of its site."""

    id: str
    name: str
    domain: str
    shop: str


@dataclass(slots=True)
class Converted:
    """The shops, and the numbers of brands and sites that are none by reason; `services` are those by kind.

    `joined` counts the brands that are a shop together with another one, `national` the shops of national sites.
    """

    shops: list[ShopRecord] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    services: Counter[str] = field(default_factory=Counter)
    sharing: list[LeftOut] = field(default_factory=list)
    joined: int = 0
    national: int = 0
    without_country: int = 0


@dataclass(frozen=True, slots=True)
class _Business:
    """The brands of one Wikidata id, or a single brand; `id` is that of the one that is called like a site."""

    id: str
    entry: str | None
    names: tuple[str, ...]
    categories: tuple[str, ...]
    countries: frozenset[str]
    sites: tuple[str, ...]
    brands: int

    @property
    def joined_names(self) -> frozenset[str]:
        return frozenset(map(_joined, self.names))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What may have a registrable domain, by one of its sites. `country` is that of a national site."""

    business: _Business
    host: str
    parts: DomainParts
    countries: frozenset[str]
    country: str | None = None

    @property
    def likeness(self) -> tuple[bool, bool, float, bool, int]:
        """How much like the domain it is called; the greater is the likelier owner."""
        labels = {_joined(self.parts.joined_label), _joined(self.parts.registrable)}
        names = self.business.joined_names
        return (
            not labels.isdisjoint(names),
            any(label.startswith(name) or name.startswith(label) for label in labels for name in names),
            max(ratio(label, name) for label in labels for name in names),
            self.country is None,
            _markets(self.countries),
        )


def convert(data: OpenData, category_names: Mapping[str, str]) -> Converted:
    """Make the shops of the package, in the order of their ids. `category_names` are the known categories by slug."""
    done = Converted()
    done.left_out.update({f"{tree}, not brands": count for tree, count in data.others.items()})
    by_domain: dict[str, list[_Candidate]] = defaultdict(list)
    for business in _businesses(data, category_names, done):
        for candidate in _candidates(business, done.left_out):
            by_domain[candidate.parts.registrable].append(candidate)
    for candidates in by_domain.values():
        _settle(candidates, data, category_names, done)
    done.shops.sort(key=lambda shop: shop.id)
    return done


def _businesses(data: OpenData, known: Mapping[str, str], done: Converted) -> Iterator[_Business]:
    """The brands that are shops and have a site, those of one Wikidata id together."""
    together: dict[str, list[tuple[Brand, str]]] = defaultdict(list)
    for kind, brands in data.brands.items():
        slug = _ELSEWHERE.get(kind) or kind.removeprefix(_SHOP).replace("_", "-")
        if not kind.startswith(_SHOP) and kind not in _ELSEWHERE:
            done.left_out["not a kind of shop, such as restaurants and banks"] += len(brands)
        elif slug not in known:
            done.services[slug] += len(brands)
        else:
            for brand in brands:
                if brand.id in data.dissolved:
                    done.left_out["dissolved"] += 1
                else:
                    together[brand.tags.get(_SITE) or brand.tags.get(_ENTRY, brand.id)].append((brand, slug))
    for brands_of_one in together.values():
        first, _ = brands_of_one[0]
        own, entry = first.tags.get(_SITE), first.tags.get(_ENTRY)
        stated = (*filter(None, [own]), *data.sites.get(entry or "", ()))
        sites = tuple(host for site in stated if len(site) <= MAX_REFERENCE and (host := reduce_host(site)))
        usable = tuple(dict.fromkeys(host for host in sites if domain_parts(host).registrable not in PLATFORMS))
        if not usable:
            reason = "only a page of a social network or platform" if sites else "no official web site is stated"
            done.left_out[reason] += len(brands_of_one)
            continue
        labels = {_joined(domain_parts(host).joined_label) for host in usable}
        ordered = sorted(brands_of_one, key=lambda one: _is_called(one[0], labels), reverse=True)
        yield _Business(
            id=ordered[0][0].id,
            entry=entry,
            names=tuple(dict.fromkeys(name for brand, _ in ordered for name in _names(brand))),
            categories=tuple(
                dict.fromkeys(each for brand, slug in ordered for each in _categories(brand, slug, known))
            ),
            countries=frozenset[str]().union(*(_countries(brand) for brand, _ in ordered)),
            sites=usable,
            brands=len(ordered),
        )


def _is_called(brand: Brand, labels: AbstractSet[str]) -> tuple[bool, int]:
    """Whether the name of a brand is that of a site, and the number of its markets."""
    return _joined(next(iter(_names(brand)), "")) in labels, _markets(_countries(brand))


def _candidates(business: _Business, left_out: Counter[str]) -> Iterator[_Candidate]:
    """The main site of a business, then its national ones."""
    parts = {host: domain_parts(host) for host in business.sites}
    names = business.joined_names
    called = [host for host in parts if parts[host].registrable == host and _joined(parts[host].joined_label) in names]
    main = min(called, key=lambda host: country_of(host) is not None, default=business.sites[0])
    yield _Candidate(business, main, parts[main], business.countries)
    taken = {parts[main].registrable}
    for host, split in parts.items():
        if split.registrable in taken:
            continue
        taken.add(split.registrable)
        country = country_of(host)
        if country is None or split.registrable != host or split.main_label != parts[main].main_label:
            left_out["further official sites that are not the main one under a country's domain"] += 1
            continue
        stated_there = {country} & (COUNTRY_CODES if WORLDWIDE in business.countries else business.countries)
        yield _Candidate(business, host, split, frozenset(stated_there), country)


def _settle(candidates: Sequence[_Candidate], data: OpenData, known: Mapping[str, str], done: Converted) -> None:
    """Add the shop of a domain: the business most like it, with those whose names say that they are the same."""
    kept = max(candidates, key=lambda one: (one.likeness, one.business.id))
    suffix = kept.parts.registrable.partition(".")[2].replace(".", "-")
    shop_id = kept.business.id if kept.country is None else f"{kept.business.id}-{suffix}"
    same = [one for one in candidates if one is not kept and _is_same(one, kept)]
    joined = [kept, *same]
    countries = frozenset[str]().union(*(one.countries for one in joined))
    categories = dict.fromkeys(slug for one in joined for slug in one.business.categories)
    name, *aliases = dict.fromkeys(name for one in joined for name in one.business.names)
    worldwide = WORLDWIDE in countries or countries >= COUNTRY_CODES
    record = {
        "id": shop_id,
        "name": name,
        "domain": kept.host,
        "categories": [{"slug": slug, "name": known[slug]} for slug in categories][:_MOST_CATEGORIES],
        "countries": [WORLDWIDE] if worldwide else sorted(countries),
        "popularity": float(_markets(countries)),
        "aliases": aliases[:_MOST_ALIASES],
        "visibility": "public",
        "source": " ".join(filter(None, (NAME, data.version, kept.business.id, kept.business.entry))),
    }
    try:
        shop = validated(ShopRecord, record, lenient=False)
    except RefusedRecordError:
        done.left_out["not a valid record of a shop"] += sum(one.business.brands for one in candidates)
        return
    done.shops.append(shop)
    done.national += kept.country is not None
    done.without_country += not countries
    for one in candidates:
        if one in joined:
            done.joined += 0 if one.country else one.business.brands - (one is kept)
        elif one.country is None:
            done.sharing.append(LeftOut(one.business.id, one.business.names[0], one.host, shop_id))
            done.left_out["another brand's shop has the domain"] += one.business.brands
        else:
            done.left_out["national sites on a domain that another brand's shop has"] += 1


def _is_same(one: _Candidate, kept: _Candidate) -> bool:
    """Whether two businesses of a domain are one shop: one's name holds that of the other, or the domain's label."""
    label = _joined(kept.parts.joined_label)
    own, others = (list(map(words_of, each.business.names)) for each in (kept, one))
    return any(
        _holds(words, "".join(kept_words)) or _holds(kept_words, "".join(words)) or _holds(words, label)
        for words in others
        for kept_words in own
    )


def _holds(words: Sequence[str], joined: str) -> bool:
    """Whether neighbouring words are a text without its spaces."""
    return bool(joined) and any(
        "".join(words[start:end]) == joined for start in range(len(words)) for end in range(start + 1, len(words) + 1)
    )


def _names(brand: Brand) -> Iterable[str]:
    """The names that the tags state, the best known first; each once."""
    tags = brand.tags
    first = [tags.get("name"), tags.get("brand")]
    more = [value for key, value in sorted(tags.items()) if _NAMES.fullmatch(key)]
    texts = (text.strip() for value in (*first, *more) if value for text in value.split(";"))
    return islice(dict.fromkeys(text for text in texts if words_of(text)), _MOST_ALIASES + 1)


def _categories(brand: Brand, kind: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """The categories of a brand, the narrowest first: by its kind, and by what the tags say of it."""
    values = brand.tags.get(kind.replace("-", "_"), "").split(";")
    values += [key.replace("_", "-") for key in ("organic", "second_hand") if brand.tags.get(key) == "only"]
    return (*(slug for value in values if (slug := f"{kind}-{value.strip()}") in known), kind)


def _countries(brand: Brand) -> frozenset[str]:
    """The markets that the areas of a brand state; areas that name no country state none."""
    included = {country for area in brand.area.include for country in _country(area)}
    excluded = {country for area in brand.area.exclude if "-" not in str(area) for country in _country(area)}
    if _WORLD not in brand.area.include:
        return frozenset(included - excluded)
    return frozenset(COUNTRY_CODES - excluded) if brand.area.exclude else frozenset({WORLDWIDE})


def _country(area: object) -> frozenset[str]:
    """The countries of an area: of a country itself, a group of them, or a part of one (`us-tx.geojson`, `gb-eng`)."""
    if not isinstance(area, str):
        return frozenset()
    code = area.partition("-")[0]
    code = _AREAS.get(code, code.upper())
    return frozenset({code}) & COUNTRY_CODES or (GROUPS.get(code, frozenset()) if code == area.upper() else frozenset())


def _markets(countries: frozenset[str]) -> int:
    return len(COUNTRY_CODES) if WORLDWIDE in countries else len(countries)


def _joined(text: str) -> str:
    return "".join(words_of(text))
