"""`catalogue open-data`: which brands of a package become shops, what they state, and packages that are refused."""

import csv
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from indexer.catalogue.open_data import package as reading
from indexer.catalogue.open_data.files import write_open_data
from indexer.catalogue.open_data.shops import Converted
from indexer.catalogue.validation import validate
from indexer.records.problems import CatalogueError, Problem
from tests.support.open_data import brand, files_of, pack, small_package

BOOKS = "brands/shop/books"
CLOTHES = "brands/shop/clothes"


def converted(
    folder: Path, brands: dict[str, list[dict[str, Any]]], sites: dict[str, list[str]], *gone: str
) -> Converted:
    package = pack(folder / "package.tgz", files_of(brands, sites, gone))
    done = write_open_data(package, folder / "shops").converted
    problems: list[Problem] = []
    validate(folder / "shops", problems.append)
    assert problems == []
    lines = map(json.loads, (folder / "shops" / "shops.ndjson").read_text(encoding="utf-8").splitlines())
    assert [line["id"] for line in lines] == [shop.id for shop in done.shops]
    return done


def test_a_brand_becomes_a_shop_with_what_is_stated_and_nothing_else(tmp_path: Path) -> None:
    reed = brand("Reed", "reed-2", "Q2", "de", "fx", "gb-eng", "us-tx.geojson", "150", **{
        "name:ja": "リード", "alt_name": "The Reed;Reeds", "operator": "Group", "clothes": "underwear;women",
    })  # fmt: skip
    done = converted(tmp_path, {CLOTHES: [reed]}, {"Q2": ["https://www.reed.example/de?x"]})
    (line,) = (tmp_path / "shops" / "shops.ndjson").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "id": "reed-2",
        "name": "Reed",
        "domain": "reed.example",
        "categories": [{"slug": "clothes-underwear", "name": "Underwear"}, {"slug": "clothes", "name": "Clothing"}],
        "countries": ["DE", "FR", "GB", "US"],
        "popularity": 4.0,
        "aliases": ["The Reed", "Reeds", "リード"],
        "visibility": "public",
        "source": "name-suggestion-index 8.0.1 reed-2 Q2",
    }
    assert (done.left_out, done.services, done.sharing, done.joined, done.national) == ({}, {}, [], 0, 0)


@pytest.mark.parametrize(
    ("include", "exclude", "countries"),
    [
        (["001"], [], ("WORLDWIDE",)),
        (
            ["eu"],
            ["fr", "de-by.geojson"],
            "AT BE BG CY CZ DE DK EE ES FI GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK",
        ),
        (["150", "crimea", "q35"], [], ()),
        ([[7.1, 50.7, 20]], [], ()),
        (["xk", "uk", "eth"], [], ("XK",)),
    ],
)
def test_countries_are_those_that_an_area_names(
    tmp_path: Path, include: list[str], exclude: list[str], countries: tuple[str, ...] | str
) -> None:
    one = brand("Reed", "reed-2", "Q2", *include, exclude=exclude)
    (shop,) = converted(tmp_path, {BOOKS: [one]}, {"Q2": ["reed.example"]}).shops
    assert shop.countries == (tuple(countries.split()) if isinstance(countries, str) else countries)
    assert shop.popularity == (250 if shop.countries == ("WORLDWIDE",) else len(shop.countries))


def test_the_world_without_a_country_is_every_other_one(tmp_path: Path) -> None:
    one = brand("Reed", "reed-2", "Q2", "001", exclude=["th"])
    (shop,) = converted(tmp_path, {BOOKS: [one]}, {"Q2": ["reed.example"]}).shops
    assert len(shop.countries) == 249
    assert "TH" not in shop.countries


def test_what_is_left_out_is_counted_by_its_reason(tmp_path: Path) -> None:
    brands = {
        BOOKS: [
            brand("Gone", "gone-1", "Q1", "de"),
            brand("Siteless", "siteless-2", None, "de"),
            brand("Unsaid", "unsaid-3", "Q3", "de"),
            brand("Social", "social-4", "Q4", "de"),
            brand("Bad\x07Name", "bad-5", "Q5", "de"),
            brand("Reed", "reed-6", "Q6", "de"),
        ],
        "brands/shop/car_repair": [brand("Motors", "motors-7", "Q6", "de")],
        "brands/amenity/bank": [brand("Bank", "bank-8", "Q6", "de")],
        "brands/amenity/pharmacy": [brand("Pills", "pills-9", None, "de", website="https://pills.example")],
        "operators/amenity/school": [brand("School", "school-9", "Q6", "de")],
    }
    sites = {
        "Q1": ["gone.example"],
        "Q4": ["https://de-de.facebook.com/social"],
        "Q5": ["bad.example"],
        "Q6": ["reed.example"],
    }
    done = converted(tmp_path, brands, sites, "gone-1")
    assert [shop.id for shop in done.shops] == ["pills-9", "reed-6"]
    assert [shop.categories[0].slug for shop in done.shops] == ["pharmacy", "books"]
    assert done.services == {"car-repair": 1}
    assert done.left_out == {
        "operators, not brands": 1,
        "not a kind of shop, such as restaurants and banks": 1,
        "dissolved": 1,
        "no official web site is stated": 2,
        "only a page of a social network or platform": 1,
        "not a valid record of a shop": 1,
    }


def test_brands_of_one_wikidata_id_are_one_shop_called_like_its_site(tmp_path: Path) -> None:
    brands = {
        BOOKS: [brand("Reed Kids", "reedkids-1", "Q2", "de", "at"), brand("Reed", "reed-2", "Q2", "fr")],
        CLOTHES: [brand("რიდ", "reed-3", "Q2", "ge", **{"name:en": "Reed"})],
    }
    done = converted(tmp_path, brands, {"Q2": ["https://corporate.example", "https://reed.example"]})
    (shop,) = done.shops
    assert (shop.id, shop.name, shop.domain) == ("reed-2", "Reed", "reed.example")
    assert set(shop.aliases) == {"Reed Kids", "რიდ"}
    assert [one.slug for one in shop.categories] == ["books", "clothes"]
    assert shop.countries == ("AT", "DE", "FR", "GE")
    assert done.joined == 2


def test_of_brands_on_one_domain_the_one_like_it_stays_and_others_are_joined_by_name_or_listed(tmp_path: Path) -> None:
    brands = {
        BOOKS: [
            brand("Reed", "reed-1", "Q1", "de"),
            brand("Reed Express", "reedexpress-2", "Q2", "at"),
            brand("Super Reed", "superreed-3", "Q3", "ch"),
            brand("Otherwise", "otherwise-4", "Q4", "fr", "us"),
            brand("Otherwise Too", "otherwisetoo-5", "Q4", "us"),
        ]
    }
    sites = {
        "Q1": ["reed.example"],
        "Q2": ["express.reed.example"],
        "Q3": ["reed.example"],
        "Q4": ["shop.reed.example"],
    }
    done = converted(tmp_path, brands, sites)
    (shop,) = done.shops
    assert (shop.id, shop.aliases, shop.countries) == ("reed-1", ("Reed Express", "Super Reed"), ("AT", "CH", "DE"))
    assert (done.joined, done.left_out) == (2, {"another brand's shop has the domain": 2})
    with (tmp_path / "shops" / "left-out.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["id", "name", "domain", "shop"],
            ["otherwise-4", "Otherwise", "shop.reed.example", "reed-1"],
        ]


def test_a_site_under_a_countrys_domain_with_the_same_label_is_a_shop_too(tmp_path: Path) -> None:
    sites = ["reed.ch", "reed.com", "reed.co.uk", "reed.uk", "reed.fr", "shop.reed.at", "reed-group.it", "reed.io"]
    done = converted(tmp_path, {BOOKS: [brand("Reed", "reed-1", "Q1", "ch", "gb", "us")]}, {"Q1": sites})
    assert [(shop.id, shop.domain, shop.countries, shop.popularity) for shop in done.shops] == [
        ("reed-1", "reed.com", ("CH", "GB", "US"), 3.0),
        ("reed-1-ch", "reed.ch", ("CH",), 1.0),
        ("reed-1-co-uk", "reed.co.uk", ("GB",), 1.0),
        ("reed-1-fr", "reed.fr", (), 0.0),
        ("reed-1-uk", "reed.uk", ("GB",), 1.0),
    ]
    assert (done.national, done.without_country) == (4, 1)
    assert done.left_out == {"further official sites that are not the main one under a country's domain": 3}


def test_a_brand_of_that_domain_comes_before_another_ones_national_site(tmp_path: Path) -> None:
    brands = {BOOKS: [brand("Reed", "reed-1", "Q1", "001"), brand("Reed", "reed-2", "Q2", "fr")]}
    done = converted(tmp_path, brands, {"Q1": ["reed.com", "reed.fr", "reed.de"], "Q2": ["reed.fr"]})
    assert [(shop.id, shop.domain) for shop in done.shops] == [
        ("reed-1", "reed.com"),
        ("reed-1-de", "reed.de"),
        ("reed-2", "reed.fr"),
    ]


def test_sources_has_the_licence_and_what_popularity_is(tmp_path: Path) -> None:
    done = write_open_data(small_package(tmp_path / "package.tgz"), tmp_path / "shops")
    text = (tmp_path / "shops" / "SOURCES.md").read_text(encoding="utf-8")
    assert text.startswith("# Data: name-suggestion-index 8.0.1 (BSD-3-Clause), Wikidata (CC0)")
    assert "Copyright 2026, contributors" in text
    assert done.data.integrity in text
    assert "number of countries in which a brand is stated to be" in text
    assert "number of countries in which a brand is stated to be" in done.as_text()
    assert (tmp_path / "shops" / "categories.LICENSE").is_file()


def test_a_second_package_replaces_the_first(tmp_path: Path) -> None:
    package = small_package(tmp_path / "package.tgz")
    first, second = (write_open_data(package, tmp_path / "shops") for _ in range(2))
    assert first.as_wire() == second.as_wire()


def test_the_digest_is_compared_before_anything_is_read(tmp_path: Path) -> None:
    package = small_package(tmp_path / "package.tgz")
    stated = write_open_data(package, tmp_path / "shops").data.integrity
    assert write_open_data(package, tmp_path / "shops", stated).data.integrity == stated
    with pytest.raises(CatalogueError, match="and sha512-x is expected: remove it, and fetch it again"):
        write_open_data(package, tmp_path / "shops", "sha512-x")


def _link(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = kind, target
    return link


LICENCE = "package/LICENSE.md"
GOOD = files_of({BOOKS: [brand("Reed", "reed-1", "Q1", "de")]}, {"Q1": ["reed.example"]})
UNLICENSED = {name: text for name, text in GOOD.items() if name != LICENCE}


@pytest.mark.parametrize(
    ("members", "links", "reason"),
    [
        ({}, [], "is not the npm package name-suggestion-index: it has no package.json"),
        ({**GOOD, "package/package.json": b'{"name": "x", "version": "1"}'}, [], "is not the npm package"),
        ({**GOOD, "package/package.json": b"{"}, [], "package.json is not valid JSON"),
        ({**GOOD, "package/dist/json/nsi.min.json": b"[" * 100_000}, [], "is nested more than 32 levels deep"),
        ({**GOOD, "package/dist/json/nsi.min.json": b"[]"}, [], "nsi.min.json has another form"),
        ({**GOOD, "package/dist/json/nsi.min.json": b'{"nsi": {"brands/shop/x": []}}'}, [], "another form"),
        ({**GOOD, "package/dist/json/nsi.min.json": b'{"nsi": {"operators/x": 1}}'}, [], "another form"),
        ({**GOOD, "package/dist/wikidata/wikidata.min.json": b'{"wikidata": {"Q1": 1}}'}, [], "another form"),
        (UNLICENSED, [_link(LICENCE, tarfile.SYMTYPE)], "is not one file"),
        (UNLICENSED, [_link(LICENCE, tarfile.LNKTYPE)], "is not one file"),
        (GOOD, [_link(LICENCE, tarfile.DIRTYPE)], "is not one file"),
    ],
)  # fmt: skip
def test_what_is_not_the_package_is_refused_and_nothing_is_written(
    tmp_path: Path, members: dict[str, bytes], links: list[tarfile.TarInfo], reason: str
) -> None:
    package = pack(tmp_path / "package.tgz", members, *links)
    with pytest.raises(CatalogueError, match=reason):
        write_open_data(package, tmp_path / "shops")
    assert [path.name for path in tmp_path.iterdir()] == ["package.tgz"]


@pytest.mark.parametrize("damaged", [b"", b"PK\3\4", "cut", "changed"])
def test_a_damaged_file_is_refused(tmp_path: Path, damaged: bytes | str) -> None:
    package = small_package(tmp_path / "package.tgz")
    whole = package.read_bytes()
    if isinstance(damaged, str):
        damaged = whole[: len(whole) // 2] if damaged == "cut" else whole[:-8] + b"checksum"
    package.write_bytes(damaged)
    with pytest.raises(CatalogueError, match=r"package\.tgz can't be read as an npm package"):
        write_open_data(package, tmp_path / "shops")
    with pytest.raises(CatalogueError, match="can't be read as an npm package"):
        write_open_data(tmp_path / "nowhere.tgz", tmp_path / "shops")


def test_a_package_is_bounded_in_bytes_members_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pack(tmp_path / "package.tgz", {"package/bomb.js": bytes(3 << 20), **GOOD})
    assert package.stat().st_size < 10_000
    for bound, value, reason in (
        ("MAX_UNPACKED", 2 << 20, "unpacks to more than 2,097,152 bytes"),
        ("MAX_MEMBERS", 3, "has more than 3 members"),
        ("MAX_FILE", 40, "is not one file of at most 40 bytes"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(reading, bound, value)
            with pytest.raises(CatalogueError, match=reason):
                write_open_data(package, tmp_path / "shops")
    write_open_data(package, tmp_path / "shops")


def test_paths_that_lead_out_of_the_package_are_never_written(tmp_path: Path) -> None:
    outside = {"../../escaped": b"x", f"{tmp_path}/escaped": b"x", "package/../package/LICENSE.md": b"x"}
    write_open_data(pack(tmp_path / "package.tgz", {**outside, **GOOD}), tmp_path / "shops")
    assert not list(tmp_path.parent.glob("escaped"))
    assert {path.name for path in tmp_path.rglob("*")} == {
        "package.tgz", "shops", "SOURCES.md", "categories.LICENSE", "categories.ndjson", "left-out.csv", "shops.ndjson",
    }  # fmt: skip
