"""Writes the catalogue of the package: shops, categories, where they come from, and which brands have no shop."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from index_mappings.countries import COUNTRY_CODES
from indexer.catalogue.new_catalogue import CATEGORIES, CATEGORY_SETS, catalogue_file, category_records, files_of_set
from indexer.catalogue.open_data.package import NAME, OpenData, read_package
from indexer.catalogue.open_data.shops import Converted, LeftOut, convert
from indexer.records.problems import numbered

SOURCES: Final = "SOURCES.md"
LEFT_OUT: Final = "left-out.csv"
POPULARITY: Final = (
    f"the number of countries in which a brand is stated to be, {len(COUNTRY_CODES)} where it is worldwide: it says "
    "nothing of visits or sales"
)
_CATEGORIES: Final = "shops"
_SOURCES: Final = """\
# Data: name-suggestion-index {version} (BSD-3-Clause), Wikidata (CC0), OpenStreetMap's kinds of shops (ISC)

The shops are brands of the npm package name-suggestion-index {version}
(<https://github.com/osmlab/name-suggestion-index>, {integrity}),
under the BSD-3-Clause licence below. Their official web sites are facts of Wikidata (<https://www.wikidata.org>), which
the package has and which are dedicated to the public domain (CC0 1.0,
<https://creativecommons.org/publicdomain/zero/1.0/>). The names of categories are those of OpenStreetMap's editor,
under the ISC licence in categories.LICENSE, with words of the Shop Directory's maintainers (Apache-2.0).

Neither of these projects, nor any shop, endorses this directory. Names of shops are trademarks of their owners.

- A shop is a brand with an official web site; one for each registrable domain. Brands with the same Wikidata id, or of
  which one has the other's name, are one shop; {left_out} lists those whose domain another brand's shop has. A further
  official site with the same name under a country's top-level domain is a shop too.
- `countries` are the countries of the areas that the package states; none where it states no country. A national site
  has the country of its domain if the brand is stated to be there.
- `popularity` is {popularity}.
- Nothing else is known of these shops: no codes, no shipping, no measurements.

{licence}
"""


@dataclass(frozen=True, slots=True)
class Written:
    """The result: the package, and the shops with what is left out."""

    data: OpenData
    converted: Converted
    directory: Path

    def as_wire(self) -> dict[str, Any]:
        """The report as JSON."""
        done = self.converted
        return {
            "directory": str(self.directory),
            "package": f"{NAME} {self.data.version}",
            "integrity": self.data.integrity,
            "shops": len(done.shops),
            "national_sites": done.national,
            "joined_brands": done.joined,
            "without_country": done.without_country,
            "popularity": POPULARITY,
            "left_out": dict(done.left_out.most_common()),
            "services": dict(done.services.most_common()),
            "same_domain": [one._asdict() for one in done.sharing],
        }

    def as_text(self) -> str:
        """The report as lines."""
        done = self.converted
        services = ", ".join(f"{count} {kind}" for kind, count in done.services.most_common())
        left_out = [
            *done.left_out.most_common(),
            (f"services and kinds without a category: {services}", done.services.total()),
        ]
        return "\n".join(
            [
                (
                    f"Read {NAME} {self.data.version}; wrote {numbered(len(done.shops), 'shop')} to {self.directory}, "
                    f"{done.national:,} of them national sites of brands that have another one. {done.joined:,} brands "
                    f"are one shop with another brand, and {numbered(done.without_country, 'shop')} state no country."
                ),
                f"popularity is {POPULARITY}.",
                "Left out:",
                *(f"{count:>8,}  {reason}" for reason, count in left_out if count),
                f"{SOURCES} has licences and attribution, {LEFT_OUT} the brands whose domain another shop has.",
            ]
        )


def write_open_data(package: Path, directory: Path, integrity: str | None = None) -> Written:
    """Make a catalogue of the package in a new directory, or in that of an earlier one, whose files are replaced.

    Raises CatalogueError if the package can't be used, or the directory has something else or can't be written.
    """
    data = read_package(package, integrity)
    names = {record["slug"]: record["name"] for record in category_records(_CATEGORIES)}
    converted = convert(data, names)
    texts = files_of_set(CATEGORY_SETS / _CATEGORIES)
    with catalogue_file(directory, "shops") as shops, catalogue_file(directory, "categories") as categories:
        categories.write(texts.pop(CATEGORIES))
        shops.writelines(
            f"{json.dumps(shop.model_dump(mode='json', exclude_defaults=True), ensure_ascii=False)}\n"
            for shop in converted.shops
        )
        texts[SOURCES] = _SOURCES.format(
            version=data.version, integrity=data.integrity, popularity=POPULARITY, left_out=LEFT_OUT,
            licence=data.licence.replace("## ", f"## {NAME}: ", 1).strip(),
        )  # fmt: skip
        texts[LEFT_OUT] = _as_csv(converted.sharing)
        for name, text in texts.items():
            (directory / name).write_text(text, encoding="utf-8")
    return Written(data, converted, directory)


def _as_csv(left_out: Iterable[LeftOut]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([LeftOut._fields, *left_out])
    return text.getvalue()
