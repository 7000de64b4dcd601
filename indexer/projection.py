"""Everything that a generation is made of, kind by kind, from the staged records of public shops."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from indexer.project import HEAD_OFFERS, project_category, project_shop
from indexer.project_facts import project_facts
from indexer.project_offers import project_coupon, project_offer
from indexer.staged_belongings import StagedBelongings
from indexer.staging import Staging


@dataclass(frozen=True, slots=True)
class Projected:
    """The documents of one kind.

    Attributes:
        kind: the index.
        count: how many documents there must be.
        documents: makes them, in the order of their rank where that is cheap.
        ids: the ids that the index may hold, and no others.
    """

    kind: str
    count: int
    documents: Callable[[], Iterator[object]]
    ids: Callable[[], Iterator[str]]


def projections(staging: Staging, belongings: StagedBelongings, public: int) -> tuple[Projected, ...]:
    """All kinds of a generation; `public` shops have been settled."""

    def shops() -> Iterator[object]:
        for shop in staging.winners():
            offers, total = belongings.newest_offers(shop.id, HEAD_OFFERS)
            yield project_shop(shop, offers, total, belongings.redirects(shop.domain))

    def facts() -> Iterator[object]:
        for shop in staging.winners():
            yield project_facts(shop, belongings.shipping(shop.id), belongings.trust(shop.id))

    def category_ids() -> Iterator[str]:
        return (category.slug for category in staging.categories())

    return (
        Projected("shops", public, shops, staging.public_ids),
        Projected(
            "categories",
            sum(1 for _ in category_ids()),
            lambda: map(project_category, staging.categories()),
            category_ids,
        ),
        Projected(
            "coupons",
            belongings.count("coupons"),
            lambda: (project_coupon(coupon, shop) for coupon, shop in belongings.coupons()),
            lambda: belongings.keys("coupons"),
        ),
        Projected(
            "offers",
            belongings.count("offers"),
            lambda: (project_offer(offer, shop, program) for offer, shop, program in belongings.offers()),
            lambda: belongings.keys("offers"),
        ),
        Projected("facts", public, facts, staging.public_ids),
    )
