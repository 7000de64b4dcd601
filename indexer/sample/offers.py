"""The products: titles and checkout URLs, most of them valid, some invalid on purpose in each way that A10 lists."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from indexer.sample.featured import FEATURED, featured_offers
from indexer.sample.money import amount
from indexer.sample.named_shops import EDGE_CASES
from indexer.sample.records import Money, Offer, Shop
from indexer.sample.seeded_random import digest, seeded_random, time_before

_MATERIALS: Final = ("Oak", "Linen", "Enamel", "Felt", "Copper", "Birch", "Wool", "Paper", "Stoneware", "Cork", "Brass")
_THINGS: Final = (
    ("Desk Lamp", "desk-lamp"),
    ("Picnic Blanket", "picnic-blanket"),
    ("Tea Tin", "tea-tin"),
    ("Satchel", "satchel"),
    ("Bird Feeder", "bird-feeder"),
    ("Étagère", "%C3%A9tag%C3%A8re"),
    ("Müslischale", "m%C3%BCslischale"),
    ("風鈴", "%E9%A2%A8%E9%88%B4"),
    ("Notebook, 120 g", "notebook%20120%20g"),
    ("Puzzle <1000 pcs>", "puzzle-1000"),
)
_QUERIES: Final = ("", "", "", "?size=L&colour=oak", "?ref=caf%C3%A9%26co", "#reviews")

#: Each is invalid in one way; {domain} is that of the shop.
INVALID_URLS: Final = {
    "off_invalid-http": "http://{domain}/p/lamp",
    "off_invalid-foreign-host": "https://another-merchant.internal/p/lamp",
    "off_invalid-lookalike-host": "https://not{domain}/p/lamp",
    "off_invalid-host-as-prefix": "https://{domain}.another-merchant.internal/p/lamp",
    "off_invalid-credentials": "https://buyer:basket@{domain}/p/lamp",
    "off_invalid-user-as-host": "https://{domain}@another-merchant.internal/p/lamp",
    "off_invalid-ipv4": "https://192.0.2.17/p/lamp",
    "off_invalid-ipv6": "https://[2001:db8::17]/p/lamp",
    "off_invalid-port-8443": "https://{domain}:8443/p/lamp",
    "off_invalid-network-host": "https://go.linkmeadow.internal/c?p=1&u=https%3A%2F%2F{domain}%2Fp%2Flamp",
    "off_invalid-ftp": "ftp://{domain}/p/lamp",
}
_VALID_URLS: Final = {
    "off_valid-plain": "https://{domain}/p/lamp",
    "off_valid-port-443": "https://{domain}:443/p/lamp",
    "off_valid-upper-case-host": "HTTPS://WWW.ZEBRA-COMMA.INTERNAL/p/Lamp",
    "off_valid-checkout-host": "https://zc.tillpost.internal/basket?sku=L-1&qty=1",
    "off_valid-encoded": "https://{domain}/p/l%C3%A4mpchen%20%26%20licht?q=a%2Bb&x=%25",
}


def offers(shops: Iterable[Shop]) -> tuple[Offer, ...]:
    """Every offer, those of hidden shops included, ordered by id."""
    created = [offer for shop in shops for offer in _offers_of(shop)]
    return tuple(sorted(created, key=lambda offer: offer.id))


def _offers_of(shop: Shop) -> Iterator[Offer]:
    if shop.domain in FEATURED:
        yield from featured_offers(shop)
        return
    rng = seeded_random("offers", shop.id)
    count = rng.choice((0, 0, 0, 0, 1, 1, 1, 2, 3, 5))
    for number in range(count if shop.is_public else max(1, count)):
        yield _random_offer(shop, number)
    if shop.domain == EDGE_CASES:
        plain = Offer("", shop.id, "Striped Lamp", "", Money("89.00", "GBP"), "in_stock", "2026-10-20T09:00:00Z")
        for offer_id, url in (_VALID_URLS | INVALID_URLS).items():
            yield replace(plain, id=offer_id, url=url.format(domain=shop.domain))


def _random_offer(shop: Shop, number: int) -> Offer:
    rng = seeded_random("offer", shop.id, str(number))
    material = rng.choice(_MATERIALS)
    thing, path = rng.choice(_THINGS)
    hosts = (shop.domain, shop.domain, f"www.{shop.domain}", f"basket.{shop.domain}", *shop.checkout_hosts)
    # The offers of a hidden shop always have its name in their titles, so that these reveal a leak.
    by = f" by {shop.name}" if not shop.is_public or rng.choice((True, False, False)) else ""
    return Offer(
        id=f"off_{digest(shop.id, 'offer', str(number))}",
        shop_id=shop.id,
        title=f"{material} {thing}{by}",
        url=f"https://{rng.choice(hosts)}/{material.lower()}/{path}{rng.choice(_QUERIES)}",
        price=amount(rng, shop, low=4, high=240) if rng.choice((True,) * 9 + (False,)) else None,
        availability=rng.choices(
            ("in_stock", "out_of_stock", "preorder", "discontinued", None), weights=(70, 12, 5, 4, 9)
        )[0],
        updated_at=time_before(rng, days=60),
    )
