"""Messy workbooks of real shops, as an operator keeps them: in German, with cells of every kind."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import xlsxwriter
from babel import Locale

SHOPS: Final = 1_500
_NAMES: Final = Locale("de").territories
_JOINS: Final = ("\n", " + ", " / ", ", ")
_CODES: Final = 7
_SHIPPING: Final = 11
_SUSPENDED: Final = 37
_SPLIT: Final = 50


@dataclass(slots=True)
class Shop:
    """A shop as its row says; `number` decides the form of its cells."""

    number: int
    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...]
    aliases: tuple[str, ...]
    suspended: bool = field(init=False)

    def __post_init__(self) -> None:
        self.suspended = self.number % _SUSPENDED == 0

    @property
    def country_names(self) -> list[str]:
        return ["weltweit" if code == "WORLDWIDE" else _NAMES[code] for code in self.countries]

    @property
    def website(self) -> str:
        return (self.domain, f"https://www.{self.domain}/", f"http://{self.domain}/de?a=1")[self.number % 3]

    def rows(self) -> Iterator[Sequence[str]]:
        """The rows of the shop: some have one for each country."""
        names = self.country_names
        listed = _JOINS[self.number % len(_JOINS)].join(names) or ("k.A.", "-", "")[self.number % 3]
        status = "gesperrt" if self.suspended else ("aktiv", "Aktiv ")[self.number % 2]
        one_each = names if self.number % _SPLIT == 1 and len(names) > 1 else [listed]
        for country in one_each:
            yield (
                self.name, self.website, "\n".join(self.categories), country, "\n".join(self.aliases) or "keine",
                status, ("", "prüfen!")[self.number % 2],
            )  # fmt: skip


def read_shops(data: Path) -> list[Shop]:
    """The first shops of the development data of which each domain and name is one shop's."""
    shops: dict[str, Shop] = {}
    for line in (data / "dev-shops.ndjson").read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line)
        # A cell of one category has no line break: its commas would separate several.
        categories = tuple(one["name"].replace(",", " ") for one in record["categories"])
        aliases = tuple(alias for alias in record["aliases"] if not {"|", ";"} & {*alias})
        shop = Shop(len(shops), record["name"], record["domain"], categories, tuple(record["countries"]), aliases)
        shops.setdefault(shop.domain, shop)
        if len(shops) == SHOPS:
            break
    assert len(shops) == SHOPS
    return list(shops.values())


def write_shops(path: Path, shops: Iterable[Shop]) -> Path:
    header = ("Firma", "Webseite", "Branche", "Land", "Weitere Namen", "Status", "Notiz")
    return _write(path, header, (row for shop in shops for row in shop.rows()))


def write_codes(path: Path, shops: Sequence[Shop]) -> Path:
    """Codes of every seventh shop, suspended ones too; days come before months, as some of them show."""
    header = ("Händler", "Gutschein", "Rabatt", "Region", "Gültig bis", "Mindestumsatz", "Angelegt")
    discounts = ("10 %", "5,00 €", "Gratis Versand", "k.A.")
    return _write(
        path,
        header,
        (
            (
                shop.website, f"CODE{shop.number}", discounts[shop.number % 4],
                ("DE", "EU + CH", "weltweit")[shop.number % 3],
                f"{shop.number % 28 + 1:02}/{shop.number % 12 + 1:02}/2035",
                ("ab 50 €", "keiner", "1.234,50 EUR")[shop.number % 3], "03.01.2026",
            )
            for shop in shops[::_CODES]
        ),
    )  # fmt: skip


def write_shipping(path: Path, shops: Sequence[Shop]) -> Path:
    header = ("Händler", "Lieferländer", "Lieferzeit", "Versandkostenfrei ab", "Geprüft am")
    rows = ((shop.domain, "DACH + NL", "2-4 Tage", "ab 49 €", "01.10.2026") for shop in shops[::_SHIPPING])
    return _write(path, header, rows)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    with xlsxwriter.Workbook(path, {"strings_to_urls": False}) as book:
        sheet = book.add_worksheet("Liste")
        for at, row in enumerate((header, *rows)):
            sheet.write_row(at, 0, row)
    return path
