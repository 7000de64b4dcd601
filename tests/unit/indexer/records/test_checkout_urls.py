"""Which URLs may be handed to somebody who wants to pay: https to the shop's own hosts, whatever else is dressed up."""

from urllib.parse import quote

import pytest
from ada_url import URL
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.records.checkout_urls import affiliate_url, checkout_url, template_fault

SHOP = "nord-licht.internal"
HOSTS = ("pay.partner.internal", "xn--bcher-kva.internal")

GOOD = [
    (f"https://{SHOP}/cart?id=1#top", f"https://{SHOP}/cart?id=1#top"),
    (f"https://{SHOP}", f"https://{SHOP}/"),
    (f"HTTPS://WWW.{SHOP.upper()}/A", f"https://www.{SHOP}/A"),
    (f"https://{SHOP}:443/a", f"https://{SHOP}/a"),
    (f"https://a.b.{SHOP}/a", f"https://a.b.{SHOP}/a"),
    (f"https://{SHOP}/a@b?c=d@e", f"https://{SHOP}/a@b?c=d@e"),
    (f"https://{SHOP}/größe", f"https://{SHOP}/gr%C3%B6%C3%9Fe"),
    (f"https://{SHOP}/a/../b", f"https://{SHOP}/b"),
    (f"https://{SHOP}?next=https://evil.internal/", f"https://{SHOP}/?next=https://evil.internal/"),
    ("https://pay.partner.internal/x", "https://pay.partner.internal/x"),
    ("https://www.pay.partner.internal/x", "https://www.pay.partner.internal/x"),
    ("https://bücher.internal/", "https://xn--bcher-kva.internal/"),
    ("https://nord-licht。internal/", f"https://{SHOP}/"),
    ("https://nord-licht．internal/", f"https://{SHOP}/"),
    ("https://ｎord-licht.internal/", f"https://{SHOP}/"),
    ("https://nord%2Dlicht.internal/", f"https://{SHOP}/"),
    (f"https://{'a' * 63}.{SHOP}/", f"https://{'a' * 63}.{SHOP}/"),
]

BAD = {
    "nothing": "",
    "http": f"http://{SHOP}/",
    "javascript": "javascript:alert(1)",
    "javascript that looks like a host": f"javascript://{SHOP}/%0aalert(1)",
    "data": "data:text/html,<b>x</b>",
    "file": f"file://{SHOP}/etc",
    "protocol-relative": f"//{SHOP}/",
    "relative": "/cart",
    "a bare host": SHOP,
    "one slash": f"https:/{SHOP}/",
    "no slash": f"https:{SHOP}/",
    "three slashes": f"https:///{SHOP}/",
    "user": f"https://user@{SHOP}/",
    "user and password": f"https://user:secret@{SHOP}/",
    "empty user": f"https://@{SHOP}/",
    "the shop as a user": f"https://{SHOP}@evil.internal/",
    "the shop as a user and a port": f"https://{SHOP}:443@evil.internal/",
    "an encoded at": f"https://{SHOP}%40evil.internal/",
    "other port": f"https://{SHOP}:8443/",
    "port 80": f"https://{SHOP}:80/",
    "port out of range": f"https://{SHOP}:99999/",
    "backslash in the authority": f"https://{SHOP}\\@evil.internal/",
    "backslash before the path": f"https://evil.internal\\.{SHOP}/",
    "backslashes for slashes": f"https:\\\\{SHOP}\\",
    "backslash in the path": f"https://{SHOP}/a\\b",
    "carriage return": f"https://{SHOP}/a\r\nset-cookie: x=1",
    "line feed in the scheme": f"ht\ntps://{SHOP}/",
    "tab in the host": "https://nord-\tlicht.internal/",
    "space in front": f" https://{SHOP}/",
    "space at the end": f"https://{SHOP}/ ",
    "null": f"https://{SHOP}/\x00",
    "next line": f"https://{SHOP}/\x85",
    "zero width space": "https://nord-\u200blicht.internal/",
    "soft hyphen": "https://nord-\u00adlicht.internal/",
    "override": f"https://{SHOP}/\u202e",
    "byte order mark": f"\ufeffhttps://{SHOP}/",
    "dotted address": "https://127.0.0.1/",
    "hexadecimal address": "https://0x7f.1/",
    "one number": "https://2130706433/",
    "one hexadecimal number": "https://0x7f000001/",
    "octal address": "https://017700000001/",
    "octal parts": "https://0177.0.0.1/",
    "full-width address": "https://１２７.0.0.1/",
    "IPv6": "https://[::1]/",
    "IPv6 of IPv4": "https://[::ffff:127.0.0.1]/",
    "IPv6 zone": "https://[fe80::1%25eth0]/",
    "localhost": "https://localhost/",
    "another host": "https://evil.internal/",
    "suffix without a dot": f"https://evil{SHOP}/",
    "prefix": f"https://{SHOP}.evil.internal/",
    "parent": "https://internal/",
    "look-alike letter": "https://nоrd-licht.internal/",
    "look-alike slash": f"https://{SHOP}⁄.evil.internal/",
    "encoded slash": f"https://{SHOP}%2f.evil.internal/",
    "encoded slash the other way": f"https://evil.internal%2f.{SHOP}/",
    "encoded null": f"https://{SHOP}%00.evil.internal/",
    "question mark": f"https://evil.internal?.{SHOP}/",
    "hash": f"https://evil.internal#.{SHOP}/",
    "dot at the end": f"https://{SHOP}./",
    "two dots": f"https://..{SHOP}/",
    "a sub-domain of a checkout host": "https://evil.pay.partner.internal/",
    "underscore": f"https://a_b.{SHOP}/",
    "a label of 64 characters": f"https://{'a' * 64}.{SHOP}/",
}


@pytest.mark.rule("A10")
@pytest.mark.parametrize(("stated", "canonical"), GOOD)
def test_a_url_of_the_shop_or_of_a_listed_host_is_given_in_canonical_form(stated: str, canonical: str) -> None:
    assert checkout_url(stated, SHOP, HOSTS) == canonical
    assert checkout_url(canonical, SHOP, HOSTS) == canonical


@pytest.mark.rule("A10")
@pytest.mark.parametrize("kind", BAD)
def test_any_other_url_is_none(kind: str) -> None:
    assert checkout_url(BAD[kind], SHOP, HOSTS) is None


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


TEMPLATES = [
    "https://go.network.internal/c?to={url}",
    "https://go.network.internal/c?a=1&to={url}&b=2#x",
    "https://go.network.internal/{url}",
    "https://www.go.network.internal/c/?{url}",
    "https://go.network.internal?{url}",
    "https://go.network.internal/c?shop=evil.internal&to={url}",
]
NETWORK = ("go.network.internal",)


@pytest.mark.rule("A10")
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_on_the_networks_host_carries_the_url_percent_encoded_once(template: str) -> None:
    url = f"https://{SHOP}/a?b=c%20d&e=ä#f"
    assert template_fault(template, NETWORK) is None
    built = affiliate_url(template, NETWORK, url)
    assert built is not None
    assert URL(built).hostname in ("go.network.internal", "www.go.network.internal")
    assert built.count(quote(url, safe="")) == 1


ONCE = "must hold {url} exactly once"
WHERE = "must be an https URL with {url} in its path or query"
OTHER = "must lead to no other URL than the offer's"
HOST = "must be an https URL on one of network_hosts, without credentials or a port"


@pytest.mark.rule("A10")
@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("https://go.network.internal/c", ONCE),
        ("https://go.network.internal/{url}?to={url}", ONCE),
        ("https://go.network.internal/{URL}", ONCE),
        ("{url}", WHERE),
        ("https://{url}", WHERE),
        ("https://{url}/c", WHERE),
        ("https://{url}.go.network.internal/", WHERE),
        ("https://go.network.internal{url}", WHERE),
        ("https://go.network.internal:{url}/", WHERE),
        ("https://go.network.internal#{url}", WHERE),
        ("https://go.network.internal/c#{url}", WHERE),
        ("http://go.network.internal/{url}", WHERE),
        ("javascript:alert('{url}')", WHERE),
        ("//go.network.internal/{url}", WHERE),
        ("https:go.network.internal/{url}", WHERE),
        ("https://go.network.internal/c?r=https://evil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=//evil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=%2F%2Fevil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=https%3A%2F%2Fevil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=https%253A%252F%252Fevil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=%2525252F%2525252Fevil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=%5C%5Cevil.internal&to={url}", OTHER),
        ("https://go.network.internal/c?r=javascript:alert(1)&to={url}", OTHER),
        ("https://go.network.internal//evil.internal/{url}", OTHER),
        ("https://go.network.internal:8443/{url}", OTHER),
        ("https://user:secret@go.network.internal/{url}", OTHER),
        ("https://user@go.network.internal/{url}", HOST),
        ("https://go.network.internal@evil.internal/{url}", HOST),
        ("https://evil.internal/{url}", HOST),
        ("https://go.network.internal.evil.internal/{url}", HOST),
        ("https://sub.go.network.internal/{url}", HOST),
        ("https://127.0.0.1/{url}", HOST),
        ("https://0x7f.1/{url}", HOST),
        ("https://go.network.internal/ {url}", HOST),
        ("https://go.network.internal/\t{url}", HOST),
        ("https://go.network.internal./{url}", HOST),
    ],
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
