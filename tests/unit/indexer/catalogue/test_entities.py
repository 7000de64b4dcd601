"""HTML entities: decoded in a sheet before its cells are split, noted in a catalogue."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from indexer.commands.catalogue import catalogue
from indexer.records.entities import decoded, fields_with_entities, has_entity
from indexer.records.related import CategoryNamesRecord
from tests.unit.indexer.catalogue.imports import Catalogue, Import


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Home &amp; Garden", "Home & Garden"),
        ("L&#39;Atelier", "L'Atelier"),
        ("L&#x27;Atelier", "L'Atelier"),
        ("Dr.&nbsp;Foot", "Dr. Foot"),
        ("Caf&eacute;", "Café"),
        ("A &amp;amp; B", "A & B"),
        ("&lt;b&gt;", "<b>"),
        ("R&D; more", "R&D; more"),
        ("AT&T", "AT&T"),
        ("a=1&copy=2&region=3", "a=1&copy=2&region=3"),
        ("&notanentity;", "&notanentity;"),
        ("& ; &; &#;", "& ; &; &#;"),
    ],
)
def test_only_entities_that_html_knows_and_that_end_are_decoded(text: str, plain: str) -> None:
    assert (decoded(text), has_entity(text)) == (plain, text != plain)


def test_entities_of_a_sheet_are_decoded_before_its_cells_are_split(given: Import) -> None:
    text = (
        "Shop&nbsp;name,website,category,country,aliases\n"
        "Marks &amp; Sons,https://marks.example,Home &amp; Garden,GB,Marks &amp; Sons Outlet;M&amp;S\n"
        "L&#39;Atelier,latelier.example,Mode &amp; Accessoires;B&uuml;cher,C&ocirc;te d&#8217;Ivoire,\n"
    )
    first, second = given.shops(text)
    assert (first["name"], first["aliases"]) == ("Marks & Sons", ["Marks & Sons Outlet", "M&S"])
    assert first["categories"] == [{"slug": "home-garden", "name": "Home & Garden"}]
    assert [category["name"] for category in second["categories"]] == ["Mode & Accessoires", "Bücher"]
    assert (second["name"], second["countries"]) == ("L'Atelier", ["CI"])
    valid = CliRunner().invoke(catalogue, ["validate", str(given.made)])
    assert valid.stdout.startswith("Nothing is wrong.")


def test_entities_of_other_kinds_are_decoded_and_a_code_with_one_is_bad(stocked: Catalogue) -> None:
    text = "shop,code,title,discount,expires\nlamp,E1,Save &pound;5 on Caf&eacute; sets,5 &euro;,2035-12-31\n"
    (record,) = stocked.records("coupons", text)
    assert (record["title"], record["discount"]["currency"]) == ("Save £5 on Café sets", "EUR")
    message = "list.csv:3: code holds an HTML entity: write the character that it stands for: 'A&amp;B15'"
    assert stocked.refused(f"{text}lamp,A&amp;B15,,,\n", "--kind", "coupons").splitlines()[0] == message


def test_an_entity_that_ends_with_the_delimiter_moves_no_limit_into_another_column(stocked: Catalogue) -> None:
    text = 'shop;code;title;countries;source\nlamp;A;Caf&eacute;;DE;\nlamp;B;"Caf&eacute;";DE;crm\nlamp;C;R&D;DE;crm\n'
    reason = "an HTML entity ends with the ; that separates cells: quote cells that hold entities: 'Caf&eacute'"
    assert stocked.refused(text, "--kind", "coupons").splitlines()[0] == f"list.csv:2: {reason}"
    found = stocked.records("coupons", text, "--skip-invalid")
    assert [(one["code"], one["title"], one["countries"]) for one in found] == [
        ("B", "Café", ["DE"]),
        ("C", "R&D", ["DE"]),
    ]


@pytest.mark.rule("V1")
def test_a_status_with_an_entity_is_the_value_that_is_stated(given: Import) -> None:
    text = "name,url,category,status\nA,a.example,X,on &amp; off\nB,b.example,X,live\n"
    meant = ("--map-value", "status:on & off=under_review", "--map-value", "status:live=public")
    assert [shop["visibility"] for shop in given.shops(text, *meant)] == ["under_review", "public"]


@pytest.mark.parametrize("entity", ["&#0;", "&#8238;", "&#10;"])
def test_an_entity_of_a_character_that_no_text_may_hold_makes_a_row_bad(given: Import, entity: str) -> None:
    done = given.run(f"name,url,category\nA{entity}B,a.example,X\n")
    assert done.exit_code == (0 if entity == "&#0;" else 1)  # HTML reads a zero as the replacement character


@pytest.mark.rule("V1.silent")
def test_validate_notes_entities_with_their_number_and_first_line(tmp_path: Path) -> None:
    shop = {
        "id": "a", "name": "A &amp; B", "domain": "a.example", "aliases": ["C&#39;s"], "visibility": "under_review",
        "categories": [{"slug": "x", "name": "X &amp; Y"}],
    }  # fmt: skip
    plain = {**shop, "id": "b", "name": "R&D; plain", "domain": "b.example", "aliases": [], "visibility": "public"}
    plain["categories"] = [{"slug": "z", "name": "Z"}]
    lines = [plain, shop, {**shop, "id": "c", "domain": "c.example", "aliases": []}]
    (tmp_path / "shops.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = CliRunner().invoke(catalogue, ["validate", str(tmp_path), "--json"])
    ending = "first in this one: write the characters that they stand for"
    assert json.loads(done.stdout)["notes"] == [
        f"shops.ndjson:2: name holds HTML entities such as &amp; in 2 records, {ending}",
        f"shops.ndjson:2: aliases holds HTML entities such as &amp; in 1 record, {ending}",
        f"shops.ndjson:2: categories holds HTML entities such as &amp; in 2 records, {ending}",
    ]


def test_entities_are_found_in_the_names_of_a_category_in_other_languages() -> None:
    category = CategoryNamesRecord.model_validate({"slug": "x", "name": "X", "names": {"de": "A &amp; B"}})
    assert list(fields_with_entities(category)) == ["other_names"]
