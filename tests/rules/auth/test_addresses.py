"""Whose address counts: headers of configured proxies are trusted, those of others are not (Q3, A5)."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.runtime.caller import CallOrigin, ForwardingHeader, Proxies, origin_of

EDGE = "10.0.0.1"
CHAIN = Proxies(["10.0.0.0/8", "2001:db8:ffff::/48", "unix"])
FORWARDED = Proxies(["10.0.0.0/8", "2001:db8:ffff::/48"], ForwardingHeader.FORWARDED)
COUNTRY = Proxies(["10.0.0.0/8"], country_header="X-Edge-Country")


def address(peer: str | None, trusted: Proxies, *values: str, name: bytes = b"x-forwarded-for") -> str:
    return origin_of(peer, [(name, value.encode("latin-1")) for value in values], trusted).address


@pytest.mark.rule("Q3")
@pytest.mark.parametrize(
    ("peer", "own"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:DB8:0:0::7", "2001:db8::7"),
        ("fe80::1%eth0", "fe80::1"),
        ("testclient", "unknown"),
        ("192.0.2.07", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_who_is_no_configured_proxy_has_the_peers_address_whatever_the_headers_say(peer: str | None, own: str) -> None:
    none = Proxies([])
    assert address(peer, none, "203.0.113.9") == own
    assert address(peer, Proxies(["10.0.0.0/8"]), "203.0.113.9") == own


@pytest.mark.rule("Q3")
@pytest.mark.parametrize(
    ("values", "caller"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9, 10.2.3.4, 10.9.9.9"], "203.0.113.9"),
        (["198.51.100.1", "203.0.113.9", "10.2.3.4"], "203.0.113.9"),
        (["<script>, \xff, , 203.0.113.9"], "203.0.113.9"),
        ([" 203.0.113.9:51234 "], "203.0.113.9"),
        (["[2001:db8::9]:51234"], "2001:db8::9"),
        (["2001:DB8::9"], "2001:db8::9"),
        (["[2001:db8::9%25]"], "2001:db8::9"),
        (["fe80::9%eth0"], "fe80::9"),
        (["::ffff:203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9, ::ffff:10.2.3.4"], "203.0.113.9"),
        (["203.0.113.9, 2001:db8:ffff::2"], "203.0.113.9"),
        (["10.3.3.3, 10.2.3.4"], "10.3.3.3"),
        ([], EDGE),
        ([""], EDGE),
        ([" , "], EDGE),
        (["203.0.113.9,"], EDGE),
        (["unknown"], EDGE),
        (["203.0.113.9, unknown"], EDGE),
        (["203.0.113.9, 10.2.3.4, garbage"], EDGE),
        (["garbage, 10.2.3.4"], EDGE),
        (["203.0.113.256"], EDGE),
        (["0xcb007109"], EDGE),
        (["203.0.113.9:port"], EDGE),
        (["[203.0.113.9"], EDGE),
        (["٢٠٣.0.113.9".encode().decode("latin-1")], EDGE),
        ([", ".join(["203.0.113.9", *["10.1.1.1"] * 15])], "203.0.113.9"),
        ([", ".join(["203.0.113.9", *["10.1.1.1"] * 17])], EDGE),
        (["x" * 1_000_000 + ", 203.0.113.9"], "203.0.113.9"),
    ],
)
def test_of_a_configured_proxy_the_right_most_hop_that_is_none_counts(values: list[str], caller: str) -> None:
    assert address(EDGE, CHAIN, *values) == caller
    assert address("::ffff:10.0.0.1", CHAIN, *values) == caller


@pytest.mark.rule("Q3")
@pytest.mark.parametrize(
    ("values", "caller"),
    [
        (["for=203.0.113.9"], "203.0.113.9"),
        (["For=203.0.113.9;proto=https;by=10.0.0.1"], "203.0.113.9"),
        (['for="203.0.113.9:4711"'], "203.0.113.9"),
        (['for="[2001:db8::9]"'], "2001:db8::9"),
        (['proto=https; for="[2001:db8::9]:4711"'], "2001:db8::9"),
        (["for=198.51.100.1, for=203.0.113.9, for=10.2.3.4"], "203.0.113.9"),
        (["for=198.51.100.1", "for=203.0.113.9,for=10.2.3.4"], "203.0.113.9"),
        (['for=198.51.100.1, for=203.0.113.9;host="a,b"'], "203.0.113.9"),
        (['for="unclosed, for=203.0.113.9'], "203.0.113.9"),
        (['for="unclosed, for="[2001:db8::9]"'], "2001:db8::9"),
        (['for=203.0.113.9;host="evil, for=198.51.100.1"'], "203.0.113.9"),
        (['for=203.0.113.9;host="evil,for=\\"198.51.100.1\\""'], "203.0.113.9"),
        (['for="2\\03.0.113.9"'], "203.0.113.9"),
        (["for=10.2.3.4"], "10.2.3.4"),
        (["for=unknown"], EDGE),
        (["for=_hidden"], EDGE),
        (["for=203.0.113.9, for=unknown"], EDGE),
        (["proto=https"], EDGE),
        (["for=203.0.113.9;for=198.51.100.1"], EDGE),
        (["203.0.113.9"], EDGE),
        (["for = 203.0.113.9"], EDGE),
        (["for=[2001:db8::9]"], EDGE),
        (["for=203.0.113.9,"], EDGE),
        (["for=203.0.113.9, ,for=10.2.3.4"], EDGE),
        ([""], EDGE),
        ([], EDGE),
        (['"' * 100_000], EDGE),
        (["," * 100_000 + "for=203.0.113.9"], "203.0.113.9"),
    ],
)
def test_forwarded_is_read_from_its_right_end_too(values: list[str], caller: str) -> None:
    assert address(EDGE, FORWARDED, *values, name=b"forwarded") == caller


@pytest.mark.rule("Q3")
def test_the_header_that_the_proxies_do_not_write_is_not_read() -> None:
    both = [(b"forwarded", b"for=198.51.100.1"), (b"x-forwarded-for", b"203.0.113.9"), (b"x-real-ip", b"198.51.100.2")]
    assert [origin_of(EDGE, both, trusted).address for trusted in (CHAIN, FORWARDED)] == [
        "203.0.113.9",
        "198.51.100.1",
    ]
    assert origin_of(EDGE, both[:1], CHAIN).address == EDGE


@pytest.mark.rule("Q3")
def test_a_unix_socket_is_a_proxy_only_where_it_is_configured() -> None:
    found = [address(peer, trusted, "203.0.113.9") for peer in (None, "") for trusted in (CHAIN, FORWARDED)]
    assert found == ["203.0.113.9", "unknown", "203.0.113.9", "unknown"]


@pytest.mark.parametrize("wrong", ["10.0.0.1/8", "10.0.0.0/33", "edge.internal", "", "*"])
def test_a_wrong_proxy_stops_the_start(wrong: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Proxies([wrong])


def test_a_mapped_network_is_the_one_that_it_maps() -> None:
    assert address("10.0.0.1", Proxies(["::ffff:10.0.0.0/104"]), "203.0.113.9") == "203.0.113.9"
    assert address("10.0.0.1", Proxies([" 10.0.0.1 "]), "203.0.113.9") == "203.0.113.9"


@pytest.mark.rule("A5")
@pytest.mark.parametrize(
    ("values", "country"),
    [
        ([b"DE"], "DE"),
        ([b" gb "], "GB"),
        ([b"xk"], "XK"),
        ([b"XX"], None),
        ([b"T1"], None),
        ([b"UK"], None),
        ([b"DEU"], None),
        ([b""], None),
        ([b"D\xcb"], None),
        ([b"DE", b"DE"], None),
        ([], None),
    ],
)
def test_the_edge_states_the_country_as_an_assigned_code(values: list[bytes], country: str | None) -> None:
    headers = [(b"x-edge-country", value) for value in values]
    assert origin_of(EDGE, headers, COUNTRY) == CallOrigin(EDGE, country)


PIECES = st.lists(
    st.sampled_from(
        [
            "203.0.113.9", "10.1.1.1", "[2001:db8::9]", "2001:db8:ffff::1", "for=", "For=", '"', "\\", ",", ";", " ",
            "\t", ":", "80", "%eth0", "unknown", "proto=https", "[", "]", "\xff", "\x00",
        ]
    ),
    max_size=40,
).map("".join)  # fmt: skip
VALUES = st.lists(st.one_of(PIECES.map(lambda text: text.encode("latin-1")), st.binary(max_size=60)), max_size=3)
NAMES = st.sampled_from([b"x-forwarded-for", b"forwarded", b"x-edge-country"])
HEADERS = st.lists(st.tuples(NAMES, st.one_of(PIECES.map(lambda text: text.encode("latin-1")), st.binary(max_size=60))))
PEERS = st.one_of(st.none(), st.text(), st.ip_addresses().map(str), st.sampled_from(["10.0.0.1", "fe80::1%1"]))


@pytest.mark.rule("Q3")
@given(peer=PEERS, headers=HEADERS, trusted=st.sampled_from([CHAIN, FORWARDED, COUNTRY, Proxies([])]))
def test_no_header_raises_and_every_address_is_canonical(
    peer: str | None, headers: list[tuple[bytes, bytes]], trusted: Proxies
) -> None:
    found = origin_of(peer, headers, trusted)
    assert found.address == "unknown" or found.address == str(ip_address(found.address))
    assert "%" not in found.address


@pytest.mark.rule("Q3")
@given(peer=st.ip_addresses().filter(lambda peer: not str(peer).startswith(("10.", "2001:db8:ffff:"))), headers=HEADERS)
def test_no_header_of_an_untrusted_peer_changes_anything(peer: object, headers: list[tuple[bytes, bytes]]) -> None:
    for trusted in (CHAIN, FORWARDED, COUNTRY):
        assert origin_of(str(peer), headers, trusted) == origin_of(str(peer), [], trusted)


@pytest.mark.rule("Q3")
@given(forged=VALUES)
def test_nothing_that_a_caller_forges_hides_the_address_that_the_proxy_saw(forged: list[bytes]) -> None:
    plain = [(b"x-forwarded-for", value) for value in (*forged, b"203.0.113.77")]
    joined = [(b"x-forwarded-for", b",".join((*forged, b"203.0.113.77")))]
    forwarded = [(b"forwarded", b",".join((*forged, b"for=203.0.113.77")))]
    found = [
        origin_of(EDGE, plain, CHAIN).address,
        origin_of(EDGE, joined, CHAIN).address,
        origin_of(EDGE, forwarded, FORWARDED).address,
    ]
    assert found == ["203.0.113.77"] * 3
