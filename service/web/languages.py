"""The texts of the page in each language: `texts/` has one file a language, which templates and script share.

A text names its values in braces. Where it depends on a number, which is its value `count`, it has a form for each
plural category of CLDR that the language has for whole numbers. Numbers, days, amounts and names of countries are those
of CLDR, as in browsers.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, urlencode

from babel import Locale, negotiate_locale
from babel.dates import format_date
from babel.numbers import format_currency, format_decimal
from markupsafe import Markup, escape
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from index_mappings.countries import COUNTRY_CODES, GROUP_NAMES

# The first one is that of visitors who understand none.
LANGUAGES: Final = ("en", "de", "fr", "es", "it", "nl", "pl")
# The parameter of an address, and the cookie, that name the language that a visitor has chosen.
CHOICE: Final = "lang"
# What an answer depends on besides its address.
VARIES_BY: Final = "Accept-Language, Cookie"
# The keys of the texts, each with its text or its forms by plural category.
Texts = Mapping[str, str | Mapping[str, str]]

# How numbers and days are written where the tag of the language is not enough.
_LOCALES: Final = {"en": "en_GB"}
# Browsers differ from CLDR in the names of these.
_NAMED_OTHERWISE: Final = ("FK", "HK", "MO", "PS")
# A year, in seconds.
_REMEMBERED_S: Final = 31_536_000
# A text that a script names: the name of the function with its bracket, and the key.
_NAMED_TEXT: Final = re.compile(r'\b((?:t|phrase)\()"(\w+)"(?=[,)])')
_RANGE: Final = re.compile(r"\s*([A-Za-z0-9-]+)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?")


class Language:
    """One language of the page."""

    def __init__(self, tag: str) -> None:
        """Read the texts; the data of CLDR are read at the first use."""
        self.tag = tag
        self.texts: Texts = json.loads(files(__package__).joinpath("texts", f"{tag}.json").read_text(encoding="utf-8"))
        self._names, self._locale = Locale.parse(tag), Locale.parse(_LOCALES.get(tag, tag))

    @property
    def script_path(self) -> str:
        """The path of the script with the texts of the language."""
        return "/assets/main.js" if self.tag == LANGUAGES[0] else f"/assets/main.{self.tag}.js"

    def text(self, key: str, **values: Any) -> str:  # noqa: ANN401 - values of a text
        """A text with its values; markup among them stays markup, and other values are escaped next to it."""
        text = self.texts[key]
        if not isinstance(text, str):
            text = text[self._locale.plural_form(values["count"])]
            values["count"] = self.number(values["count"])
        if any(isinstance(value, Markup) for value in values.values()):
            return Markup(escape(text)).format(**values)  # noqa: S704 - the text is escaped
        return text.format(**values)

    def number(self, number: int | str) -> str:
        """A number with its groups of digits."""
        return format_decimal(Decimal(number), locale=self._locale)

    def money(self, price: Mapping[str, str]) -> str:
        """An amount with its currency; no digit is lost."""
        return format_currency(
            Decimal(price["amount"]), price["currency"], locale=self._locale, decimal_quantization=False
        )

    def day(self, time: str) -> str:
        """The day of an RFC 3339 time in UTC."""
        return format_date(datetime.fromisoformat(time), "medium", locale=self._locale)

    def market(self, code: str) -> str:
        """The name of a country or of a group of countries."""
        return str(self._names.territories[code]) if code in COUNTRY_CODES else self.text(f"market_{code}")

    def markets(self, codes: Iterable[str] | None) -> str:
        """The names of countries and groups; empty without any."""
        return ", ".join(map(self.market, codes or ()))

    def modules(self, scripts: Mapping[str, str]) -> dict[str, str]:
        """The modules of a script, and `language.js` with what it needs of the language.

        That is the texts that they name, and the names of markets that a browser has not or otherwise. A key that is
        only an argument of `t` or `phrase` becomes a number, which makes the script shorter.
        """
        source = "".join(scripts.values())
        named = sorted(key for key in self.texts if f'"{key}"' in source)
        direct = Counter(found[2] for found in _NAMED_TEXT.finditer(source))
        numbers = {key: str(at) for at, key in enumerate(named) if direct[key] == source.count(f'"{key}"')}

        def shorter(found: re.Match[str]) -> str:
            return found[1] + numbers.get(found[2], f'"{found[2]}"')

        markets = {code: self.market(code) for code in (*GROUP_NAMES, *_NAMED_OTHERWISE)}
        texts = {numbers.get(key, key): self.texts[key] for key in named}
        values = {"LANGUAGE": self.tag, "TEXTS": texts, "MARKET_NAMES": markets}
        language = "".join(
            f"export const {name} = {json.dumps(value, ensure_ascii=False, separators=(',', ':'))};\n"
            for name, value in values.items()
        )
        return {**{name: _NAMED_TEXT.sub(shorter, script) for name, script in scripts.items()}, "language.js": language}


@cache
def languages() -> Mapping[str, Language]:
    """All languages, by tag."""
    return {tag: Language(tag) for tag in LANGUAGES}


def chosen_language(query_string: bytes) -> str | None:
    """The language that the query string of an address chooses."""
    given = parse_qs(query_string.decode("latin-1")).get(CHOICE, [""])[0]
    return given if given in LANGUAGES else None


def without_choice(query_string: bytes) -> str:
    """A query string without the choice of a language."""
    given = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    return urlencode([(name, value) for name, value in given if name != CHOICE])


def language_of(scope: Scope) -> str:
    """The language of an answer: as the address says, as the visitor has chosen, else as the browser asks for."""
    if chosen := chosen_language(scope["query_string"]):
        return chosen
    headers = Headers(scope=scope)
    remembered = cookie_parser(headers.get("cookie", "")).get(CHOICE)
    return remembered if remembered in LANGUAGES else negotiated(headers.get("accept-language", ""))


def negotiated(accept_language: str) -> str:
    """The language that a value of Accept-Language prefers; regions count as their language."""
    ranges = filter(None, map(_RANGE.fullmatch, accept_language.split(",")))
    weighted = [(float(found[2] or 1), found[1].lower()) for found in ranges]
    wanted = [tag for weight, tag in sorted(weighted, key=lambda one: -one[0]) if weight]
    return negotiate_locale(wanted, LANGUAGES, sep="-") or LANGUAGES[0]


def remembered(language: str) -> str:
    """The cookie that keeps a choice, for this page alone: it has the path of the page wherever a proxy puts that."""
    return f"{CHOICE}={language}; Max-Age={_REMEMBERED_S}; HttpOnly; SameSite=Lax"
