"""Projection of shipping and trust: one document a public shop, stating what is known and what is not (A7, A8)."""

from typing import Any

from index_mappings.documents import TRUST_KINDS, FactsDocument
from index_mappings.timestamps import optional_timestamp
from indexer.records.related import ShippingRecord, TrustRecord


def project_facts(
    shop_id: str, domain: str, shipping: ShippingRecord | None, trust: tuple[TrustRecord, ...]
) -> FactsDocument:
    """The facts of a public shop, with its id and its reduced domain."""
    rows = {row.kind: row for row in trust}
    signals = tuple(_signal(rows[kind]) for kind in TRUST_KINDS if kind in rows and rows[kind].is_present)
    refs = (shop_id, domain)
    return FactsDocument(
        id=shop_id,
        rank=shop_id,
        refs=refs,
        # Without a present signal the shop has no reference here, and the answer is that for an unknown shop (A8).
        trusted_refs=refs if signals else (),
        shop={"id": shop_id, "domain": domain},
        shipping=None if shipping is None else _shipping(shipping),
        signals=signals,
        pipeline_gaps=tuple(
            kind for kind in TRUST_KINDS if kind in rows and rows[kind].is_measured and not rows[kind].is_present
        ),
    )


def _signal(row: TrustRecord) -> dict[str, Any]:
    value = list(row.value) if isinstance(row.value, tuple) else row.value
    return {"kind": row.kind, "value": value, "source": row.source, "checked_at": optional_timestamp(row.checked_at)}


def _shipping(shipping: ShippingRecord) -> dict[str, Any]:
    time, threshold = shipping.delivery_time, shipping.free_shipping_threshold
    return {
        "destinations": None if shipping.destinations is None else list(shipping.destinations),
        "excluded": list(shipping.excluded or ()),
        "destinations_exhaustive": bool(shipping.destinations_exhaustive),
        "delivery_time": None if time is None else time.model_dump(),
        "free_shipping_threshold": None if threshold is None else threshold.model_dump(),
        "checked_at": optional_timestamp(shipping.checked_at),
        "source": shipping.source,
    }
