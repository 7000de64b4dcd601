"""Amounts of money as shops state them: decimal strings, with as many decimals as the currency has."""

from random import Random
from typing import Final

from indexer.sample.records import Money, Shop

_CURRENCIES: Final = {
    "AE": "AED", "AU": "AUD", "BR": "BRL", "CA": "CAD", "CH": "CHF", "CN": "CNY", "CZ": "CZK", "DK": "DKK", "GB": "GBP",
    "GE": "GEL", "IL": "ILS", "IN": "INR", "JP": "JPY", "KR": "KRW", "NO": "NOK", "PL": "PLN", "RU": "RUB", "SA": "SAR",
    "SE": "SEK", "TH": "THB", "TR": "TRY", "UA": "UAH", "US": "USD",
}  # fmt: skip
_PER_EURO: Final = {
    "CNY": 8, "CZK": 24, "DKK": 7, "INR": 100, "JPY": 170, "KRW": 1600, "NOK": 12, "PLN": 4, "RUB": 90, "SEK": 11,
    "THB": 38, "TRY": 48, "UAH": 48,
}  # fmt: skip
_WHOLE: Final = frozenset({"JPY", "KRW"})


def amount(rng: Random, shop: Shop, *, low: int, high: int) -> Money:
    """An amount worth about ``low`` to ``high`` euros in the currency of the shop's first country."""
    currency = _CURRENCIES.get(shop.home, "EUR")
    whole = rng.randint(low, high) * _PER_EURO.get(currency, 1)
    cents = "" if currency in _WHOLE else rng.choice((".00", ".00", ".50", ".90", ".99"))
    return Money(f"{whole}{cents}", currency)
