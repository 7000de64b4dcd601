"""A hostile catalogue: what is refused is reported without its value, what is taken is data and nothing else."""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from indexer.__main__ import index
from service.app import create_app
from service.tools.registry import REGISTRY
from service.tools.tool import response_schema
from tests.rules.hostile import records
from tests.rules.hostile.records import ALIASES, FAMILY, JOINERS, MARKUP, ORDER, REFUSED, SHOP, STACKED, TAKEN, Bad
from tests.support.callers import issue
from tests.support.catalogues import Lines
from tests.support.served import Reply, get, post, served, settings_in, until

_LINES_BOUND_S: Final = 5.0
SCHEMAS: Final = {tool.name: Draft202012Validator(response_schema(tool.response)) for tool in REGISTRY}
FILES: Final[dict[str, tuple[tuple[Bad, ...], Lines]]] = {
    "shops": (records.BAD_SHOPS, records.GOOD_SHOPS),
    "coupons": (records.BAD_COUPONS, records.GOOD_COUPONS),
    "offers": ((), records.GOOD_OFFERS),
    "shipping": ((), records.GOOD_SHIPPING),
    "policies": (records.BAD_POLICIES, records.GOOD_POLICIES),
    "trust": ((), records.GOOD_TRUST),
    "affiliate_programs": (records.BAD_PROGRAMS, records.GOOD_PROGRAMS),
}
HOSTILE_TEXTS: Final = [
    ORDER,
    MARKUP,
    FAMILY,
    JOINERS,
    STACKED,
    ALIASES[0],
    "\x1b[31mred",
    "a\nINFO forged request=0",
    "\u202egnp.exe",
    "\ud800",
    "' OR 1=1 --",
    "*:*",
    "${jndi:x}",
    "../../etc",
    "x" * 5_000,
]


@dataclass(frozen=True, slots=True)
class Built:
    done: Result
    directory: Path


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "catalogue"
    path.mkdir()
    for kind, (bad, good) in FILES.items():
        lines = [*(one.line for one in bad), *(json.dumps(record).encode() for record in good)]
        (path / f"{kind}.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture(scope="module")
def built(catalogue: Path) -> Built:
    return Built(_build(catalogue, "--skip-invalid"), catalogue.parent)


@pytest.fixture(scope="module")
def service(built: Built) -> Iterator[tuple[str, str]]:
    settings = settings_in(built.directory, data_dir=built.directory / "index")
    with served(create_app(settings)) as base:
        yield base, issue(settings.token_file).text


def _build(catalogue: Path, *options: str) -> Result:
    command = ["build", "--catalogue", str(catalogue), "--data-dir", str(catalogue.parent / "index"), *options]
    return CliRunner().invoke(index, command)


def _reported() -> list[str]:
    return [
        f"{kind}.ndjson:{number}: {reported}"
        for kind, (bad, _) in FILES.items()
        for number, one in enumerate(bad, start=1)
        for reported in one.reported
    ]


def _problems(done: Result) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.partition(":")[0].endswith(".ndjson")]


@pytest.mark.rule("V1.silent", "E6")
def test_bad_records_are_reported_by_file_line_and_field_and_never_by_their_value(built: Built) -> None:
    assert built.done.exit_code == 0
    assert _problems(built.done) == _reported()
    assert REFUSED not in built.done.output


@pytest.mark.rule("G1", "V1.silent")
def test_without_skipping_them_nothing_is_built_and_the_same_is_reported(catalogue: Path, tmp_path: Path) -> None:
    command = ["build", "--catalogue", str(catalogue), "--data-dir", str(tmp_path / "index")]
    done = CliRunner().invoke(index, command)
    assert (done.exit_code, _problems(done)) == (1, _reported())
    assert not (tmp_path / "index" / "live").exists()


@pytest.mark.rule("V1.silent")
def test_no_escape_sequence_reaches_the_console(built: Built) -> None:
    for text in (built.done.stdout, built.done.stderr):
        assert [line for line in text.splitlines() if not line.isprintable()] == []
    assert "published" in built.done.stdout.lower()


@pytest.mark.rule("V1.silent")
@pytest.mark.parametrize("name", ["sh\x1b[31mops.ndjson", "sh\nops.ndjson", "sh\u202eops.ndjson"])
def test_a_files_name_writes_nothing_but_text_to_the_console(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir()
    (folder / "shops.ndjson").write_bytes(b"")
    (folder / name).write_bytes(b"")
    done = _build(folder)
    assert done.exit_code == 1
    assert "is no known type" in done.output
    assert [line for line in done.output.splitlines() if not line.isprintable()] == []
    assert len(done.output.splitlines()) == 1


@pytest.mark.rule("A10", "I65")
def test_only_the_url_that_leads_to_the_shop_is_handed_out(service: tuple[str, str]) -> None:
    base, _ = service
    for number in range(len(records.URLS)):
        reply = post(base, "/tool/resolve_checkout_url", {"offer_id": f"off_{number:02d}"})
        assert (records.URLS[number], reply.json["code"]) == (records.URLS[number], "no_valid_checkout_url")
    valid = post(base, "/tool/resolve_checkout_url", {"offer_id": "off_valid"})
    assert (valid.status, valid.json["checkout_url"]) == (200, records.VALID_URL)


@pytest.mark.rule("I5", "I10", "A1", "A13")
def test_text_that_looks_like_instructions_or_markup_is_a_json_string_as_it_was_stated(
    service: tuple[str, str],
) -> None:
    base, token = service
    shown = post(base, "/tool/get_shop", {"shop_domain": SHOP}).json
    assert (shown["name"], shown["aliases"]) == (ORDER, ALIASES)
    assert {offer["title"] for offer in shown["offers"]} == {ORDER, MARKUP}
    names = {own: post(base, "/tool/get_shop", {"shop_domain": own}).json["name"] for own in _ids()}
    assert names == {line["id"]: line["name"] for line in records.GOOD_SHOPS}
    coupons = post(base, "/tool/list_coupons", {"shop_domain": SHOP}).json
    titles = {coupon["code"]: coupon["title"] for coupon in coupons["results"]}
    assert titles == {"TAKEN10": ORDER, "$&%!*": MARKUP, "FOREVER": FAMILY}
    trust = post(base, "/tool/get_trust", {"shop_domain": SHOP}, x_api_token=token).json
    assert [(signal["value"], signal["source"]) for signal in trust["signals"]] == [
        (ORDER, MARKUP),
        ([MARKUP, FAMILY], JOINERS),
    ]


@pytest.mark.rule("R1", "I10")
def test_a_shop_that_only_looks_like_another_one_is_another_one(service: tuple[str, str]) -> None:
    base, _ = service
    asked: dict[str, str | None] = {"hostile-goods.internal": SHOP, "һostile-goods.internal": "shop_lookalike"}
    asked |= {
        "hostile-goods.internal.evil.internal": "shop_suffix",
        "https://hostile-goods.internal@evil.internal": None,
    }
    found = {text: post(base, "/tool/get_shop", {"shop_domain": text}).json.get("id") for text in asked}
    assert found == asked


@pytest.mark.rule("E6", "E5", "I5", "A1", "A2", "A4", "A7", "A8", "A10", "A11", "A12")
def test_every_answer_of_every_tool_fits_its_schema_or_is_a_problem_and_every_log_line_is_one(
    service: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    base, token = service
    caplog.set_level(logging.INFO)
    answered = set()
    for tool, arguments in _calls():
        reply = post(base, f"/tool/{tool}", arguments, x_api_token=token)
        if reply.status == 200:
            SCHEMAS[tool].validate(reply.json)
            answered.add(tool)
        else:
            assert (tool, reply.status in {400, 404}) == (tool, True), reply.body
            assert reply.headers["content-type"] == "application/problem+json"
        assert _is_plain_json(reply)
    assert answered == set(SCHEMAS)
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")

    def lines() -> list[str]:
        return [formatter.format(record) for record in caplog.records if record.name.startswith("service")]

    # A call's line is written when its answer has been sent, in the service's thread.
    until(lambda: len(lines()), lambda count: count >= len(_calls()), _LINES_BOUND_S)
    assert len(lines()) == len(_calls())
    assert [line for line in lines() if not line.isprintable() or TAKEN in line or "forged" in line] == []


@pytest.mark.rule("I72", "M9")
def test_suggestions_hold_hostile_names_as_data(service: tuple[str, str]) -> None:
    base, _ = service
    found = get(base, f"/suggest?q={TAKEN}&limit=20").json
    assert {suggested["name"] for suggested in found["shops"]} == {line["name"] for line in records.GOOD_SHOPS}
    assert {suggested["id"] for suggested in found["shops"]} == set(_ids())
    assert all(0 <= suggested["score"] <= 10 for suggested in found["shops"])


def _ids() -> list[str]:
    return [line["id"] for line in records.GOOD_SHOPS]


def _calls() -> list[tuple[str, Mapping[str, Any]]]:
    references = [*_ids(), *HOSTILE_TEXTS]
    calls: list[tuple[str, Mapping[str, Any]]] = [("list_categories", {}), ("list_coupons", {})]
    for text in references:
        named = {"shop_domain": text}
        calls += [(tool, named) for tool in ("get_shop", "list_coupons", "get_trust")]
        calls += [
            ("get_shops", {"shop_domains": [SHOP, text]}),
            ("find_shop", {"query": text}),
            ("find_shop", {"query": "", "category": text}),
            ("get_shipping_policy", {**named, "country": "DE"}),
            ("get_shop_policies", {**named, "country": "DE"}),
            ("report_code", {**named, "code": "TAKEN10", "reason": "invalid"}),
            ("report_code", {"shop_domain": SHOP, "code": text, "reason": "invalid"}),
            ("report_issue", {**named, "subject_type": "shop", "reason": "unreachable"}),
            ("resolve_conflict", {"from_shop_id": text}),
            ("resolve_conflict", {"from_shop_id": SHOP, "to_shop_id": text}),
            ("monetize_offer", {"offer_id": text}),
            ("resolve_checkout_url", {"offer_id": text}),
            ("get_shop", {text[:70]: text}),
        ]
    calls += [(tool, {"offer_id": "off_valid"}) for tool in ("monetize_offer", "resolve_checkout_url")]
    return calls


def _is_plain_json(reply: Reply) -> bool:
    """Strings hold hostile text; outside of them JSON is what it is, and no raw control character is anywhere."""
    return json.loads(reply.body) is not None and not any(byte < 0x20 for byte in reply.body)
