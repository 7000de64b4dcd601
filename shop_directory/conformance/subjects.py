"""What a run has found in the catalogue of the service, so that rules have shops, categories and coupons to ask for."""

from dataclasses import dataclass

from shop_directory.conformance.findings import NothingToSeeError


@dataclass(frozen=True, slots=True)
class SeenShop:
    """A shop as find_shop shows it.

    Attributes:
        id: its id.
        name: its display name; hostile text, never shown unbounded.
        domain: its domain.
        categories: its slugs, the primary one first.
        countries: its markets; None where they are not stated.
        offers: ids of some of its offers.
    """

    id: str
    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...] | None
    offers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenCategory:
    """A category as list_categories shows it."""

    slug: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The subjects of a catalogue.

    Attributes:
        answered: the address answered like a Shop Directory, at least once.
        shops: the first hundred of the blank query, in its order.
        categories: all that have shops.
        coupon_shops: ids of shops with a usable coupon, each once.
        codes: a usable code of each of them.
    """

    answered: bool = False
    shops: tuple[SeenShop, ...] = ()
    categories: tuple[SeenCategory, ...] = ()
    coupon_shops: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def shop(self) -> SeenShop:
        """Any shop."""
        if not self.shops:
            raise NothingToSeeError("a shop in the catalogue")
        return self.shops[0]

    def category(self, at_least: int = 1) -> SeenCategory:
        """The smallest category of at least so many shops: its pages are the shortest."""
        large = [category for category in self.categories if category.count >= at_least]
        if not large:
            raise NothingToSeeError(f"a category of {at_least} shops or more")
        return min(large, key=lambda category: (category.count, category.slug))

    def offer(self) -> str:
        """The id of any offer."""
        for shop in self.shops:
            if shop.offers:
                return shop.offers[0]
        raise NothingToSeeError("an offer among the first shops")
