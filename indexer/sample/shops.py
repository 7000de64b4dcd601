"""All shops of the sample, from tables and composed, with their random fields; ids follow from domains.

No two public shops have one domain, so a build of the sample has no notes.
"""

import idna

from indexer.sample.categories import category
from indexer.sample.composed_shops import Outline, composed
from indexer.sample.hidden_shops import HIDDEN
from indexer.sample.named_shops import LATIN, POPULAR, RESERVED
from indexer.sample.records import Shop
from indexer.sample.seeded_random import seeded_random
from indexer.sample.world_shops import WORLD

_TAIL_BELOW = 0.1
_UNKNOWN_POPULARITY = 0.12


def shops() -> tuple[Shop, ...]:
    """Every shop, hidden ones included, ordered by id."""
    outlines = [
        *(_read(line) for table in (LATIN, RESERVED, WORLD) for line in table.splitlines()),
        *(_read_hidden(line) for line in HIDDEN.splitlines()),
        *composed(),
    ]
    return tuple(sorted((_shop(outline) for outline in outlines), key=lambda shop: shop.id))


def _read(line: str, visibility: str = "public") -> Outline:
    name, domain, categories, countries, *rest = (column.strip() for column in line.split("|"))
    aliases, hosts = (*rest, "", "")[:2]
    return Outline(
        name=name,
        domain=domain,
        categories=tuple(categories.split()),
        countries=() if countries == "-" else tuple(countries.split()),
        aliases=tuple(alias.strip() for alias in aliases.split(";") if alias.strip()),
        checkout_hosts=tuple(hosts.split()),
        visibility=visibility,
    )


def _read_hidden(line: str) -> Outline:
    visibility, _, rest = line.partition("|")
    return _read(rest, visibility.strip())


def _shop(outline: Outline) -> Shop:
    domain = idna.encode(outline.domain, uts46=True).decode("ascii")
    shop_id = "shop_" + domain.removesuffix(".internal").replace(".", "-")
    rng = seeded_random("shop", shop_id)
    return Shop(
        id=shop_id,
        name=outline.name,
        domain=domain,
        categories=tuple(category(slug) for slug in outline.categories),
        countries=outline.countries,
        popularity=POPULAR[domain] if domain in POPULAR else _popularity(shop_id),
        aliases=outline.aliases,
        checkout_hosts=outline.checkout_hosts,
        visibility=outline.visibility,
        source=rng.choice(("operator", "partner-feed", "merchant-signup")),
        version=rng.randint(1, 9),
    )


def _popularity(shop_id: str) -> float | None:
    rng = seeded_random("popularity", shop_id)
    if rng.random() < _UNKNOWN_POPULARITY:
        return None
    share = 0.98 * rng.random() ** 3
    # Fewer digits in the long tail make popularities equal, so that the id decides the order (M1).
    return round(share, 3) if share < _TAIL_BELOW else round(share, 4)
