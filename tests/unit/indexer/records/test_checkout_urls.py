"""Which URLs may be handed to somebody who wants to pay: https to the shop's own hosts, whatever else is dressed up."""

import tomllib
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.records.checkout_urls import affiliate_url, checkout_url, template_fault

SHOP = "nord-licht.internal"
HOSTS = ("pay.partner.internal", "xn--bcher-kva.internal")

TABLE: Final = tomllib.loads(Path(__file__).with_name("checkout_urls.toml").read_text(encoding="utf-8"))
TEMPLATES: Final[list[str]] = TABLE["templates"]["good"]
NETWORK: Final = ("go.network.internal",)


@pytest.mark.rule("A10")
@pytest.mark.parametrize(("stated", "canonical"), TABLE["good"])
def test_a_url_of_the_shop_or_of_a_listed_host_is_given_in_canonical_form(stated: str, canonical: str) -> None:
    assert checkout_url(stated, SHOP, HOSTS) == canonical
    assert checkout_url(canonical, SHOP, HOSTS) == canonical


@pytest.mark.rule("A10")
@pytest.mark.parametrize("kind", TABLE["bad"])
def test_any_other_url_is_none(kind: str) -> None:
    assert checkout_url(TABLE["bad"][kind], SHOP, HOSTS) is None


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("shop_domain", "listed", "valid", "invalid"),
    [
        ("co.uk", (), ("co.uk",), ("evil.co.uk", "www.co.uk", "www.evil.co.uk")),
        ("myshopify.com", (), ("myshopify.com",), ("foo.myshopify.com", "www.myshopify.com", "a.foo.myshopify.com")),
        (
            "foo.myshopify.com",
            (),
            ("foo.myshopify.com", "www.foo.myshopify.com", "a.b.foo.myshopify.com"),
            ("myshopify.com", "bar.myshopify.com", "www.myshopify.com"),
        ),
        ("a.shop.co.uk", (), ("a.shop.co.uk", "b.a.shop.co.uk"), ("shop.co.uk", "b.shop.co.uk", "www.shop.co.uk")),
        ("shop.de", ("co.uk",), ("co.uk", "pay.shop.de"), ("evil.co.uk", "www.co.uk")),
        ("shop.de", ("pay.co.uk",), ("pay.co.uk", "www.pay.co.uk"), ("a.pay.co.uk", "www.www.pay.co.uk")),
        ("shop.de", ("myshopify.com",), ("myshopify.com",), ("www.myshopify.com", "foo.myshopify.com")),
    ],
)
def test_a_sub_domain_is_of_its_parent_only_with_the_same_registrable_domain(
    shop_domain: str, listed: tuple[str, ...], valid: tuple[str, ...], invalid: tuple[str, ...]
) -> None:
    assert [checkout_url(f"https://{host}/", shop_domain, listed) for host in valid] == [
        f"https://{host}/" for host in valid
    ]
    assert [checkout_url(f"https://{host}/", shop_domain, listed) for host in invalid] == [None] * len(invalid)


@pytest.mark.rule("A10")
def test_an_address_is_refused_even_where_a_catalogue_lists_it() -> None:
    listed = ("127.0.0.1", "[::1]", "::1", "2130706433", "localhost")
    assert [checkout_url(f"https://{host}/", SHOP, listed) for host in ("127.0.0.1", "[::1]", "2130706433")] == [
        None
    ] * 3
    assert checkout_url("https://localhost/", SHOP, listed) is None


_pieces = st.sampled_from(
    ("https://", "http://", "HTTPS:", "//", "/", "\\", "@", ":", ":443", ":8443", "#", "?", "%2f", "%40", "%2e", ".",
     "。", "．", "\t", "\r\n", "\x00", " ", "\u200b", "www.", SHOP, "pay.partner.internal", "evil.internal", "evil",
     "127.0.0.1", "0x7f.1", "[::1]", "user", "{url}", "bücher.internal", "xn--", "а", "..", "javascript:"),
)  # fmt: skip
_urls = st.one_of(
    st.lists(_pieces, max_size=8).map("".join),
    st.lists(_pieces, max_size=6).map(lambda parts: f"https://{''.join(parts)}"),
    st.text(max_size=30).map(lambda text: f"https://{text}{SHOP}/"),
    st.text(max_size=30).map(lambda text: f"https://{SHOP}{text}"),
)


def _is_safe(url: str, hosts: tuple[str, ...]) -> bool:
    read = URL(url)
    plain = (read.protocol, read.username, read.password, read.port) == ("https:", "", "", "")
    host = read.hostname
    return plain and url.isascii() and (host.endswith(f".{SHOP}") or host.removeprefix("www.") in hosts)


@pytest.mark.rule("A10")
@example(f"https://{SHOP}")
@given(_urls)
def test_whatever_is_given_out_is_https_to_a_host_of_the_shop_without_credentials_or_port(stated: str) -> None:
    given_out = checkout_url(stated, SHOP, HOSTS)
    assert given_out is None or _is_safe(given_out, (SHOP, *HOSTS))


@pytest.mark.rule("A10")
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_on_the_networks_host_carries_the_url_percent_encoded_once(template: str) -> None:
    url = f"https://{SHOP}/a?b=c%20d&e=ä#f"
    assert template_fault(template, NETWORK) is None
    built = affiliate_url(template, NETWORK, url)
    assert built is not None
    assert URL(built).hostname in ("go.network.internal", "www.go.network.internal")
    assert built.count(quote(url, safe="")) == 1


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("template", "fault"), [(one, found["reason"]) for found in TABLE["templates"]["faults"] for one in found["of"]]
)
def test_a_template_that_could_lead_elsewhere_is_a_fault(template: str, fault: str) -> None:
    assert template_fault(template, NETWORK) == fault


@pytest.mark.rule("A10")
@given(_urls, st.sampled_from(TEMPLATES))
def test_a_networks_url_stays_on_the_networks_host_whatever_it_carries(url: str, template: str) -> None:
    built = affiliate_url(template, NETWORK, url)
    assert built is not None
    read = URL(built)
    assert (read.protocol, read.username, read.password, read.port) == ("https:", "", "", "")
    assert read.hostname.removeprefix("www.") == "go.network.internal"
