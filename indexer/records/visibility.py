"""The gate: the one function that decides which shops the public may see (V1).

It is asked before anything else. A shop that does not pass wins no domain and no name, and nothing of it is projected.
"""

from indexer.records.shop import ShopRecord


def is_public(shop: ShopRecord) -> bool:
    """Whether the shop, and what belongs to it, may be projected."""
    return shop.visibility == "public"
