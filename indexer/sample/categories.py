"""The categories of the sample: slug and display name, without a hierarchy.

Only shops that are not public carry ``night-market``, so it must never be listed (V1).
"""

from typing import Final

from indexer.sample.records import Category

HIDDEN_ONLY: Final = "night-market"

_NAMES: Final = {
    "bicycles": "Bicycles",
    "books": "Books",
    "coffee-tea": "Coffee & Tea",
    "computers": "Computers",
    "crafts": "Crafts & Sewing",
    "delicatessen": "Feinkost & Käse",
    "diy": "DIY & Tools",
    "electronics": "Electronics",
    "fashion": "Fashion",
    "fashion-kids": "Fashion for Kids",
    "flowers": "Flowers",
    "furniture": "Furniture",
    "garden": "Garden & Balcony",
    "gifts": "Gifts",
    "grocery": "Groceries",
    "health": "Health & Pharmacy",
    "jewellery": "Jewellery",
    "lighting": "Lighting",
    "maps-globes": "Maps & Globes",
    "music": "Music & Instruments",
    "online-deals": "Online (deals)",
    "outdoor": "Outdoor",
    "pets": "Pets",
    "shoes": "Shoes",
    "stationery": "Stationery",
    "toys": "Toys & Games",
    "wine": "Wine & Cider",
    HIDDEN_ONLY: "Night Market",
}

#: All of them, in order.
SLUGS: Final = tuple(sorted(_NAMES))
#: The categories of composed shops; only one shop of the tables has "maps-globes".
COMMON: Final = tuple(slug for slug in _NAMES if slug not in {HIDDEN_ONLY, "maps-globes"})


def category(slug: str) -> Category:
    """The category of a slug; KeyError for one that the sample does not have."""
    return Category(slug, _NAMES[slug])
