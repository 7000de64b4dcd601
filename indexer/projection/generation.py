"""Makes the documents of a generation from the public records of a state, kind by kind or one by one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
        return (
            Projected("shops", shops.count(), self._all_shops, shops.public_ids),
            Projected("categories", self._count_categories(), self._categories, self._slugs),
            Projected("coupons", related.count("coupons"), self._coupons, lambda: related.keys("coupons")),
            Projected("offers", related.count("offers"), self._offers, lambda: related.keys("offers")),
            Projected("facts", shops.count(), self._all_facts, shops.public_ids),
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
            case "coupons":
                return self._coupon(document_id)
            case "offers":
                return self._offer(document_id)
            case _:
                raise ValueError(f"there are no documents of the kind {kind}")

    def _all_shops(self) -> Iterator[ShopDocument]:
        for shop, has_offers, has_redirects in self._shops.winners():
            offers, total = self._related.newest_offers(shop.id, HEAD_OFFERS) if has_offers else ((), 0)
            yield project_shop(shop, offers, total, self._related.redirects(shop.domain) if has_redirects else ())

    def _all_facts(self) -> Iterator[FactsDocument]:
        return (project_facts(*known) for known in self._related.facts())

    def _shop(self, shop: ShopRecord) -> ShopDocument:
        offers, total = self._related.newest_offers(shop.id, HEAD_OFFERS)
        return project_shop(shop, offers, total, self._related.redirects(shop.domain))

    def _facts(self, shop: ShopRecord) -> FactsDocument:
        return project_facts(shop.id, shop.domain, self._related.shipping(shop.id), self._related.trust(shop.id))

    def _coupons(self) -> Iterator[CouponDocument]:
        return (project_coupon(coupon, shop) for coupon, shop in self._related.coupons())

    def _offers(self) -> Iterator[OfferDocument]:
        return (project_offer(offer, shop, program) for offer, shop, program in self._related.offers())

    def _categories(self) -> Iterator[CategoryDocument]:
        return map(project_category, self._shops.categories())

    def _slugs(self) -> Iterator[str]:
        return (category.slug for category in self._shops.categories())

    def _count_categories(self) -> int:
        return sum(1 for _ in self._shops.categories())

    def _coupon(self, key: str) -> CouponDocument | None:
        text, shop = self._public_row("coupons", key)
        return None if shop is None else project_coupon(CouponRecord.model_validate_json(text), shop)

    def _offer(self, key: str) -> OfferDocument | None:
        text, shop = self._public_row("offers", key)
        if shop is None:
            return None
        return project_offer(OfferRecord.model_validate_json(text), shop, self._related.program(shop.id))

    def _public_row(self, kind: str, key: str) -> tuple[str, ShopRecord | None]:
        """The text of a coupon or offer with its shop; None for a shop that is not public."""
        row = self._related.row(kind, key)
        if row is None or row.text is None:
            return "", None
        return row.text, self._shops.public(str(row.owner))
