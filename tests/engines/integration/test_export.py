"""`shop-directory export`: what callers get, from the live generation of either engine, and nothing hidden."""

import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.values import microseconds
from indexer.catalogue import export as exporting
from indexer.catalogue.export import ExportOptions, export
from indexer.catalogue.validation import validate
from indexer.commands.parts import SAMPLE
from indexer.records.problems import CatalogueError, Problem
from indexer.sinks.failures import SinkError
from indexer.sinks.protocol import Sink
from indexer.state.state import StateError
from service.runtime.caller import Channel
from shop_directory.search.protocol import CouponQuery
from tests.engines.conftest import Engine
from tests.support.catalogues import build_into, coupon, offer, shop, write_catalogue_directory

NOW: Final = datetime.now(UTC)


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{kind}.ndjson").read_text(encoding="utf-8").splitlines()]


def assert_valid(folder: Path, public: int) -> None:
    problems: list[Problem] = []
    found = validate(folder, problems.append)
    assert (problems, found.public_shops) == ([], public)


@pytest.mark.rule("V1")
async def test_the_export_is_what_callers_get_and_a_catalogue_without_anything_hidden(
    engine: Engine, tmp_path: Path
) -> None:
    build_into(engine.sink, SAMPLE)
    folder = tmp_path / "public"
    manifest = export(engine.sink, folder, ExportOptions(licence="CC0"), NOW)
    assert_valid(folder, 280)
    stated = {line["id"]: line for line in map(json.loads, (SAMPLE / "shops.ndjson").read_text("utf-8").splitlines())}
    shops = {line["id"]: line for line in lines(folder, "shops")}
    assert shops.keys() == {shop_id for shop_id, line in stated.items() if line["visibility"] == "public"}
    everything = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    # Hidden shops and all that belongs to them say this word in the sample; networks and programmes have these.
    assert b"quillomere" not in everything.lower()
    programs = [json.loads(line) for line in (SAMPLE / "affiliate_programs.ndjson").read_text("utf-8").splitlines()]
    texts = {one[field] for one in programs for field in ("network", "url_template") if one["shop_id"] in shops}
    assert [text for text in texts if text.encode() in everything] == []
    assert {path.name for path in folder.iterdir()} == {
        "LICENCE.txt", "manifest.json", "coupons.ndjson", "offers.ndjson", "policies.ndjson", "shipping.ndjson",
        "shops.ndjson",
    }  # fmt: skip
    assert manifest == json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for file in manifest["files"]:
        content = (folder / file["name"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), sha256(content).hexdigest())
    snapshot = await engine.backend.snapshot()
    for shop_id, line in shops.items():
        found = await snapshot.shop(shop_id)
        assert found is not None
        assert (found.name, found.domain, found.countries) == (
            line["name"],
            line["domain"],
            tuple(line.get("countries", ())),
        )
        asked = CouponQuery((shop_id,), microseconds(NOW), Channel.REST.value, None, None)
        (coupons,) = await snapshot.coupons(asked)
        assert coupons is not None
        views = {view["code"] for view in coupons.views or ()}
        assert {one["code"] for one in lines(folder, "coupons") if one["shop_id"] == shop_id} <= views


BLOCKED: Final = {"blocked_channels": ["mcp"]}


@pytest.mark.rule("V1")
def test_codes_that_are_not_for_everybody_now_are_left_out_and_counted(engine: Engine, tmp_path: Path) -> None:
    reserved = shop("Reserved", "reed.example", id="s2")
    shops = [shop("Reed", "reed.internal", id="s1", checkout_hosts=["pay.internal"]), reserved]
    day = timedelta(days=1)
    coupons = [
        coupon("GOOD", "s1", valid_until=(NOW + day).isoformat(), valid_from=(NOW - day).isoformat()),
        coupon("REJECTED", "s1", verification_status="verified_rejected", last_verified_at=NOW.isoformat()),
        coupon("CHANNEL", "s1", **BLOCKED),
        coupon("COUNTRY", "s1", blocked_countries=["DE"]),
        coupon("OLD", "s1", valid_until=(NOW - day).isoformat()),
        coupon("LATER", "s1", valid_from=(NOW + day).isoformat()),
        coupon("RESERVED", "s2"),
    ]
    offers = [offer("o1", "s1", url="https://pay.internal/x"), offer("o2", "s1", url="https://www.reed.internal/y")]
    source = write_catalogue_directory(tmp_path / "source", shops=shops, coupons=coupons, offers=offers)
    build_into(engine.sink, source)
    folder = tmp_path / "public"
    manifest = export(engine.sink, folder, ExportOptions(), NOW)
    assert [line["code"] for line in lines(folder, "coupons")] == ["GOOD"]
    assert manifest["left_out_coupons"] == {
        "blocked": 2, "expired": 1, "not valid yet": 1, "rejected": 1, "reserved": 1,
    }  # fmt: skip
    assert manifest["licence"] is None
    assert lines(folder, "shops")[0]["checkout_hosts"] == ["pay.internal"]
    assert_valid(folder, 2)
    # A mirror hands out the same links.
    build_into(engine.sink, folder)
    export(engine.sink, tmp_path / "mirror", ExportOptions(), NOW)
    for kind in ("shops", "coupons", "offers"):
        assert lines(tmp_path / "mirror", kind) == lines(folder, kind)


@pytest.mark.rule("V3")
@pytest.mark.parametrize("kind", ["shops", "coupons", "policies"])
def test_a_shop_that_is_hidden_during_the_run_is_in_no_file(
    engine: Engine, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shops = [shop("Quillomere", id="s1"), shop("Reed", id="s2")]
    coupons = [coupon("QUILLOMERE", "s1"), coupon("REED", "s2")]
    offers = [offer("Quillomere-o", "s1"), offer("o2", "s2")]
    source = write_catalogue_directory(tmp_path / "source", shops=shops, coupons=coupons, offers=offers)
    build_into(engine.sink, source)
    written = exporting._write

    def hiding(folder: Path, asked: str, *more: Any) -> object:  # noqa: ANN401 - the arguments of any version
        if asked == kind:
            hide(engine.sink, "s1")
        return written(folder, asked, *more)

    monkeypatch.setattr(exporting, "_write", hiding)
    folder = tmp_path / "public"
    manifest = export(engine.sink, folder, ExportOptions(), NOW)
    assert b"quillomere" not in b"".join(path.read_bytes() for path in folder.iterdir()).lower()
    assert [line["id"] for line in lines(folder, "shops")] == ["s2"]
    assert {file["name"]: file["records"] for file in manifest["files"] if file["records"]} == {
        "coupons.ndjson": 1, "offers.ndjson": 1, "shops.ndjson": 1,
    }  # fmt: skip


def hide(sink: Sink, shop_id: str) -> None:
    """Remove a shop's documents, as following does when it goes under review."""
    live = sink.live()
    assert live is not None
    with closing(sink.edit(live.generation)) as editor:
        editor.write("shops", [], [shop_id])
        editor.write("facts", [], [shop_id])
        for kind in ("coupons", "offers"):
            editor.remove_of_shops(kind, [shop_id])
        editor.show()
        editor.commit(replace(live, sequence=live.sequence + 1))


def test_measured_facts_are_written_only_where_they_are_asked_for(engine: Engine, tmp_path: Path) -> None:
    build_into(engine.sink, SAMPLE)
    export(engine.sink, tmp_path / "public", ExportOptions(with_trust=True), NOW)
    assert_valid(tmp_path / "public", 280)
    assert {line["kind"] for line in lines(tmp_path / "public", "trust")} >= {"tls_issuer", "tls_grade"}


def test_an_earlier_export_is_replaced_and_anything_else_is_not(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no generation that can be read is live"):
        export(engine.sink, tmp_path / "public", ExportOptions(), NOW)
    build_into(engine.sink, write_catalogue_directory(tmp_path / "source", shops=[shop("Reed", id="s1")]))
    folder = tmp_path / "public"
    folder.mkdir()
    for _ in range(2):
        export(engine.sink, folder, ExportOptions(), NOW)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "shops.ndjson").touch()
    with pytest.raises(CatalogueError, match="holds something else than an export"):
        export(engine.sink, tmp_path / "mine", ExportOptions(), NOW)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["shops.ndjson"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_another_generation_during_the_run_ends_it_and_the_earlier_export_stays(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_catalogue_directory(tmp_path / "source", shops=[shop("Reed", id="s1")])
    build_into(engine.sink, source)
    folder = tmp_path / "public"
    before = export(engine.sink, folder, ExportOptions(), NOW)
    written = exporting._write

    def building(target: Path, asked: str, *more: Any) -> object:  # noqa: ANN401 - the arguments of any version
        if asked == "coupons":
            build_into(engine.sink, source)
        return written(target, asked, *more)

    monkeypatch.setattr(exporting, "_write", building)
    with pytest.raises(SinkError, match="another generation was published during the export"):
        export(engine.sink, folder, ExportOptions(), NOW)
    assert json.loads((folder / "manifest.json").read_text(encoding="utf-8")) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
