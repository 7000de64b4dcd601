"""`catalogue validate`: everything that is wrong, what a build would leave out, and nothing of any value."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from indexer.catalogue.new_catalogue import write_starter
from indexer.catalogue.validation import validate
from indexer.commands.catalogue import catalogue
from indexer.commands.parts import SAMPLE
from tests.support.catalogues import (
    coupon,
    offer,
    redirect,
    shipping,
    shop,
    trust,
    write_catalogue,
    write_catalogue_directory,
)

CANARY: Final = "zqcanaryzq"
LAMP, BOOK = shop("Lamp", id="lamp"), shop("Book", id="book")


def run(path: Path, *options: str) -> Result:
    """The command on a catalogue."""
    return CliRunner().invoke(catalogue, ["validate", str(path), *options])


def as_json(path: Path, *options: str) -> dict[str, Any]:
    """What it prints as JSON."""
    printed: dict[str, Any] = json.loads(run(path, "--json", *options).stdout)
    return printed


def test_a_good_catalogue_is_counted_by_kind(tmp_path: Path) -> None:
    write_starter(tmp_path / "starter")
    done = run(tmp_path / "starter")
    said = (
        "Nothing is wrong. Valid records: 4 shops, 2 coupons, 2 offers, 2 shipping, 3 trust, 1 affiliate_programs,"
        " 1 redirects, 1 resource_accounts, 2 categories; 3 public shops.\n"
    )
    assert (done.exit_code, done.stdout) == (0, said)


def test_the_sample_and_one_file_of_shops_are_good() -> None:
    whole = as_json(SAMPLE)
    assert (whole["valid"], [note for note in whole["notes"] if "the id of no valid record" in note]) == (True, [])
    single = as_json(SAMPLE / "shops.ndjson")
    assert (single["valid"], single["records"]) == (True, {"shops": 300})


@pytest.mark.rule("V1.silent")
def test_every_problem_of_every_file_is_listed_by_file_line_and_field_without_its_value(tmp_path: Path) -> None:
    bad = [{**LAMP, "id": f"s{number}", "domain": CANARY} for number in range(150)]
    write_catalogue_directory(
        tmp_path, shops=[LAMP, *bad], coupons=[coupon("A", "lamp", verification_status=CANARY)],
        changes=[{"op": "delete", "type": "shops", "key": f"{CANARY} x", "version": 1}, {"op": CANARY}],
    )  # fmt: skip
    done = run(tmp_path, "--json")
    printed = json.loads(done.stdout)
    host = "must be a host name with at least two labels"
    status = "must be one of 'verified_applied', 'verified_rejected' or 'unverified'"
    assert (done.exit_code, CANARY in done.output) == (1, False)
    assert printed.pop("problems") == [
        *({"file": "shops.ndjson", "line": line, "field": "domain", "reason": host} for line in range(2, 152)),
        {"file": "coupons.ndjson", "line": 1, "field": "verification_status", "reason": status},
        {"file": "changes.ndjson", "line": 1, "field": "key", "reason": "must be id as in a record"},
        {"file": "changes.ndjson", "line": 2, "field": "op", "reason": "must be one of 'upsert' or 'delete'"},
        {"file": "changes.ndjson", "line": 2, "field": "type", "reason": "is missing"},
    ]
    assert printed == {
        "valid": False, "bad_records": 153, "records": {"shops": 1, "coupons": 0, "changes": 0}, "public_shops": 1,
        "notes": [],
    }  # fmt: skip
    text = run(tmp_path).stdout.splitlines()
    assert text[0] == f"shops.ndjson:2: domain {host}"
    assert (len(text), text[-1].startswith("154 problems in 153 records.")) == (155, True)


def test_a_key_that_comes_twice_without_versions_is_a_problem_as_in_a_build(tmp_path: Path) -> None:
    write_catalogue_directory(tmp_path, shops=[LAMP, LAMP], offers=[offer("o", "lamp"), offer("o", "lamp")])
    reason = "is already the key of line 1, and no version says which of them is newer"
    assert [(found["file"], found["line"], found["reason"]) for found in as_json(tmp_path)["problems"]] == [
        ("shops.ndjson", 2, reason), ("offers.ndjson", 2, reason),
    ]  # fmt: skip


def test_a_public_shop_with_more_than_200_forms_is_noted_and_valid(tmp_path: Path) -> None:
    aliases = [f"{'a' * length}b" for length in range(100, 150)]
    shops = [
        {**LAMP, "aliases": aliases},  # fewer than 60 forms
        shop("Many", id="many", aliases=[f"one {alias} two" for alias in aliases]),
        shop("Hidden", id="hidden", aliases=[f"one {alias} two" for alias in aliases], visibility="under_review"),
    ]
    note = (
        "shops.ndjson:2: name and aliases have 206 forms, by which the shop is found; over 200 make searches slower "
        "and the index larger: leave out aliases that nobody types"
    )
    done = as_json(write_catalogue(tmp_path / "shops.ndjson", shops))
    assert (done["valid"], done["notes"]) == (True, [note])


def test_notes_name_what_a_build_would_leave_out(tmp_path: Path) -> None:
    hidden = shop("Hidden", id="h", visibility="removed")
    write_catalogue_directory(
        tmp_path,
        shops=[LAMP, {**BOOK, "domain": LAMP["domain"], "popularity": 0.5}, hidden],
        coupons=[coupon("A", "unknown"), coupon("B", "h"), coupon("C", "book")],
        redirects=[redirect("a.example", "b.example")],
    )  # fmt: skip
    done = as_json(tmp_path)
    assert (done["valid"], done["public_shops"]) == (True, 1)
    assert done["notes"] == [
        "coupons.ndjson: 2 records belong to no public shop and would be left out",
        "redirects.ndjson: 1 records belong to no public shop and would be left out",
        "coupons.ndjson:1: shop_id is the id of no valid record of shops.ndjson",
        "shops.ndjson:1: left out, its domain belongs to the shop of line 2",
    ]


def test_notes_name_what_is_valid_and_hardly_meant(tmp_path: Path) -> None:
    write_catalogue_directory(
        tmp_path,
        shops=[LAMP],
        coupons=[
            coupon("A", "lamp", valid_from="2031-05-07", valid_until="2031-05-06"),
            coupon("B", "lamp", valid_from="2031-05-06", valid_until="2031-05-06"),
        ],
        shipping=[shipping("lamp", delivery_time={"min_days": 5, "max_days": 4})],
        trust=[
            trust("lamp", "payment_methods", "card"),
            trust("lamp", "tls_grade", ["A"]),
            trust("lamp", "registrar", "One"),
        ],
        categories=[
            {
                "slug": LAMP["categories"][0]["slug"],
                "names": {"ja": "本"},
                "synonyms": ["PC", "!!", "a b c d e f g", "tv set"],
            }
        ],
    )
    assert as_json(tmp_path)["notes"] == [
        "coupons.ndjson:1: valid_from is after valid_until, so the code is never valid",
        "shipping.ndjson:1: delivery_time.min_days is greater than max_days",
        "trust.ndjson:1: value of payment_methods is one text, and a list is meant",
        "trust.ndjson:2: value of tls_grade is a list, and one text is meant",
        "categories.ndjson:1: no words find the name or synonym '!!'",
        "categories.ndjson:1: no words find the name or synonym 'a b c d e f g'",
    ]
    many = [coupon(f"C{at}", "lamp", valid_from="2031-05-07", valid_until="2031-05-06") for at in range(23)]
    write_catalogue_directory(tmp_path, shops=[LAMP], coupons=many)
    assert as_json(tmp_path)["notes"][20] == "coupons.ndjson: 3 more records or names like these"


def test_a_catalogue_without_public_shops_is_a_problem_as_in_a_build(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "shops.ndjson", [shop("Hidden", visibility="under_review")])
    reason = "holds no shop that would be public; --allow-empty builds it nevertheless"
    assert as_json(tmp_path)["problems"] == [{"file": "shops.ndjson", "line": None, "field": None, "reason": reason}]


def test_a_damaged_file_is_a_problem_and_the_document_is_whole(tmp_path: Path) -> None:
    (tmp_path / "shops.ndjson.gz").write_bytes(gzip.compress(json.dumps(LAMP).encode())[:-4])
    done = as_json(tmp_path)
    (found,) = done["problems"]
    assert (found["line"], "is damaged or truncated" in found["reason"]) == (None, True)
    assert (done["valid"], done["records"]) == (False, {})


def test_changes_may_be_named_and_lenient_passes_over_unknown_fields(tmp_path: Path) -> None:
    shops = write_catalogue(tmp_path / "shops.ndjson", [LAMP])
    change = {"op": "delete", "type": "shops", "key": "lamp", "version": 1, "by": "me"}
    changes = write_catalogue(tmp_path / "today.ndjson", [change])
    assert [found["field"] for found in as_json(shops, "--changes", str(changes))["problems"]] == ["by"]
    assert as_json(shops, "--changes", str(changes), "--lenient")["records"] == {"shops": 1, "changes": 1}
    missing = run(shops, "--changes", str(tmp_path / "none"))
    assert (missing.exit_code, "there is no file of changes at " in missing.stderr) == (1, True)


def test_no_catalogue_at_all_is_exit_code_1(tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere", "--json")
    advice = "give a directory of NDJSON files or one file of shops"
    message = f"Nothing was validated: there is no catalogue at {tmp_path / 'nowhere'}: {advice}."
    assert (done.exit_code, done.stdout) == (1, "")
    assert json.loads(done.stderr) == {"error": {"code": "bad_input", "message": message}}


def test_memory_does_not_grow_with_the_catalogue_or_its_problems(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.ndjson"
        write_catalogue(
            path, (shop(f"S{number}", id=f"s{number}", popularity=-(number % 2)) for number in range(count))
        )
        tracemalloc.start()
        validate(path, lambda _: None)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # what is made once is made now
    # The catalogue has four megabytes; threads of other tests may allocate meanwhile.
    assert peak(20_000) < peak(400) + 2_000_000
