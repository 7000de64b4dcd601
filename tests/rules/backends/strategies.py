"""Random catalogues and queries that meet often: few words, many scripts, shared beginnings, typing errors."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from index_mappings.tiers import rank_key
from index_mappings.usable_codes import CHANNELS
from index_mappings.values import microseconds
from shop_directory.search.protocol import CouponQuery, FindQuery, Position
from shop_directory.typeahead.suggestions import SuggestQuery

COUNTRIES = ("DE", "AT", "FR", "JP", "XK")
SLUGS = ("books", "garden", "garden-tools", "home-garden", "jewelry", "shoes", "buecher", "24h", "uk-de")
_WORDS = (
    "Marks", "Spencer", "Mars", "Mar", "Müller", "Mueller", "Muller", "Øresø", "Straße", "L'Oréal", "O’Mara", "A",
    "A1", "K+K", "Garden", "Gardena", "Book", "Books", "Bokhandel", "e&", "&", "C&A", "7-Eleven", "!Xtend", "...",
    "???", "İstanbul", "みどり", "商店", "緑", "ゲオ", "쿠팡", "한빛", "Солнце", "Солнечный", "Ёлка", "متجر",
    "الياسمين", "חנות", "ร้านดาว", "दीपक", "Ελαιώνας", "shop", "store", "home", "24h", "ﬁne", "Ⅳ", "½", "naïve", "zoë",
    "zoe", "x", "xy", "and", "und", "The", "the", "La", "De", "L'", "l’Or", "Source", "Las Palmas", "Blåbær",
    "Blaabaer", "ミドリ", "ﾐﾄﾞﾘ", "くろ", "クロ店", "쿠파", "쿺", "값", "갑", "ㅋㅋ", "와", "کتاب", "كتاب", "مؤسسة",
    "موسسه", "على", "Mars\ufe0f", "❤️", "❤", "✈️", "Ma\u3164rs", "de", "uk",
)  # fmt: skip
# Words for a shop, words that join others, names of countries, and a host with something next to it.
_WISHED = ("shops", "Store", "Laden", "in", "for", "de", "Germany", "Österreich", "united kingdom", "日本", "rf")
# What a wish is made of, besides names of categories: table words, countries, compounds.
_ASKED = (
    "where", "can", "I", "buy", "for", "the", "für", "de", "at", "with", "shop", "stores", "Laden", "店", "магазин",
    "Germany", "Allemagne", "Niemcy", "England", "france", "worldwide", "Buchladen", "bookshop", "Gartenbuch", "本屋",
    "gardens", "Gard", "tool", "Shoe", "schuh", "qqxx", "nobody", "best", "online",
)  # fmt: skip
# What is around main labels.
_AROUND = ("de", "uk", "co", "com", "internal", "blogspot", "рф", "k", "shop")
_LABELS = (
    "marks", "mars-shop", "mueller", "gardena", "shop", "a1", "xn--ob-eka", "store", "k", "book-books", "zoe", "de",
    "uk",
)  # fmt: skip
_SUFFIXES = ("internal", "com", "co.uk", "de", "blogspot.com", "xn--p1ai")

names = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).flatmap(
    lambda words: st.sampled_from((" ", "-", "", "  ")).map(lambda glue: glue.join(words))
)
domains = st.builds(
    lambda labels, suffix: ".".join((*labels, suffix)),
    st.lists(st.sampled_from(_LABELS), min_size=1, max_size=3),
    st.sampled_from(_SUFFIXES),
)
popularities = st.one_of(st.none(), st.sampled_from((0.0, 0.0833, 0.5, 1.0, 7.5)))
markets = st.one_of(st.just(["WORLDWIDE"]), st.lists(st.sampled_from(COUNTRIES), max_size=3, unique=True))


@st.composite
def shop_lines(draw: st.DrawFn) -> dict[str, Any]:
    slugs = draw(st.lists(st.sampled_from(SLUGS), min_size=1, max_size=3, unique=True))
    return {
        "name": draw(names),
        "domain": draw(domains),
        "categories": [{"slug": slug, "name": slug.replace("-", " & ").title()} for slug in slugs],
        "countries": draw(markets),
        "popularity": draw(popularities),
        "aliases": draw(st.lists(names, max_size=2)),
        "visibility": draw(st.sampled_from(("public", "public", "public", "under_review", "removed"))),
    }


def numbered(prefix: str) -> Callable[[Iterable[dict[str, Any]]], list[dict[str, Any]]]:
    """Gives lines their ids: the prefix and a number."""
    return lambda lines: [{"id": f"{prefix}{number}", **line} for number, line in enumerate(lines)]


catalogues = st.lists(shop_lines(), min_size=1, max_size=30).map(numbered("s"))
_SHOP_IDS = tuple(f"s{number}" for number in range(10))
_places = st.lists(st.sampled_from((*COUNTRIES, "EU", "DACH", "WORLDWIDE")), max_size=3, unique=True)
# Statements of shipping, at most one of each shop.
shipping_statements = st.lists(
    st.fixed_dictionaries(
        {
            "shop_id": st.sampled_from(_SHOP_IDS),
            "destinations": st.one_of(st.none(), _places),
            "excluded": _places,
            "destinations_exhaustive": st.booleans(),
            "delivery_time": st.just({"as_stated": "soon"}),
        }
    ),
    max_size=10,
    unique_by=lambda line: str(line["shop_id"]),
)

_TIMESTAMPS = [datetime(2031, 5, 6, hour, tzinfo=UTC) for hour in range(4)]
_stated_timestamps = st.sampled_from(_TIMESTAMPS).map(datetime.isoformat)
_timestamps = st.one_of(st.none(), _stated_timestamps)
# On a bound of validity, one microsecond before it and one after it.
clocks = st.builds(
    lambda timestamp, ticks: microseconds(timestamp + timedelta(microseconds=ticks)),
    st.sampled_from([*_TIMESTAMPS, datetime(2031, 5, 6, 23, 59, 59, tzinfo=UTC)]),
    st.integers(-1, 1),
)


@st.composite
def coupon_lines(draw: st.DrawFn, shop_ids: Sequence[str] = _SHOP_IDS) -> dict[str, Any]:
    """One line of `coupons`, without its id."""
    status = draw(st.sampled_from(("verified_applied", "verified_rejected", "unverified", "unverified")))
    return {
        "shop_id": draw(st.sampled_from(shop_ids)),
        "code": draw(st.sampled_from(("A", "a", "SAVE", "5%"))),
        "countries": draw(markets),
        "valid_from": draw(_timestamps),
        "valid_until": draw(st.one_of(_timestamps, st.just("2031-05-06"))),
        "verification_status": status,
        "last_verified_at": draw(_timestamps if status == "unverified" else _stated_timestamps),
        "blocked_channels": draw(st.lists(st.sampled_from(CHANNELS), max_size=2, unique=True)),
        "blocked_countries": draw(st.lists(st.sampled_from(("AT", "DE")), max_size=2, unique=True)),
    }


coupons = st.lists(coupon_lines(), max_size=15).map(numbered("c"))
_coupon_queries = st.builds(
    CouponQuery,
    shops=st.none(),
    now_us=clocks,
    channel=st.sampled_from(CHANNELS),
    country=st.sampled_from((None, "AT", "DE", "FR")),
    list_limit=st.none(),
)


_CALLED = (
    "Schuhe", "Pet Shop", "coffee and tea",
    "Bücher", "buch", "Livres et jeux", "PC", "T-shirts", "make up", "Fahrrad", "Fahrräder",
    "bikes", "makeup", "tshirt", "本", "ほん", "책", "كتب", "TV", "lamps", "Lámparas", "e-bike", "Gartengeräte",
    "jewellery", "jewelery", "sneakers", "Книги", "หนังสือ", "de la maison", "Books & Zines", "!!!",
)  # fmt: skip


@st.composite
def _category_lines(draw: st.DrawFn, slug: str) -> dict[str, Any]:
    return {
        "slug": slug,
        "name": draw(st.sampled_from((None, None, *_CALLED))),
        "names": draw(
            st.dictionaries(st.sampled_from(("de", "fr", "ja", "pt-BR")), st.sampled_from(_CALLED), max_size=3)
        ),
        "synonyms": draw(
            st.one_of(
                st.lists(st.sampled_from(_CALLED), max_size=3),
                st.dictionaries(
                    st.sampled_from(("de", "en", "ar")), st.lists(st.sampled_from(_CALLED), max_size=2), max_size=2
                ),
            )
        ),
    }


# Lines of `categories`: of some that shops carry, and of one that none does.
category_names = st.lists(st.sampled_from((*SLUGS, "nobody-has-it")), max_size=6, unique=True).flatmap(
    lambda slugs: st.tuples(*map(_category_lines, slugs))
)


@st.composite
def _typed(draw: st.DrawFn, known: Sequence[str]) -> str:
    """Something a person could type: a name or a part of it, cut, misspelt, or with words that are nowhere."""
    text = draw(st.one_of(st.sampled_from(known), names, domains, st.sampled_from((*_WORDS, *SLUGS, *_CALLED))))
    if draw(st.booleans()):
        text = text[: draw(st.integers(0, len(text)))]
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        text = draw(_misspelt(text))
    if draw(st.sampled_from((False, False, False, True))):
        text = f"{text} {draw(st.sampled_from((*_WORDS, *SLUGS, *_CALLED, 'qqxx', 'QQXX!')))}"
    if draw(st.sampled_from((False, False, False, True))):
        text = f"{text} {draw(st.sampled_from((*_AROUND, 'qqxx')))}"
    if draw(st.sampled_from((False, False, True))):
        wished = draw(st.one_of(st.sampled_from(_WISHED), domains))
        text = f"{wished} {text}" if draw(st.booleans()) else f"{text} {wished}"
    return text


wishes = st.lists(st.sampled_from((*_ASKED, *SLUGS, *_CALLED, *_WORDS[:24])), min_size=1, max_size=6).map(" ".join)


@st.composite
def _misspelt(draw: st.DrawFn, text: str) -> str:
    at = draw(st.integers(0, max(0, len(text) - 1)))
    kind = draw(st.sampled_from(("insert", "delete", "replace", "swap")))
    letter = draw(st.sampled_from("aemorst緑иプぷㅍ팡ه\ufe0f'"))
    if kind == "insert":
        return text[:at] + letter + text[at:]
    if kind == "delete":
        return text[:at] + text[at + 1 :]
    if kind == "replace":
        return text[:at] + letter + text[at + 1 :]
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


@st.composite
def queries(draw: st.DrawFn, catalogue: Sequence[dict[str, Any]]) -> FindQuery | SuggestQuery:
    known = [str(part) for line in catalogue for part in (line["name"], line["domain"], *line["aliases"])]
    text = draw(st.one_of(_typed(known), wishes))
    country = draw(st.sampled_from((None, None, *COUNTRIES)))
    if draw(st.booleans()):
        return SuggestQuery.of(text, country, draw(st.sampled_from((1, 3, 8, 20))))
    ships_to = draw(st.sampled_from((None, *COUNTRIES)))
    after = draw(st.none() | st.none() | st.builds(Position, st.integers(0, 20) | st.integers(200, 220), _ranks))
    return FindQuery(
        "" if draw(st.sampled_from((False, False, True))) else text,
        draw(st.just(() if country is None else (country,)) | _some(COUNTRIES)),
        draw(st.just(()) | _some(SLUGS)),
        0 if after else draw(st.sampled_from((0, 0, 1, 5))),
        draw(st.sampled_from((1, 3, 50))),
        ships_to,
        ships_to is not None and draw(st.booleans()),
        draw(st.one_of(st.none(), _coupon_queries)),
        draw(st.booleans()),
        after,
        draw(_some(("category", "country"))),
    )


def _some(values: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=3, unique=True).map(tuple)


# Some of shops, and others between them.
_ranks = st.builds(rank_key, popularities, st.sampled_from(("s0", "s1", "s17", "s2x", "~", "")))
