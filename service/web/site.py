"""What all pages of the service share: the operator's house as the settings describe it, the templates, the policy.

Templates escape every value, so no text of a catalogue becomes markup; JSON within a page has no `<`, `>` or `&`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import BytecodeCache, Environment, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from index_mappings.countries import COUNTRY_CODES, WORLDWIDE
from index_mappings.text import fold
from service.settings.service import Settings
from service.settings.site import LOGO_TYPES, THEMES, contrast, mixed, tint
from service.web.bundling import compact_lines
from service.web.languages import Language, languages

_BAND: Final = "#0c4b40"
_INKS: Final = ("#ffffff", "#101514")
_MOST_NAMED: Final = 3
_LOGO_PATH: Final = "/assets/logo"
SOURCES_PATH: Final = "/sources.txt"


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a page says of it, to search engines and where a link to it is shown.

    The title lacks the name of the directory, and is empty for the start page. The path is an address below the public
    URL, such as `/?shop=a.example`; empty where the page has none. `data` is its JSON-LD.
    """

    title: str
    description: str
    path: str = ""
    image: str | None = None
    data: dict[str, Any] | None = None


class _CompiledOnce(BytecodeCache):
    """The compiled templates, which the sites of all languages share: compiling takes most of the time of a page."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill a bucket."""
        bucket.code = self._found.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Take over the code of a bucket."""
        if bucket.code is not None:
            self._found[bucket.key] = bucket.code


_COMPILED: Final = _CompiledOnce()


class Site:
    """The pages of one operator, in one language."""

    def __init__(self, settings: Settings, language: Language) -> None:
        """Read the templates and the operator's logo."""
        self.language = language
        self.name = settings.site_name
        is_set = "site_tagline" in settings.model_fields_set
        self.tagline = settings.site_tagline if is_set else language.text("tagline")
        self.public_url = settings.public_url
        self.sitemap = settings.site_sitemap
        links = (
            (language.text("imprint"), settings.site_imprint),
            (language.text("privacy"), settings.site_privacy),
            (language.text("contact"), settings.site_contact),
        )
        sources = settings.site_sources
        self.sources = None if sources is None else sources.read_text(encoding="utf-8").strip()
        self.links = tuple((text, url) for text, url in links if url is not None)
        if self.sources is not None:
            self.links += ((self.sources.splitlines()[0].strip("# "), SOURCES_PATH[1:]),)
        self.token_help = _token_help(settings.site_token_help, language)
        self.shop_logos = settings.site_shop_logos
        self.accent = settings.site_accent
        self.band = _BAND if self.accent is None else mixed(self.accent[0], "#000000", 0.55)
        logo = settings.site_logo
        # The path, the label, the content and the media type of its file.
        self.logo = (
            None if logo is None else (_LOGO_PATH, "page_asset", logo.read_bytes(), LOGO_TYPES[logo.suffix.lower()])
        )
        self._templates = Environment(
            loader=FunctionLoader(template),
            bytecode_cache=_COMPILED,
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        defaults: dict[str, Any] = {"query": "", "as_of": "", "answers": {}, "here": "", "country": None, "problem": ""}
        self._templates.globals |= {
            "site": self,
            "t": language.text,
            "address": address,
            "languages": languages(),
            "homes": COUNTRY_CODES,
            **defaults,
        }
        worded = (by_name, sells, saving, counts, delivery)
        filters = (language.number, language.money, language.day, language.market, language.markets, sign, tone)
        self._templates.filters |= {each.__name__: each for each in filters}
        self._templates.filters |= {each.__name__: partial(each, language) for each in worded}
        self._templates.tests["elsewhere"] = is_elsewhere

    @property
    def policy(self) -> bytes:
        """The content security policy of its pages."""
        images = "'self' https:" if self.shop_logos else "'self'"
        return (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src {images}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
            # In browsers that support trusted types, no text can become markup or code.
            "require-trusted-types-for 'script'; trusted-types 'none'"
        ).encode()

    @property
    def for_script(self) -> dict[str, Any]:
        """What the script of the page needs to know of the site."""
        return {"name": self.name, "tagline": self.tagline, "logos": self.shop_logos, "token": self.token_help}

    @property
    def style(self) -> str:
        """The rules that follow those of the page's style sheet: the operator's accent."""
        if self.accent is None:
            return ""
        light, dark = self.accent
        in_dark = _accent_rule(dark, "dark", mixed(dark, THEMES["dark"][0][0], 0.22))
        return f"{_accent_rule(light, 'light', self.band)}\n@media (prefers-color-scheme: dark){{{in_dark}}}\n"

    def render(self, name: str, head: Head, **values: Any) -> bytes:  # noqa: ANN401 - values of a template
        """A page of a template."""
        return self._templates.get_template(name).render(head=head, **values).encode()


def template(name: str) -> str:
    """The source of a template of the page, without indentation."""
    return compact_lines(files(__package__).joinpath("page", name).read_text(encoding="utf-8"))


def address(**parameters: Any) -> str:  # noqa: ANN401 - values of a query
    """The address of a view, as `hrefOf` of the scripted page makes it; parameters without a value are left out."""
    given = {name: value for name, value in parameters.items() if value or (name, value) == ("q", "")}
    return f"?{urlencode(given, doseq=True)}" if given else "./"


def by_name(language: Language, codes: Iterable[str]) -> list[tuple[str, str]]:
    """Countries with their names, in the order of the names."""
    return sorted(((code, language.market(code)) for code in codes), key=lambda one: fold(one[1]))


def sells(language: Language, countries: Sequence[str]) -> str:
    """Where a shop says that it sells: some of its markets, and how many more there are."""
    if WORLDWIDE in countries:
        return language.text("sells_worldwide")
    named, more = language.markets(countries[:_MOST_NAMED]), len(countries) - _MOST_NAMED
    if more > 0:
        return language.text("sells_in_more", countries=named, count=more)
    return language.text("sells_in", countries=named)


def saving(language: Language, discount: Mapping[str, Any] | None) -> str:
    """What a code takes off, as `coupons.js` says it; empty where that is not stated."""
    match discount:
        case None:
            return ""
        case {"kind": "percent", "value": value}:
            return language.text("percent_off", value=language.number(value))
        case {"kind": "amount", "value": value, "currency": currency}:
            return language.text("amount_off", amount=language.money({"amount": value, "currency": currency}))
        case {"kind": "free_shipping"}:
            return language.text("free_shipping")
        case _:
            return language.text("other_advantage")


def is_elsewhere(coupon: Mapping[str, Any], country: str | None) -> bool:
    """Whether a code is stated to be valid in other countries only."""
    return bool(country and coupon["countries"]) and not {country, WORLDWIDE} & set(coupon["countries"])


def counts(language: Language, coupons: Mapping[str, Any]) -> str:
    """A sentence of the counts of codes that are above zero, as `coupons.js` says it."""
    withheld, total = coupons["withheld"], coupons["total_count"]
    counted = {
        "codes_may_work": total - sum(withheld.values()),
        "codes_expired": withheld["expired"],
        "codes_rejected": withheld["verified_rejected"],
        "codes_reserved": withheld["reserved_test_domain"],
        "codes_withheld": withheld["policy"],
    }
    parts = ", ".join(language.text(key, count=number) for key, number in counted.items() if number)
    return language.text("codes_known", count=total, parts=parts)


def delivery(language: Language, time: Mapping[str, Any] | None) -> str:
    """A stated delivery time, in days and in the shop's words; empty where neither is stated."""
    if time is None:
        return ""
    least, most, words = time["min_days"], time["max_days"], time["as_stated"]
    if most is None:
        days = "" if least is None else language.text("days_at_least", count=least)
    elif least is None:
        days = language.text("days_at_most", count=most)
    elif least == most:
        days = language.text("days", count=most)
    else:
        days = language.text("days_range", least=language.number(least), count=most)
    stated = Markup("<q><bdi>{}</bdi></q>").format(words) if words else ""
    return Markup(", ").join(filter(None, (days, stated)))


def sign(name: str) -> str:
    """The first letter or digit of a name, for its tile."""
    return next((character.upper() for character in name if character.isalnum()), "·")


def tone(shop_id: str) -> int:
    """The colour of a shop's tile, the same as that of the scripted page."""
    number = 0
    for character in shop_id:
        number = (number * 31 + ord(character)) % 4
    return number


def _accent_rule(colour: str, theme: str, band: str) -> str:
    ink = max(_INKS, key=lambda text: contrast(colour, text))
    marked = tint(colour, THEMES[theme][0][-1])
    return f":root{{--accent:{colour};--accent-ink:{ink};--tint:{marked};--band:{band}}}"


def _token_help(stated: str | None, language: Language) -> dict[str, str | None] | None:
    """How one gets a token: a text, and a URL where there is one."""
    if stated is None:
        return None
    if stated.startswith(("https://", "mailto:")):
        return {"text": language.text("token_get"), "url": stated}
    return {"text": stated, "url": None}
