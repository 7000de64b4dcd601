"""Reads the cells of a sheet as values of a catalogue's fields; nothing is guessed that a cell does not state.

A reader returns a value that the record's model takes, and raises UnreadableError for a text that may mean several
things, such as `1,234` or `05/06/2026`.
"""

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import pycountry
from anyascii import anyascii
from babel import localedata
from babel.core import get_global
from babel.languages import get_official_languages

from index_mappings.countries import COUNTRY_CODES, DESTINATIONS, GROUPS, WORLDWIDE, country_names
from index_mappings.text import without_trade_marks, words_of
from indexer.records.entities import has_entity
from indexer.records.faults import UnreadableError
from indexer.records.related import CURRENCIES

_MAX_SLUG: Final = 100
_NO_SLUG: Final = re.compile(r"[^a-z0-9]+")
_NO_LETTER_OR_DIGIT: Final = re.compile(r"[\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Scripts of CJK, which are written without spaces, begin here.
_CJK: Final = "\u2e80"
# Words of columns and cells, in lower case with _ for other characters than letters and digits, by meaning.
WORDS: Final[Mapping[str, frozenset[str]]] = {
    meaning: frozenset(" ".join(by_language.values()).split())
    for meaning, by_language in tomllib.loads(
        Path(__file__).with_name("words.toml").read_text(encoding="utf-8")
    ).items()
}
_SYMBOLS: Final[Mapping[str, str]] = {
    "€": "EUR", "£": "GBP", "zł": "PLN", "kč": "CZK", "ft": "HUF", "₺": "TRY", "₹": "INR", "₩": "KRW", "₴": "UAH",
    "₽": "RUB", "₪": "ILS", "₫": "VND", "us$": "USD", "ca$": "CAD", "a$": "AUD", "r$": "BRL", "fr.": "CHF",
    "nz$": "NZD", "hk$": "HKD", "s$": "SGD", "nt$": "TWD", "mx$": "MXN", "cn¥": "CNY", "円": "JPY", "₱": "PHP",
    "฿": "THB", "₦": "NGN", "tl": "TRY", "euro": "EUR", "euros": "EUR",
}  # fmt: skip
# Symbols of several currencies each.
_SHARED_SYMBOLS: Final = frozenset({"$", "¥", "kr", "kr.", "rs", "rs."})
# Characters of the width of Chinese ones by their usual ones; those without width are left out.
_USUAL: Final = {
    **{0xFF01 + at: 0x21 + at for at in range(94)}, **dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF)),
    ord("￥"): "¥", ord("￡"): "£", ord("￦"): "₩", 0x3000: " ",
}  # fmt: skip
# CLDR's codes of territories that are not countries, by the catalogue's names.
_GROUPS: Final = {"001": WORLDWIDE, "EU": "EU"}
_MAX_PLACES: Final = 200
# Words that join the countries of a list, where they are not part of a country's name.
_JOINED: Final = re.compile(r" (?:and|und|sowie|plus|et|y|e|en|i|och|ve) ", re.IGNORECASE)
# The language of a country, such as de-AT.
_LOCALE: Final = re.compile(r"[a-z]{2,3}[-_]([a-z]{2})", re.IGNORECASE)
# The letters of which flags are made.
_FLAGS: Final = {ord("\U0001f1e6") + at: chr(ord("A") + at) for at in range(26)}
# Cells of dashes, points and question marks, which state nothing.
_NO_WORD: Final = re.compile(r"[-–—―_.?\s]+")

_DECIMAL: Final = re.compile(r"\d+(?:[.,]\d+)?")
_GROUPED: Final = re.compile(r"\d{1,3}(?:([.,'’ \u00a0\u202f])\d{3})(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
# One point or comma before three digits: thousands or thousandths.
_AMBIGUOUS: Final = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
# The digits of minor units such as those of the dinar of Kuwait.
_THOUSANDTHS: Final = 3
# As in India: 1,23,456.00.
_LAKHS: Final = re.compile(r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?")
_ZERO: Final = re.compile(r"\D*0+(?:[.,]0+)?\D*")
_MONEY: Final = re.compile(r"(?P<before>\D*)(?P<number>\d(?:[\d.,'’ \u00a0\u202f]*\d)?)(?:[.,][-–—])?(?P<after>\D*)")
_PERCENT: Final = re.compile(r"[-–−]?\s*(?:%\s*([\d.,]+)|([\d.,]+)\s*(?:%|percent|prozent))\s*(.*)", re.IGNORECASE)
_NO_DISCOUNT: Final = (
    "must be such as 10 %, 12.50 EUR or free shipping; a number alone needs a column of kinds (percent, amount), which"
    " --map COLUMN=discount_kind names"
)
_NOTHING_OFF: Final = "is nothing off: leave the cell blank, or write what the code gives, such as free shipping"
_UNKNOWN_KIND: Final = (
    "is the kind of a number, and none of percent, amount, free_shipping and other: write one of these in the column of"
    " kinds; it is other where the code is for single products"
)
_NO_MONEY: Final = "must be a decimal such as 12.50, with a currency such as EUR or €"
_AMBIGUOUS_AMOUNT: Final = (
    "has three digits behind its one separator, which may be of thousands or of decimals: write it without one or with"
    " two decimals, or state a currency that has no cents, such as by --currency JPY"
)
_DAYS: Final = re.compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?(?:\s*([^\W\d]+))?")
_MONTH: Final = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# What spreadsheets make of texts that look like dates, and of long numbers.
_NO_CODE: Final = re.compile(rf"\d{{4}}-\d\d-\d\d(?:T.*)?|\d{{1,2}}-{_MONTH}|{_MONTH}-\d\d|\d(?:[.,]\d+)?E[+-]\d{{2,}}")


def plain(text: str) -> str:
    """A text in lower case, with _ for other characters than letters and digits."""
    # The Turkish capital İ is folded to i with a dot above.
    folded = unicodedata.normalize("NFC", text).casefold().replace("i\u0307", "i")
    return _NO_LETTER_OR_DIGIT.sub("_", folded).strip("_")


def plain_name(column: str) -> str:
    """A column's name as `plain`, with the words that programs join apart: `minimumSpend` is `minimum_spend`."""
    return plain(_CAMEL.sub("_", column))


def is_named(column: str, words: str) -> bool:
    """Whether a column's name has a word of this table; one of the table that ends with * is the beginning of one."""
    name = f"_{plain_name(column)}_"
    return any(
        f"_{word.removesuffix('*')}{'' if word.endswith('*') else '_'}" in name or (word > _CJK and word in name)
        for word in WORDS.get(words, ())
    )


def is_blank(text: str) -> bool:
    """Whether a cell says in words or signs that it states nothing: `n/a`, `k.A.`, `-`."""
    return plain(text) in WORDS["blank"] or _NO_WORD.fullmatch(text) is not None


def is_zero(text: str) -> bool:
    """Whether an amount is nothing, such as `0.00 EUR`."""
    return _ZERO.fullmatch(text) is not None


def several(text: str, delimiters: str = "\n|;,") -> list[str]:
    """The entries of a list, split at the first of these delimiters that occurs in it."""
    delimiter = next((one for one in delimiters if one in text), delimiters[0])
    return [part.strip() for part in text.split(delimiter) if part.strip()]


def names(text: str) -> list[str]:
    """Names, which may hold commas and slashes."""
    return several(text, "\n|;")


def choices(text: str) -> list[str]:
    """Values out of a fixed list."""
    return [plain(one) for one in several(text, "\n|;/,")]


def categories(text: str) -> list[dict[str, str]]:
    """Categories by their names."""
    return [{"slug": slug_of(name), "name": name} for name in several(text)]


def countries(text: str) -> list[str]:
    """Codes of countries by codes or names in any language of CLDR; a group of `destinations` is its members."""
    found = _codes(text, DESTINATIONS, "must be codes (ISO 3166-1 alpha-2) or names of countries")
    return [member for code in found for member in sorted(GROUPS.get(code, (code,)))]


def destinations(text: str) -> list[str]:
    """As `countries`, with the groups of countries that a shipping statement may name."""
    return _codes(text, DESTINATIONS, "must be codes or names of countries, or groups such as EU or WORLDWIDE")


def country(text: str) -> str:
    """One country, as in `countries`."""
    found = country_code(text)
    if found in COUNTRY_CODES:
        return str(found)
    raise UnreadableError("must be the code (ISO 3166-1 alpha-2) or the name of a country", text)


def is_place(text: str) -> bool:
    """Whether a text names countries or regions, also such as a catalogue can't name; a longer text says more."""
    if len(text) > _MAX_PLACES:
        return False
    with suppress(UnreadableError):
        return bool(destinations(text))
    words = (word if plain(word) not in WORDS["except"] else "," for word in text.split())
    parts = [part.strip() for part in re.split(r"[\n|;/,+&():]", " ".join(words)) if part.strip()]
    return bool(parts) and all(map(_is_one_place, parts))


def _is_one_place(text: str) -> bool:
    """Whether a text is a country, a region of or with several, or the language of a country."""
    locale = _LOCALE.fullmatch(text)
    return (
        country_code(text if locale is None else locale[1]) is not None
        or plain(text) in WORDS["region"]
        or text.upper() in _parts_of_countries()
    )


@cache
def _parts_of_countries() -> Collection[str]:
    """The codes of ISO 3166-2, such as GB-ENG."""
    return {one.code for one in pycountry.subdivisions}


def _codes(text: str, known: Collection[str], reason: str) -> list[str]:
    found, unknown = [], []
    waiting = [(text, "\n|;/,+&")]
    while waiting:
        part, delimiters = waiting.pop(0)
        if (code := country_code(part)) in known:
            found.append(str(code))
        elif delimiter := next((one for one in delimiters if one in part), None):
            waiting[:0] = [(one, delimiters.replace(delimiter, "")) for one in several(part, delimiter)]
        elif len(joined := _JOINED.split(part)) > 1:
            waiting[:0] = [(one, "") for one in joined]
        else:
            unknown.append(part)
    if any(plain(word) in WORDS["except"] for part in unknown for word in part.split()):
        reason = f"{reason} alone; exceptions need a column such as Excluded Countries"
    if any(plain(part) in WORDS["region"] for part in unknown):
        reason = (
            f"{reason}; a region such as Europe has no one list of countries: write a group (EU, EEA, DACH) or them"
        )
    if unknown:
        raise UnreadableError(reason, *unknown)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=4_096)
def country_code(text: str) -> str | None:
    """The code of a country or a group of countries, by its code or name; None if it is not known.

    Of a name that languages give to different countries, only English and the official languages decide.
    """
    code = text.strip().upper().translate(_FLAGS)
    if code in DESTINATIONS:
        return code
    name = " ".join(words_of(text))
    if plain(text) in WORDS["world"]:
        return WORLDWIDE
    for code in country_names().get(name, ()):
        if _is_official(code, name) or len(_codes_of_cldr().get(name, ())) <= 1:
            return code
    if found := _codes_of_iso().get(name):
        return found
    found, *others = _codes_of_cldr().get(name, (None,))
    return None if others else found


def _is_official(code: str, name: str) -> bool:
    """Whether a country has a folded name in English or in one of its official languages."""
    languages = ("en", *get_official_languages(code, regional=False, de_facto=True))
    known = localedata.locale_identifiers()
    locales = (localedata.load(language) for language in languages if language in known)
    return name in (" ".join(words_of(locale["territories"].get(code, ""))) for locale in locales)


@cache
def _codes_of_iso() -> Mapping[str, str]:
    """Codes by three letters and by the names in ISO 3166-1, such as `bolivia plurinational state of`."""
    found = {"great britain": "GB"}
    for one in pycountry.countries:
        for attribute in ("alpha_3", "name", "official_name"):
            if name := getattr(one, attribute, None):
                found.setdefault(" ".join(words_of(name)), one.alpha_2)
    return found


@cache
def _codes_of_cldr() -> Mapping[str, frozenset[str]]:
    """Codes by the names that all languages of CLDR have for them; several where languages differ."""
    named = {
        (name, _GROUPS.get(code, code))
        for identifier in localedata.locale_identifiers()
        for code, name in localedata.load(identifier)["territories"].items()
        if code in COUNTRY_CODES or code in _GROUPS
    }
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for name, code in named:
        if folded := " ".join(words_of(name)):  # empty in a script that the folding does not know
            found[folded] |= {code}
    return found


def number(text: str) -> float:
    """A number of any kind; `1.234` may mean two, as in `decimal_of`."""
    decimal = decimal_of(text)
    with suppress(ValueError):
        if not _AMBIGUOUS.fullmatch(text):
            return float(text if decimal is None else decimal)
    raise UnreadableError("must be a number such as 12.5", text)


def whole_number(text: str) -> int:
    """A whole number."""
    if text.isascii() and text.isdigit():
        return int(text)
    raise UnreadableError("must be a whole number", text)


def decimal_of(text: str, of: str | None = None) -> str | None:
    """A decimal as a catalogue writes it: `12,50` is `12.50`, and `1.234,50` is `1234.50`; None if it is not clear.

    In the currency `of`, `12,345` is clear where it has no cents, and `12.345` where it has three digits of them.
    """
    if _AMBIGUOUS.fullmatch(text):
        digits = _minor_digits().get(of or "")
        if digits == 0:
            return re.sub("[.,]", "", text)
        return text if digits == _THOUSANDTHS and "." in text else None
    if _DECIMAL.fullmatch(text):
        return text.replace(",", ".")
    if _LAKHS.fullmatch(text):
        return text.replace(",", "")
    found = _GROUPED.fullmatch(text)
    return None if found is None else text.replace(found[1], "").replace(",", ".")


@cache
def _minor_digits() -> Mapping[str, int]:
    """The number of digits of the minor units of the currencies that CLDR knows to have others than two."""
    return {code: parts[0] for code, parts in get_global("currency_fractions").items() if code in CURRENCIES}


def money(text: str, of_row: str | None = None) -> dict[str, Any]:
    """An amount; its currency is None where the cell states none or a symbol of several, which `of_row` is then."""
    found = _MONEY.fullmatch(text.translate(_USUAL))
    if found is None:
        raise UnreadableError(_NO_MONEY, text)
    marks = [mark for mark in (found["before"].strip(), found["after"].strip()) if mark]
    codes = {code for mark in marks if (code := currency(mark, of=text))}
    code = next(iter(codes), None)
    meant = code or of_row
    if len(codes) > 1:
        raise UnreadableError(_NO_MONEY, text)
    if meant is not None and any(currency(mark) is None and meant not in _sharing(mark) for mark in marks):
        raise UnreadableError(f"has a symbol that is not of the currency that is stated ({meant})", text)
    amount = decimal_of(found["number"], meant)
    if amount is None:
        raise UnreadableError(_AMBIGUOUS_AMOUNT if _AMBIGUOUS.fullmatch(found["number"]) else _NO_MONEY, text)
    return {"amount": amount, "currency": code}


@cache
def _sharing(symbol: str) -> Collection[str]:
    """The currencies that CLDR writes by a symbol in any language; `kr` is that of four, with or without a point."""
    wanted = symbol.casefold().rstrip(".")
    return {
        code
        for identifier in localedata.locale_identifiers()
        for code, written in localedata.load(identifier)["currency_symbols"].items()
        if written.translate(_USUAL).casefold().rstrip(".") == wanted
    }


def minimum(text: str, of_row: str | None = None) -> dict[str, Any]:
    """An amount from which on something holds: `50 EUR`, `ab 50 EUR`, `min. 50 EUR`."""
    amount = text
    while (first := re.match(r"([^\W\d_]+|[>≥]=?)[ .:]*", amount)) and plain(first[1]) in WORDS["from"] | {""}:
        amount = amount[first.end() :]
    return money(amount, of_row)


def currency(text: str, *, of: str | None = None) -> str | None:
    """A currency by its code or symbol; None for a symbol of several. `of` is the cell, if it holds more than that."""
    symbol = text.casefold()
    code = _SYMBOLS.get(symbol, text.upper())
    if code not in CURRENCIES and symbol not in _SHARED_SYMBOLS:
        reason = "must be an ISO 4217 code such as EUR, or a symbol such as €"
        raise UnreadableError(reason if of is None else _NO_MONEY, of or text)
    return code if code in CURRENCIES else None


def discount(text: str, kind: str = "", of_row: str | None = None, *, ships_free: bool = False) -> dict[str, Any]:
    """A discount: `10 %`, `5,00 €`, `free shipping`, or a number alone of the `kind` that another column states.

    `ships_free` says that another column states free shipping, which counts where the discount is nothing.
    """
    words = plain(text)
    stated = plain(kind)
    said = _without_words_of_discounts(text.translate(_USUAL).strip())
    if words in WORDS["free_shipping"] or stated in WORDS["free_shipping"]:
        return {"kind": "free_shipping"}
    if ships_free and (not text or is_zero(text)):
        return {"kind": "free_shipping"}
    if words == "other" or stated == "other":
        return {"kind": "other"}
    is_percent = stated in WORDS["percent"] or kind == "%"
    found = _PERCENT.fullmatch(f"{said} %" if is_percent and "%" not in said else said)
    if found is not None and not found[3]:
        value = decimal_of(found[1] or found[2])
        # A workbook holds 10 % as 0.1 and 100 % as 1, so that a number up to one is hardly meant as it is.
        is_meant = value is not None and float(value) >= 1 and (float(value) > 1 or "%" in said)
        if is_meant and stated not in WORDS["amount"]:
            return {"kind": "percent", "value": value}
    with suppress(UnreadableError):
        amount = money(said.lstrip("-–− "), of_row)
        # A number alone may be either.
        if not is_percent and (stated in WORDS["amount"] or not said.isascii() or re.search(r"[A-Za-z$]", said)):
            if is_zero(amount["amount"]):
                raise UnreadableError(_NOTHING_OFF, text) from None
            return {"kind": "amount", "value": amount["amount"], "currency": amount["currency"]}
    if text and stated and not is_percent and stated not in WORDS["amount"]:
        raise UnreadableError(_UNKNOWN_KIND, kind)
    raise UnreadableError(_NOTHING_OFF if text and is_zero(text) else _NO_DISCOUNT, text)


def _without_words_of_discounts(text: str) -> str:
    """A discount without what people write around it: `5 € Rabatt`, `Save 10 %`, `10 % de réduction`."""
    said = text.split()
    for first, last in ((1, None), (0, -2), (0, -1)):
        rest = said[first:last]
        dropped = said[:first] if first else said[len(rest) :]
        if rest and all(map(str.isalpha, dropped)) and plain(" ".join(dropped)) in WORDS["discount"]:
            return " ".join(rest)
    return text


def code(text: str) -> str:
    """A coupon's code; not what spreadsheets make of codes such as MAY10 or of those with many digits."""
    if has_entity(text):
        raise UnreadableError("holds an HTML entity: write the character that it stands for", text)
    if _NO_CODE.fullmatch(text):
        raise UnreadableError("is a date or a rounded number, made by a spreadsheet: write the code as a text", text)
    return text


def delivery_time(text: str) -> dict[str, Any]:
    """A delivery time as stated, with its days where it is one such as `3`, `2-4` or `2-4 days`."""
    found = _DAYS.fullmatch(text)
    if found is None or (found[3] and found[3].casefold() not in WORDS["days"]):
        if _NO_CODE.fullmatch(text):
            raise UnreadableError("is a date, made by a spreadsheet: write it as a text such as 2-4 days", text)
        return {"as_stated": text}
    return {"min_days": int(found[1]), "max_days": int(found[2] or found[1]), "as_stated": text}


def yes_or_no(text: str) -> bool:
    """A truth in one of several languages."""
    if plain(text) in WORDS["yes"] | WORDS["no"]:
        return plain(text) in WORDS["yes"]
    raise UnreadableError("must be yes or no", text)


def slug_of(name: str) -> str:
    """A category's slug from its name in any script; empty where the name has no ASCII transliteration."""
    return _NO_SLUG.sub("-", anyascii(without_trade_marks(name)).lower()).strip("-")[:_MAX_SLUG].rstrip("-")
