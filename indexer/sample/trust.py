"""The measured signals of about 180 shops: complete, partial, empty, and without provenance (A8)."""

from collections.abc import Iterable, Iterator
from typing import Final

from indexer.sample.featured import FEATURED
from indexer.sample.records import Shop, TrustRow
from indexer.sample.seeded_random import day_before, seeded_random, time_before

_GATHERED: Final = 0.58
#: A kind, the values it takes and where it is observed; values of domain_registered_at are made per shop.
_KINDS: Final[tuple[tuple[str, tuple[str | tuple[str, ...], ...], str], ...]] = (
    ("tls_issuer", ("Rosebay Trust CA 2", "Fjordlys Certificates R4", "Tern Island CA"), "tls_handshake"),
    ("tls_grade", ("A+", "A", "A", "B", "C"), "tls_handshake"),
    ("hosting_isp", ("Nimbuswerk Hosting", "Otterbank Networks", "Data Burrow Oy", "雲海ホスト"), "ip_registry"),
    ("hosting_country", ("DE", "FI", "IE", "US", "JP", "PL", "NL"), "ip_registry"),
    ("domain_registered_at", (), "rdap"),
    ("registrar", ("Namewharf Ltd", "Domänenwerft", "Registro del Faro"), "rdap"),
    (
        "payment_methods",
        (("card", "invoice"), ("card",), ("bank_transfer", "cash_on_delivery"), ("card", "wallet", "direct_debit")),
        "checkout_page",
    ),
)
_OUTCOMES: Final = ("measured", "pipeline_gap", "not_checked", "no_source", "no_time")


def trust(shops: Iterable[Shop]) -> tuple[TrustRow, ...]:
    """The rows, ordered by shop id and kind; every hidden shop has some, a featured one all."""
    rows = [
        row
        for shop in shops
        if not shop.is_public or shop.domain in FEATURED or _gathered(shop)
        for row in _rows_of(shop)
    ]
    return tuple(sorted(rows, key=lambda row: (row.shop_id, row.kind)))


def _gathered(shop: Shop) -> bool:
    return seeded_random("measured", shop.id).random() < _GATHERED


def _rows_of(shop: Shop) -> Iterator[TrustRow]:
    # One shop in six has all seven signals; for one in twelve all checks found nothing.
    profile = seeded_random("course", shop.id).choices(("mixed", "complete", "empty"), weights=(9, 2, 1))[0]
    if shop.domain in FEATURED:
        profile = "complete"
    for kind, values, source in _KINDS:
        rng = seeded_random("trust", shop.id, kind)
        outcome = rng.choices(_OUTCOMES, weights=(74, 9, 11, 3, 3))[0]
        if profile != "mixed" or not shop.is_public:
            outcome = "pipeline_gap" if profile == "empty" and shop.is_public else "measured"
        if outcome == "not_checked":
            continue
        value = rng.choice(values) if values else day_before(rng, days=7_000)
        yield TrustRow(
            shop_id=shop.id,
            kind=kind,
            value=None if outcome == "pipeline_gap" else value,
            source=None if outcome == "no_source" else source,
            checked_at=None if outcome == "no_time" else time_before(rng, days=90),
        )
