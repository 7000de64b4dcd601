"""The data of a shop in a segment, from its document or from its stored part in an index."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from index_mappings.documents import ShopDocument, markets_of
from index_mappings.forms import ShopForms, shop_forms
from index_mappings.typeahead.segment import DOTTED, FULL, KEY, LEADING, NAME, WORD, Shown, shown_part


class SegmentShop(NamedTuple):
    """The data of a shop in a segment.

    Attributes:
        id: its id, ASCII.
        popularity: 0 if the source states none, as in M1.
        shown: JSON of the suggestion's fields.
        markets: as in its document.
        categories: slugs.
        texts: each text by which it is found, with its marks.
    """

    id: str
    popularity: float
    shown: bytes
    markets: tuple[str, ...]
    categories: tuple[str, ...]
    texts: dict[str, int]


def segment_shop(shop: ShopDocument) -> SegmentShop:
    """The data of a shop from its document."""
    return _segment_shop(shown_part(shop), shop.markets, shop.categories, marked_texts(shop))


def stored_segment_shop(stored: Mapping[str, Any]) -> SegmentShop:
    """The data of a shop from its stored part, which has no forms; these are computed again."""
    domain, categories = stored["domain"], tuple(stored["categories"])
    shown = (stored["id"], stored["name"], domain, categories[0], stored["popularity"])
    forms = shop_forms(stored["name"], stored["aliases"], domain)
    return _segment_shop(shown, markets_of(stored["countries"], domain), categories, marked_texts(forms))


def marked_texts(forms: ShopForms | ShopDocument) -> dict[str, int]:
    """All texts by which a shop is found, each with the marks of a posting."""
    marks: dict[str, int] = {}
    _add(marks, FULL, (text for text in forms.full if text not in forms.rests))
    _add(marks, KEY, forms.keys)
    _add(marks, WORD, forms.words)
    _add(marks, NAME, forms.names)
    _add(marks, LEADING, forms.leading)
    _add(marks, DOTTED, forms.dotted)
    return marks


def _add(marks: dict[str, int], mark: int, texts: Iterable[str]) -> None:
    for text in texts:
        marks[text] = marks.get(text, 0) | mark


def _segment_shop(
    shown: Shown, markets: tuple[str, ...], categories: tuple[str, ...], texts: dict[str, int]
) -> SegmentShop:
    # Adding 0.0 changes -0.0 to 0.0, as in `rank_key`.
    popularity = (shown[4] or 0.0) + 0.0
    return SegmentShop(shown[0], popularity, orjson.dumps(shown), markets, categories, texts)
