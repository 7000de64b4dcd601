"""What a run has found in the catalogue of the service, so that rules have shops, categories and coupons to ask for."""

from dataclasses import dataclass

from shop_directory.conformance.findings import NothingToSeeError


@dataclass(frozen=True, slots=True)
class KnownShop:
    """A shop of the results of find_shop.

    Attributes:
        id: the id.
        name: the display name; untrusted text, shown with a bound only.
        domain: the domain.
        categories: the slugs, the primary one first.
        countries: the markets; None where they are not stated.
        offers: ids of some of the offers.
    """

    id: str
    name: str
    domain: str
    categories: tuple[str, ...]
    countries: tuple[str, ...] | None
    offers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownCategory:
    """A category of the results of list_categories."""

    slug: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a catalogue.

    Attributes:
        answered: at least one response was that of a Shop Directory.
        shops: the first hundred of the blank query, in its order.
        categories: all that have shops.
        coupon_shops: ids of shops with a usable coupon, each once.
        codes: a usable code of each of these shops.
    """

    answered: bool = False
    shops: tuple[KnownShop, ...] = ()
    categories: tuple[KnownCategory, ...] = ()
    coupon_shops: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    def shop(self) -> KnownShop:
        """Any shop."""
        if not self.shops:
            raise NothingToSeeError("a shop in the catalogue")
        return self.shops[0]

    def category(self, at_least: int = 1) -> KnownCategory:
        """The smallest category of at least this many shops: its pages are the shortest."""
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
