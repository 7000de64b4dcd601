"""Makes the documents of a generation from the public records of a state, kind by kind or one by one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import starmap

from index_mappings.documents import CategoryDocument, CouponDocument, FactsDocument, OfferDocument, ShopDocument
from indexer.projection.facts import project_facts
from indexer.projection.offers import project_coupon, project_offer
from indexer.projection.shops import HEAD_OFFERS, project_category, project_shop
from indexer.records.related import CouponRecord, OfferRecord
from indexer.records.shop import ShopRecord
from indexer.state.state import State

Document = ShopDocument | CategoryDocument | CouponDocument | OfferDocument | FactsDocument


@dataclass(frozen=True, slots=True)
class Projected:
    """The documents of one kind.

    Attributes:
        kind: the index.
        count: the number of documents.
        documents: makes the documents, in the order of their rank where that is cheap.
        ids: the ids of all documents, in order.
    """

    kind: str
    count: int
    documents: Callable[[], Iterator[Document]]
    ids: Callable[[], Iterator[str]]


class Projector:
    """Makes documents from the records of one settled state."""

    def __init__(self, state: State) -> None:
        self._shops = state.shops
        self._related = state.related_records

    def all(self) -> tuple[Projected, ...]:
        """All kinds, with the counts of now."""
        shops, related = self._shops, self._related
        slugs = [category.slug for category in shops.categories()]
        coupons, offers = related.count("coupons"), related.count("offers")
        return (
            Projected("shops", shops.count(), self._all_shops, shops.public_ids),
            Projected("categories", len(slugs), lambda: map(project_category, shops.categories()), lambda: iter(slugs)),
            Projected(
                "coupons", coupons, lambda: starmap(project_coupon, related.coupons()), lambda: related.keys("coupons")
            ),
            Projected(
                "offers", offers, lambda: starmap(project_offer, related.offers()), lambda: related.keys("offers")
            ),
            Projected("facts", shops.count(), lambda: starmap(project_facts, related.facts()), shops.public_ids),
        )

    def document(self, kind: str, document_id: str) -> Document | None:
        """One document by its id; None when the id has no public record."""
        match kind:
            case "shops":
                return None if (shop := self._shops.public(document_id)) is None else self._shop(shop)
            case "facts":
                return None if (shop := self._shops.public(document_id)) is None else self._facts(shop)
            case "categories":
                category = self._shops.category(document_id)
                return None if category is None else project_category(category)
            case "coupons" | "offers":
                return self._owned(kind, document_id)
            case _:
                raise ValueError(f"there are no documents of the kind {kind}")

    def _all_shops(self) -> Iterator[ShopDocument]:
        for shop, has_offers, has_redirects in self._shops.winners():
            offers, total = self._related.newest_offers(shop.id, HEAD_OFFERS) if has_offers else ((), 0)
            yield project_shop(shop, offers, total, self._related.redirects(shop.domain) if has_redirects else ())

    def _shop(self, shop: ShopRecord) -> ShopDocument:
        offers, total = self._related.newest_offers(shop.id, HEAD_OFFERS)
        return project_shop(shop, offers, total, self._related.redirects(shop.domain))

    def _facts(self, shop: ShopRecord) -> FactsDocument:
        return project_facts(shop.id, shop.domain, self._related.shipping(shop.id), self._related.trust(shop.id))

    def _owned(self, kind: str, key: str) -> CouponDocument | OfferDocument | None:
        """The document of a coupon or an offer; None for one of a shop that is not public."""
        row = self._related.row(kind, key)
        if row is None or row.text is None or (shop := self._shops.public(str(row.owner))) is None:
            return None
        if kind == "coupons":
            return project_coupon(CouponRecord.model_validate_json(row.text), shop)
        return project_offer(OfferRecord.model_validate_json(row.text), shop, self._related.program(shop.id))
