"""Hosts in every form people paste, and domains taken apart at their public suffix."""

import socket
import tomllib
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.hosts import DomainParts, country_of, domain_parts, has_dot, reduce_host, unicode_host

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
    assert (parts, parts.without_suffix) == (DomainParts(labels, labels[-1], registrable), ".".join(labels))


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
    ("host", "country"),
    [
        ("lamps.at", "AT"),
        ("lamps.co.uk", "GB"),
        ("lamps.ac", None),
        ("shop.lamps.de", "DE"),
        ("lamps.com", None),
        ("lamps.eu", None),
        ("lamps.internal", None),
        # Sold to the world, but for what is under its second level for trade.
        ("lamps.io", None),
        ("lamps.github.io", None),
        ("lamps.co", None),
        ("com.co", None),
        ("lamps.com.co", "CO"),
        ("shop.lamps.co.ag", "AG"),
        ("com.lamps.tv", None),
        ("xn--80a.xn--p1ai", None),
        ("de", "DE"),
    ],
)
def test_the_top_level_domain_of_a_country_says_the_country(host: str, country: str | None) -> None:
    assert country_of(host) == country
