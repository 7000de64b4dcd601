"""An operator's day with a messy workbook of 1,500 real shops: nothing that is hidden is public at any step."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from indexer.__main__ import index
from indexer.commands.catalogue import catalogue
from service.app import create_app
from tests.people.spreadsheets.workbooks import SHOPS, Shop, read_shops, write_codes, write_shipping, write_shops
from tests.support.served import post, served, settings_in, until, until_ready

STATUS: Final = ("--map-value", "Status:aktiv=public", "--map-value", "Status:gesperrt=under_review")
# By which a reader sees a change at the latest, on a busy machine.
SEEN_S: Final = 60.0
_PAGE: Final = 100
QUOTA: Final = {"reads": 100_000, "suggest": 1_200, "reports": 0}


class Day:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = folder / "site"

    def imports(self, file: Path, *options: str) -> str:
        done = CliRunner().invoke(catalogue, ["from-csv", str(file), str(self.made), *options])
        assert done.exit_code == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
        return done.stdout

    def index(self, command: str, *words: str) -> None:
        where = ("--data-dir", str(self.folder / "index"))
        done = CliRunner().invoke(index, [command, *words, *where])
        assert done.exit_code == 0, (done.stdout[-2_000:], done.stderr[-2_000:])

    def build(self) -> None:
        self.index("build", "--catalogue", str(self.made))


def shown(base: str, domains: list[str]) -> dict[str, str | None]:
    """The names of the shops of domains as callers see them, None where there is no such shop."""
    found: dict[str, str | None] = {}
    for at in range(0, len(domains), _PAGE):
        asked = domains[at : at + _PAGE]
        answer = post(base, "/tool/get_shops", {"shop_domains": asked}).json
        found |= {one["shop_domain"]: one["shop"] and one["shop"]["name"] for one in answer["results"]}
    return found


def check(base: str, shops: Iterable[Shop], hidden: set[str]) -> None:
    """Wait until as many shops are public as should be; none that is hidden is, nor a code of it."""
    public = {shop.domain for shop in shops} - hidden
    answer = until(
        lambda: post(base, "/tool/find_shop", {"query": "", "limit": 1}).json,
        lambda found: found["total_count"] == len(public),
        SEEN_S,
        pause=1.0,
    )
    assert answer["total_count"] == len(public)
    assert set(shown(base, sorted(hidden)).values()) == {None}
    codes = post(base, "/tool/list_coupons", {}).json
    assert codes["results"]
    assert hidden.isdisjoint(code["shop"]["domain"] for code in codes["results"])
    for domain in sorted(hidden)[:2]:
        assert post(base, "/tool/get_shipping_policy", {"shop_domain": domain}).status == 404


@pytest.mark.rule("V1", "V3")
@pytest.mark.dev_data
def test_a_workbook_is_imported_edited_hidden_shown_and_rolled_back(dev_data: Path, tmp_path: Path) -> None:
    shops = read_shops(dev_data)
    hidden = {shop.domain for shop in shops if shop.suspended}
    book, saved = tmp_path / "shops.xlsx", str(tmp_path / "mapping.toml")
    day = Day(tmp_path)
    refused = CliRunner().invoke(catalogue, ["from-csv", str(write_shops(book, shops)), str(day.made)])
    assert (refused.exit_code, "looks as if it said which shops are suspended" in refused.stderr) == (1, True)

    printed = day.imports(book, *STATUS, "--save-mapping", saved)
    assert f"Wrote {SHOPS:,} shops ({len(hidden)} of them not public)" in printed
    assert " more rows with other entries joined to them; " in printed
    codes = write_codes(tmp_path / "codes.xlsx", shops)
    printed = day.imports(codes, "--kind", "coupons", "--ignore", "Angelegt", "--save-mapping", saved)
    assert "Dates of 'Gültig bis' are read day first (dmy), as '" in printed
    day.imports(write_shipping(tmp_path / "shipping.xlsx", shops), "--kind", "shipping")
    lines = map(json.loads, (day.made / "shops.ndjson").read_text(encoding="utf-8").splitlines())
    assert {line["domain"]: set(line["countries"]) for line in lines} == {
        shop.domain: set(shop.countries) for shop in shops
    }
    day.build()

    with served(create_app(settings_in(tmp_path, data_dir=tmp_path / "index", quota_anonymous=QUOTA))) as base:
        until_ready(base)
        check(base, shops, hidden)

        renamed, withdrawn, taken_down = (shop for shop in shops[1:4])
        renamed.name, withdrawn.suspended = f"{renamed.name} Zwei", True
        hidden.add(withdrawn.domain)
        day.imports(write_shops(book, shops), "--mapping", saved)
        day.build()
        check(base, shops, hidden)
        assert shown(base, [renamed.domain]) == {renamed.domain: renamed.name}

        day.index("hide", taken_down.domain)
        check(base, shops, {*hidden, taken_down.domain})
        later = shops[4]
        taken_down.name, later.suspended = f"{taken_down.name} Drei", True
        hidden.add(later.domain)
        day.imports(write_shops(book, shops), "--mapping", saved)
        day.build()
        check(base, shops, {*hidden, taken_down.domain})
        day.index("show", taken_down.domain)
        check(base, shops, hidden)
        assert shown(base, [taken_down.domain]) == {taken_down.domain: taken_down.name}
        taken_down.name = f"{taken_down.name} Vier"
        day.imports(write_shops(book, shops), "--mapping", saved)
        day.build()
        edited = {taken_down.domain: taken_down.name}
        assert until(lambda: shown(base, [*edited]), lambda found: found == edited, SEEN_S, pause=1.0) == edited
        check(base, shops, hidden)
        # A sheet without the column publishes nothing that the catalogue hides.
        day.imports(write_shops(book, shops), "--mapping", saved, "--map", "Status=")
        day.index("rollback", "--catalogue", str(day.made))
        check(base, shops, hidden)
