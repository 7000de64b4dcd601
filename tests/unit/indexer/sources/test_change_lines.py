"""Lines of a change stream: what they say, what is refused and how, and how bytes become lines."""

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.records.faults import RefusedRecordError
from indexer.records.related import RECORDS
from indexer.records.shop import UPDATED_AT, VERSION, Order
from indexer.sources.changes import gather, read_change
from indexer.sources.lines import Line, LineCutter
from indexer.sources.protocol import Change, RefusedChange
from tests.support.catalogues import coupon, offer, policy, program, redirect, shipping, shop, trust

TIMESTAMP = "2031-05-06T07:08:09.000001Z"
MICROSECONDS = 1_935_817_689_000_001
UNVERIFIED_REASON = "must be given where verification_status is verified_applied or verified_rejected"
ACCOUNT = {"provider": "crawl/er", "account": "main"}
RECORDS_AND_KEYS = [
    ("shops", shop("Oak", id="s1"), "s1"),
    ("coupons", {**coupon("TEN", "s1"), "id": "c1"}, "c1"),
    ("offers", offer("o1", "s1"), "o1"),
    ("shipping", shipping("s1"), "s1"),
    ("policies", policy("s1", "returns", "AT"), "s1/returns/AT"),
    ("trust", trust("s1", "registrar", "A Registrar"), "s1/registrar"),
    ("affiliate_programs", program("s1", "The/Network"), "s1/The/Network"),
    ("redirects", redirect("https://WWW.old.internal/x", "müller.internal"), "old.internal/xn--mller-kva.internal"),
    ("resource_accounts", ACCOUNT, "crawl/er/main"),
    ("categories", {"slug": "garden-tools", "names": {"de": "Gartengeräte"}}, "garden-tools"),
]


def _text(**fields: Any) -> bytes:  # noqa: ANN401 - JSON values
    return json.dumps(fields, ensure_ascii=False).encode()


def _upsert(**fields: Any) -> bytes:  # noqa: ANN401 - JSON values
    return _text(**{"op": "upsert", "type": "shops", "record": shop("Oak", id="s1"), **fields})


def _delete(**fields: Any) -> bytes:  # noqa: ANN401 - JSON values
    return _text(**{"op": "delete", "type": "shops", "key": "s1", **fields})


def _change(text: bytes, *, lenient: bool = False) -> Change:
    return read_change(Line(7, text, too_long=False), "changes.ndjson", lenient=lenient)


def _refused(text: bytes, *, lenient: bool = False) -> tuple[str, ...]:
    with pytest.raises(RefusedRecordError) as refused:
        _change(text, lenient=lenient)
    return refused.value.messages


def test_every_type_of_the_catalogue_has_a_case_here() -> None:
    assert [kind for kind, _, _ in RECORDS_AND_KEYS] == list(RECORDS)


@pytest.mark.rule("G3", "F12")
@pytest.mark.parametrize(
    ("kind", "record", "key"), [*RECORDS_AND_KEYS, ("policies", policy("s1", "returns"), "s1/returns")]
)
def test_an_upsert_holds_the_record_under_its_key_and_a_delete_names_that_key(
    kind: str, record: dict[str, Any], key: str
) -> None:
    order, expected = Order(VERSION, 5), RECORDS[kind].model_validate(record)
    upsert = _change(_text(op="upsert", type=kind, record=record, version=5))
    delete = _change(_text(op="delete", type=kind, key=key, version=5))
    assert upsert == Change(kind, key, order, expected, "changes.ndjson:7")
    assert delete == Change(kind, key, order, None, "changes.ndjson:7")


def test_the_hosts_of_a_deleted_redirect_are_reduced_as_those_of_the_record() -> None:
    line = _text(op="delete", type="redirects", key="WWW.Old.internal./MÜLLER.internal:443", version=5)
    assert _change(line).key == "old.internal/xn--mller-kva.internal"


@pytest.mark.parametrize(
    ("kind", "key", "form"),
    [
        ("shops", "", "id"),
        ("shops", "s 1", "id"),
        ("shops", "s1\n", "id"),
        ("coupons", "c" * 65, "id"),
        ("offers", "s1/o1", "id"),
        ("shipping", "s1/", "shop_id"),
        ("policies", "s1", "shop_id/kind/country"),
        ("policies", "s1/returns/", "shop_id/kind/country"),
        ("policies", "s1/returns/UK", "shop_id/kind/country"),
        ("policies", "s1/returns/AT/x", "shop_id/kind/country"),
        ("policies", "s1/refunds/AT", "shop_id/kind/country"),
        ("trust", "s1", "shop_id/kind"),
        ("trust", "s1/", "shop_id/kind"),
        ("trust", "s1/colour", "shop_id/kind"),
        ("trust", "s1/registrar/x", "shop_id/kind"),
        ("affiliate_programs", "s 1/net", "shop_id/network"),
        ("affiliate_programs", "s1/ ", "shop_id/network"),
        ("affiliate_programs", f"s1/{'n' * 301}", "shop_id/network"),
        ("redirects", "old.internal", "from_domain/to_domain"),
        ("redirects", "old.internal/new", "from_domain/to_domain"),
        ("redirects", "old.internal/new.internal/path", "from_domain/to_domain"),
        ("redirects", "https://old.internal/new.internal", "from_domain/to_domain"),
        ("resource_accounts", "/main", "provider/account"),
        ("resource_accounts", "crawler", "provider/account"),
        ("resource_accounts", "/" * 4_000, "provider/account"),
        ("categories", "Garden Tools", "slug"),
        ("categories", "", "slug"),
    ],
)
def test_a_key_of_another_form_is_refused_as_it_would_delete_nothing(kind: str, key: str, form: str) -> None:
    line = _text(op="delete", type=kind, key=key, version=5)
    assert _refused(line) == (f"key must be {form} as in a record",)


@pytest.mark.rule("G3")
def test_the_order_of_an_upsert_is_its_version_else_that_of_its_record_else_its_timestamp() -> None:
    timed = shop("Oak", updated_at=TIMESTAMP)
    assert _change(_upsert(version=3)).order == Order(VERSION, 3)
    assert _change(_upsert(version=0, record=timed)).order == Order(VERSION, 0)
    assert _change(_upsert(record=shop("Oak", version=4))).order == Order(VERSION, 4)
    assert _change(_upsert(record={**timed, "version": 4})).order == Order(VERSION, 4)
    assert _change(_upsert(version=4, record=shop("Oak", version=4))).order == Order(VERSION, 4)
    assert _change(_upsert(version=None, record=timed)).order == Order(UPDATED_AT, MICROSECONDS)
    assert _change(_upsert(version=2**63 - 1)).order == Order(VERSION, 2**63 - 1)


@pytest.mark.rule("G3")
def test_the_order_of_a_delete_is_its_version_else_its_timestamp() -> None:
    assert _change(_delete(version=3)).order == Order(VERSION, 3)
    assert _change(_delete(version=3, updated_at=TIMESTAMP)).order == Order(VERSION, 3)
    assert _change(_delete(updated_at=TIMESTAMP)).order == Order(UPDATED_AT, MICROSECONDS)
    assert _change(_delete(updated_at="2031-05-06T09:08:09.000001+02:00", record=None)).order.number == MICROSECONDS


@pytest.mark.rule("G3", "V1.silent")
@pytest.mark.parametrize(
    ("line", "reasons"),
    [
        # Its order is not known.
        (_upsert(), ("the change needs a version or an updated_at",)),
        (_delete(), ("the change needs a version or an updated_at",)),
        (
            _upsert(version=3, record=shop("Oak", version=4)),
            ("version must be the same in the change and in its record",),
        ),
        (_upsert(version=3, updated_at=TIMESTAMP), ("updated_at must be in the record of an upsert",)),
        (_delete(version=-1), ("version must be at least 0",)),
        (_delete(version=2**63), ("version must be at most 9223372036854775807",)),
        (_delete(version=1.0), ("version must be a whole number",)),
        (_delete(version="1"), ("version must be a whole number",)),
        (_delete(version=True), ("version must be a whole number",)),
        (_delete(updated_at="2031-05-06"), ("updated_at must be a date and time as in RFC 3339",)),
        (_delete(updated_at="zqcanaryzq"), ("updated_at must be a date and time as in RFC 3339",)),
        # No change has this form.
        (b'{"op": "upsert", "key": "zqcanaryzq', ("the line is not valid JSON",)),
        (b'{"op": "up{"op": "delete", "key": "zqcanaryzq"}', ("the line is not valid JSON",)),
        (b'\0\0\0\0{"op": "delete", "key": "zqcanaryzq"}', ("the line is not valid JSON",)),
        (b'{"op": "delete", "op": "zqcanaryzq"}', ("the line has the same key twice in one object",)),
        (b"{}", ("op is missing", "type is missing")),
        (b"[]", ("the line must be an object",)),
        (b"7", ("the line must be an object",)),
        (_delete(op="zqcanaryzq", version=1), ("op must be one of 'upsert' or 'delete'",)),
        (_delete(type="zqcanaryzq", version=1), (f"type must be one of {', '.join(RECORDS)}",)),
        (_delete(type="changes", version=1), (f"type must be one of {', '.join(RECORDS)}",)),
        (_delete(type=None, version=1), ("type must be a string",)),
        (_delete(key=5, version=1), ("key must be a string",)),
        (_delete(key="k" * 5_000, version=1), ("key is longer than 4097 characters",)),
        (_delete(key="zqcanary zq", version=1), ("key must be id as in a record",)),
        (_delete(key=None, version=1), ("key is missing",)),
        (_delete(record=shop("Oak"), version=1), ("record must not be given with delete",)),
        (_delete(key=None, record={}, version=1), ("key is missing", "record must not be given with delete")),
        (_upsert(key="s1", version=1), ("key must not be given with upsert",)),
        (_upsert(record=None, version=1), ("record is missing",)),
        (_upsert(record=[], version=1), ("record must be an object",)),
        (_upsert(record="zqcanaryzq", version=1), ("record must be an object",)),
        (_upsert(record=shop("O", aliases=["zqcanary\0"]), version=1), ("record.aliases.0 holds a control character",)),
        # All of it is reported together.
        (_delete(key=None), ("key is missing", "the change needs a version or an updated_at")),
        (_upsert(key="s1", record={**shop("O"), "version": 1.5}), (
            "key must not be given with upsert", "record.version must be a whole number",
        )),
        (
            _upsert(type="coupons", record={**coupon("TEN", "s1"), "verification_status": "verified_applied"}),
            (
                f"record.last_verified_at {UNVERIFIED_REASON}",
                "the change needs a version or an updated_at",
            ),
        ),
    ],
)  # fmt: skip
def test_what_no_change_can_be_is_refused_with_reasons_that_repeat_no_value(
    line: bytes, reasons: tuple[str, ...]
) -> None:
    assert _refused(line) == reasons
    assert _refused(line, lenient=True) == reasons


def test_unknown_fields_are_refused_unless_lenient() -> None:
    unknown = "is not a known field (--lenient passes over unknown fields)"
    outside = _delete(version=1, colour="red")
    inside = _upsert(version=1, record={**shop("Oak", id="s1"), "colour": "red"})
    assert _refused(outside) == (f"colour {unknown}",)
    assert _refused(inside) == (f"record.colour {unknown}",)
    assert _change(outside, lenient=True) == _change(_delete(version=1))
    assert _change(inside, lenient=True) == _change(_upsert(version=1))


def test_a_refused_line_is_stored_as_it_is_and_bytes_that_are_no_text_as_escapes() -> None:
    cutter = LineCutter()
    cutter.feed(b'\n{"op": "\xff"}\n')
    assert gather(cutter, lambda: False, "in", 9, lenient=False) == (
        (), (RefusedChange("in:2", ("the line is not UTF-8",), '{"op": "\\xff"}'),),
    )  # fmt: skip


def test_a_batch_ends_at_four_mebibytes_however_many_lines_were_asked_for() -> None:
    line = _delete(version=1).ljust(64 * 1024 - 1) + b"\n"
    cutter = LineCutter()

    def refill() -> bool:
        cutter.feed(line)
        return True

    changes, refused = gather(cutter, refill, "in", 1_000, lenient=False)
    assert ([change.location for change in changes], refused) == ([f"in:{number}" for number in range(1, 65)], ())


def _cut(cutter: LineCutter) -> list[Line]:
    lines = list[Line]()
    while line := cutter.cut():
        lines.append(line)
    return lines


@pytest.mark.parametrize("blank", [b"\n", b" \r\n", b"\t" * 100 + b"\n"])
def test_blank_lines_are_skipped_many_at_a_time(blank: bytes) -> None:
    cutter, calls = LineCutter(), 0

    def count(_frame: object, _event: str, _argument: object) -> None:
        nonlocal calls
        calls += 1

    number = 4 * 1024 * 1024 // len(blank)
    cutter.feed(b"a\n" + blank * number + b"b\n")
    sys.setprofile(count)
    try:
        lines = _cut(cutter)
    finally:
        sys.setprofile(None)
    assert lines == [Line(1, b"a", too_long=False), Line(number + 2, b"b", too_long=False)]
    assert calls < 1_000


@given(
    whole=st.lists(
        st.sampled_from([b"", b"", b"\r", b" " * 9, b" " * 11, b"a", b" a", b"0123456789", b"0123456789x", b"y" * 40]),
        max_size=40,
    ),
    last=st.sampled_from([b"", b"z", b"0123456789x"]),
    cuts=st.lists(st.integers(0, 400), max_size=10),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_lines_are_the_same_in_whatever_pieces_they_come(
    whole: list[bytes], last: bytes, cuts: list[int], mark: bytes
) -> None:
    content = mark + b"".join(line + b"\n" for line in whole) + last
    texts = content.removesuffix(b"\n").split(b"\n") if content else []
    expected = [Line(at, text[:10], len(text) > 10) for at, text in enumerate(texts, start=1)]
    expected[:1] = [replace(line, text=line.text.removeprefix(mark)) for line in expected[:1]]
    expected = [line for line in expected if line.too_long or line.text.strip()]
    cutter, lines, taken = LineCutter(longest=10), list[Line](), 0
    for end in [*sorted(min(cut, len(content)) for cut in cuts), len(content)]:
        cutter.feed(content[taken:end])
        taken = end
        lines += _cut(cutter)
        cutter = LineCutter(cutter.number, skipping=cutter.skipping, longest=10) if not cutter._remaining else cutter
    cutter.end()
    assert lines + _cut(cutter) == expected
