"""Values: timestamps (A4), codes (A9), hosts in every form people paste, and where statements ship to (A7)."""

import json
import re
import socket
import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.countries import (
    COUNTRY_CODES,
    DESTINATIONS,
    GROUP_NAMES,
    GROUPS,
    TERRITORIES,
    WORLDWIDE,
    groups_of,
    shipping_terms,
    ships_to,
)
from index_mappings.hosts import DomainParts, country_of, domain_parts, has_dot, reduce_host, unicode_host
from index_mappings.values import (
    CODE_PATTERN,
    FAR_AHEAD,
    LONG_AGO,
    microseconds,
    normal_code,
    optional_timestamp,
    wire_timestamp,
)

PUNCTUATION: Final = "._+*%!#&$/@-"
CODES: Final = ("A", "aZ09" + PUNCTUATION, "ÄRGER10", "скидка", "初回割引", "خصم٢٠", "छूट", "９９", "½", "a" * 64)
NO_CODES: Final = (
    "", " ", "A B", "A\n", "a" * 65, "<b>", "a=b", "a,b", "a;b", "~", "'", '"', "`", "😀", "–", "€5", "\x00", "\ud800",
)  # fmt: skip
# Letters and marks that are invisible: Default_Ignorable_Code_Point without the format characters.
INVISIBLE: Final = (
    "\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u180b", "\u180f", "\u3164", "\ufe0f", "\uffa0", "\U000e0100",
)  # fmt: skip
FORMAT: Final = ("\u00ad", "\u200b", "\u200d", "\u202e", "\u2060", "\ufeff", "\U000e0041")
# Away from the ends of the calendar, so that every zone has a date for them.
timestamps = st.integers(-62_000_000_000_000_000, 253_000_000_000_000_000).map(
    lambda since: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since)
)


@pytest.mark.rule("A9")
def test_letters_marks_and_numbers_of_any_script_are_a_code_and_the_rest_is_not() -> None:
    assert [normal_code(text) for text in CODES] == list(CODES)
    refused = (*NO_CODES, *(f"A{char}B" for char in (*INVISIBLE, *FORMAT)))
    assert [text for text in refused if normal_code(text) is not None] == []


@pytest.mark.rule("A9")
def test_a_code_is_normalised_before_its_length_is_counted() -> None:
    assert normal_code("A\u0308RGER") == "ÄRGER"
    assert normal_code("e\u0301" * 64) == "é" * 64
    assert normal_code("e\u0301" * 65) is None
    # Excluded from composition, so that 33 characters are 66 in NFC.
    assert normal_code("\u0958" * 33) is None


@pytest.mark.rule("A9")
@given(st.text(max_size=70))
def test_whatever_is_a_code_fits_the_pattern_and_stays_as_it_is(text: str) -> None:
    code = normal_code(text)
    if code is not None:
        assert normal_code(code) == code
        assert re.search(CODE_PATTERN, code)
        assert json.loads(json.dumps(code)) == code


@pytest.mark.rule("A9")
def test_the_pattern_decides_for_every_ascii_character_and_control_as_the_rule_does() -> None:
    characters = [chr(code) for code in range(0xA1)]
    by_rule = [char for char in characters if normal_code(char) is not None]
    assert [char for char in characters if re.search(CODE_PATTERN, char)] == by_rule


@pytest.mark.rule("A4")
@given(timestamps, timestamps)
def test_timestamps_compare_like_their_numbers_and_no_number_is_beyond_an_open_end(
    one: datetime, other: datetime
) -> None:
    assert (one < other) == (microseconds(one) < microseconds(other))
    assert LONG_AGO < microseconds(one) < FAR_AHEAD


@pytest.mark.rule("A4")
@given(timestamps, st.integers(-1_439, 1_439))
def test_a_timestamp_is_written_in_utc_whatever_its_zone_and_reads_back_exactly(
    timestamp: datetime, minutes: int
) -> None:
    elsewhere = timestamp.astimezone(timezone(timedelta(minutes=minutes)))
    written = wire_timestamp(elsewhere)
    assert written.endswith("Z")
    assert datetime.fromisoformat(written) == timestamp


@pytest.mark.rule("A4")
def test_a_fraction_is_written_only_where_there_is_one() -> None:
    noon = datetime(2031, 5, 6, 12, tzinfo=UTC)
    assert [optional_timestamp(timestamp) for timestamp in (noon, noon.replace(microsecond=50), None)] == [
        "2031-05-06T12:00:00Z",
        "2031-05-06T12:00:00.000050Z",
        None,
    ]


REDUCED: Final = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text(encoding="utf-8"))


@pytest.mark.rule("R1")
@pytest.mark.parametrize(
    ("pasted", "host"),
    [pytest.param(*case, id=f"{rule}: {case[0]}") for rule, cases in REDUCED.items() for case in cases],
)
def test_a_pasted_reference_reduces_to_its_host_alone(pasted: str, host: str) -> None:
    assert reduce_host(pasted) == host


@pytest.mark.rule("R1", "R1.bounds")
@pytest.mark.parametrize(
    "pasted", ["", "  ", ".", "...", "https://", "https:///path.html", "user@", "?a.b", ":80", "()", "[a.b](", '"."']
)
def test_what_holds_no_host_reduces_to_none(pasted: str) -> None:
    assert reduce_host(pasted) is None


@pytest.mark.rule("R1.bounds")
def test_a_host_has_at_most_253_characters() -> None:
    longest = f"{'a' * 244}.internal"
    assert len(longest) == 253
    assert (reduce_host(longest), reduce_host(f"a{longest}")) == (longest, None)
    assert reduce_host(f"https://www.{longest}./{'x' * 1_000}") == longest


@pytest.mark.rule("R1")
def test_a_dot_of_any_script_makes_a_reference_a_host() -> None:
    assert [text for text in ("a.b", "a。b", "a．b", "a｡b", "ab", "a·b", "shop_1") if has_dot(text)] == [
        "a.b",
        "a。b",
        "a．b",
        "a｡b",
    ]


@pytest.mark.rule("R1")
@given(st.from_regex(r"\A(www\.|WWW\.)*[a-zü0-9]{1,20}(\.[a-z0-9]{1,20}){1,3}\.*\Z"))
def test_a_reduced_host_stays_as_it_is_when_it_is_asked_for(pasted: str) -> None:
    host = reduce_host(pasted)
    assert host is not None
    assert (reduce_host(host), reduce_host(f"https://www.{host}:443/x")) == (host, host)


@given(st.text())
def test_any_text_at_all_is_reduced_without_an_error(text: str) -> None:
    host = reduce_host(text)
    assert host is None or 0 < len(host) <= 253


def test_only_labels_that_decode_are_shown_in_unicode() -> None:
    assert unicode_host("xn--mller-kva.xn--a.internal") == "müller.xn--a.internal"


@pytest.mark.rule("X2.suffix")
@pytest.mark.parametrize(
    ("host", "labels"),
    [
        ("tui.co.uk", ("tui",)),
        ("de.kompass.internal", ("de", "kompass")),
        ("shop.internal", ("shop",)),
        ("nord.myshopify.com", ("nord",)),
        ("foo.bar.github.io", ("foo", "bar")),
        ("city.kawasaki.jp", ("city",)),
        ("xn--mller-kva.de", ("xn--mller-kva",)),
    ],
)
def test_the_main_label_stands_before_the_public_suffix(host: str, labels: tuple[str, ...]) -> None:
    parts = domain_parts(host)
    registrable = host.removeprefix("".join(f"{label}." for label in labels[:-1]))
    assert parts == DomainParts(labels, labels[-1], registrable)


@pytest.mark.rule("X2.suffix")
@pytest.mark.parametrize(
    ("suffix", "first"), [("co.uk", "co"), ("com", "com"), ("myshopify.com", "myshopify"), ("internal", "internal")]
)
def test_a_domain_that_is_itself_a_suffix_has_its_first_label(suffix: str, first: str) -> None:
    assert domain_parts(suffix) == DomainParts((first,), first, suffix)


@pytest.mark.rule("X2.suffix")
def test_no_connection_is_made_to_learn_a_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *name, **_: asked.append(name))
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    domain_parts.cache_clear()
    assert (domain_parts("a.b.co.uk").main_label, asked) == ("b", [])


@pytest.mark.rule("M9.country")
@pytest.mark.parametrize(
    ("country", "hosts"),
    [
        ("AT", ("lamps.at",)),
        ("DE", ("shop.lamps.de", "de")),
        ("GB", ("lamps.co.uk",)),
        (None, ("lamps.ac", "lamps.com", "lamps.eu", "lamps.internal", "xn--80a.xn--p1ai")),
        # Sold to the world, but for what is under its second level for trade.
        (None, ("lamps.io", "lamps.github.io", "lamps.co", "com.co", "com.lamps.tv")),
        ("CO", ("lamps.com.co",)),
        ("AG", ("shop.lamps.co.ag",)),
    ],
)
def test_the_top_level_domain_of_a_country_says_the_country(country: str | None, hosts: tuple[str, ...]) -> None:
    assert {host: country_of(host) for host in hosts} == dict.fromkeys(hosts, country)


@pytest.mark.rule("A7")
def test_a_group_is_never_a_country_and_holds_assigned_countries_only() -> None:
    assert COUNTRY_CODES.isdisjoint({*GROUPS, WORLDWIDE})
    assert GROUP_NAMES.keys() == {*GROUPS, WORLDWIDE}
    assert COUNTRY_CODES.issuperset(code for group in GROUPS.values() for code in group)
    assert {"EU", WORLDWIDE, "AT", "eu", "EUROPE", ""} & DESTINATIONS == {"EU", WORLDWIDE, "AT"}


def test_the_european_union_has_27_members_and_is_within_the_economic_area() -> None:
    assert len(GROUPS["EU"]) == 27
    assert GROUPS["EEA"] - GROUPS["EU"] == {"IS", "LI", "NO"}


@pytest.mark.rule("A7")
def test_a_territory_and_its_state_are_countries_and_no_state_is_a_territory() -> None:
    assert COUNTRY_CODES.issuperset({*TERRITORIES, *TERRITORIES.values()})
    assert TERRITORIES.keys().isdisjoint(TERRITORIES.values())
    of = {state: {code for code, whose in TERRITORIES.items() if whose == state} for state in ("FR", "FI", "DK", "GB")}
    assert {"GP", "MQ", "GF", "RE", "YT"} <= of["FR"]
    assert {"GG", "GI", "IM", "JE"} <= of["GB"]
    assert (of["FI"], of["DK"], TERRITORIES["SJ"]) == ({"AX"}, {"FO", "GL"}, "NO")


@pytest.mark.rule("A7")
def test_the_groups_of_a_country_are_those_that_have_it_and_the_whole_world() -> None:
    assert groups_of("CH") == {"DACH", "EFTA", WORLDWIDE}
    assert groups_of("XK") == {WORLDWIDE}


def _stated(
    destinations: list[str] | None, excluded: tuple[str, ...] = (), *, complete: bool = False
) -> dict[str, Any]:
    return {"destinations": destinations, "excluded": list(excluded), "destinations_exhaustive": complete}


@pytest.mark.rule("A7", "I27", "I28")
@pytest.mark.parametrize(
    ("stated", "country", "verdict"),
    [
        (None, "AT", "unknown"),
        (_stated(None), "AT", "unknown"),
        (_stated(None, complete=True), "AT", "unknown"),
        (_stated(None, ("AT",)), "AT", "no"),
        (_stated(["AT"]), "AT", "yes"),
        (_stated(["DACH"]), "AT", "yes"),
        (_stated(["EEA"]), "NO", "yes"),
        (_stated(["EEA"]), "CH", "unknown"),
        (_stated(["EU"]), "CH", "unknown"),
        (_stated(["FR", "NORDICS"]), "IS", "yes"),
        (_stated(["WORLDWIDE"]), "XK", "yes"),
        (_stated(["AT"], ("AT",)), "AT", "no"),
        (_stated(["WORLDWIDE"], ("EU",)), "AT", "no"),
        (_stated(["WORLDWIDE"], ("EU",)), "CH", "yes"),
        (_stated(["EU"], ("FR",), complete=True), "FR", "no"),
        (_stated(["EU"], ("FR",), complete=True), "DE", "yes"),
        (_stated(["DE"]), "AT", "unknown"),
        (_stated(["DE"], complete=True), "AT", "no"),
        (_stated(["EU"], complete=True), "GB", "no"),
        (_stated(["EU"]), "GB", "unknown"),
        (_stated([]), "AT", "unknown"),
        (_stated([], complete=True), "AT", "no"),
        # A country by itself counts before groups, for what is excluded as for what is named.
        (_stated(["WORLDWIDE", "CH"], ("DACH",)), "CH", "yes"),
        (_stated(["DACH"], ("WORLDWIDE",)), "CH", "no"),
        (_stated(["CH"], ("CH", "WORLDWIDE")), "CH", "no"),
        (_stated(["NO"], ("EEA",), complete=True), "NO", "yes"),
        # A complete list with a state, or a group with it, leaves its territories open.
        (_stated(["FR"], complete=True), "GP", "unknown"),
        (_stated(["EU"], complete=True), "RE", "unknown"),
        (_stated(["NORDICS"], complete=True), "FO", "unknown"),
        (_stated(["DACH"], complete=True), "GP", "no"),
        (_stated(["FR"], ("GP",), complete=True), "GP", "no"),
        (_stated(["FR", "RE"], complete=True), "RE", "yes"),
        (_stated(["BRITISH_ISLES"], complete=True), "JE", "yes"),
        (_stated(["RE"], complete=True), "FR", "no"),
    ],
)
def test_excluded_is_no_then_named_is_yes_then_a_complete_list_is_no_and_the_rest_is_unknown(
    stated: dict[str, Any] | None, country: str, verdict: str
) -> None:
    assert ships_to(stated, country) == verdict


@pytest.mark.rule("F2")
def test_a_shop_has_one_term_for_most_countries_and_one_for_each_other() -> None:
    assert shipping_terms(None) == ("unknown:*",)
    assert shipping_terms(_stated(["WORLDWIDE"], ("CH",))) == ("yes:*", "no:CH")
    assert shipping_terms(_stated(["CH", "AT"])) == ("unknown:*", "yes:AT", "yes:CH")
    assert shipping_terms(_stated(["DK"], complete=True)) == ("no:*", "yes:DK", "unknown:FO", "unknown:GL")


_names = st.lists(st.sampled_from(sorted(DESTINATIONS)), max_size=300, unique=True)


@pytest.mark.rule("F2")
@given(st.builds(_stated, st.one_of(st.none(), _names), _names.map(tuple), complete=st.booleans()))
def test_the_terms_of_any_statement_are_its_verdicts_on_all_countries(stated: dict[str, Any]) -> None:
    usual, *own = (term.split(":") for term in shipping_terms(stated))
    verdicts = {country: verdict for verdict, country in own}
    assert usual[1] == "*"
    assert usual[0] not in verdicts.values()
    assert {code: verdicts.get(code, usual[0]) for code in COUNTRY_CODES} == {
        code: ships_to(stated, code) for code in COUNTRY_CODES
    }
