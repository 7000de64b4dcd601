"""What is kept of a shop in sorted texts, whichever way the shop comes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from index_mappings.documents import ShopDocument, markets_of
from index_mappings.forms import shop_forms
from index_mappings.rank import rank_key
from index_mappings.typeahead import Shown, shown_part


class Findable(NamedTuple):
    """What is kept of a shop.

    Attributes:
        id, rank, markets, names, leading, full, keys, words: as in its document.
        shown: what a suggestion shows.
    """

    id: str
    rank: str
    shown: Shown
    markets: tuple[str, ...]
    names: tuple[str, ...]
    leading: tuple[str, ...]
    full: tuple[str, ...]
    keys: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, shop: ShopDocument) -> "Findable":
        """That part of a document."""
        shown = shown_part(shop)
        return cls(shop.id, shop.rank, shown, shop.markets, shop.names, shop.leading, shop.full, shop.keys, shop.words)

    @classmethod
    def of_stored(cls, stored: Mapping[str, Any]) -> "Findable":
        """The same from what comes back with a hit."""
        shop_id, popularity = stored["id"], stored["popularity"]
        shown = (shop_id, stored["name"], stored["domain"], stored["categories"][0], popularity)
        forms = shop_forms(stored["name"], stored["aliases"], stored["domain"])
        return cls(
            shop_id,
            rank_key(popularity, shop_id),
            shown,
            markets_of(stored["countries"], stored["domain"]),
            forms.names,
            forms.leading,
            forms.full,
            forms.keys,
            forms.words,
        )

    @classmethod
    def of_wire(cls, wire: Sequence[Any]) -> "Findable":
        """One that was written as JSON."""
        shop_id, rank, shown, *terms = wire
        return cls(shop_id, rank, tuple(shown), *map(tuple, terms))
