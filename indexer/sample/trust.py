"""The measured signals of some 180 shops: complete, partial, found empty, and without provenance (A8)."""

from collections.abc import Iterable, Iterator
from typing import Final

from indexer.sample.chance import chance, day_before, moment_before
from indexer.sample.featured import FEATURED
from indexer.sample.records import Shop, TrustRow

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
_FATES: Final = ("measured", "pipeline_gap", "not_checked", "no_source", "no_time")


def trust(shops: Iterable[Shop]) -> tuple[TrustRow, ...]:
    """The rows, ordered by shop id and kind; every hidden shop has some, a featured one all."""
    rows = [
        row for shop in shops if not shop.is_public or shop.domain in FEATURED or _gathered(shop) for row in _of(shop)
    ]
    return tuple(sorted(rows, key=lambda row: (row.shop_id, row.kind)))


def _gathered(shop: Shop) -> bool:
    return chance("measured", shop.id).random() < _GATHERED


def _of(shop: Shop) -> Iterator[TrustRow]:
    # One shop in six has all seven signals; one in twelve was checked and nothing at all was found.
    course = chance("course", shop.id).choices(("mixed", "complete", "empty"), weights=(9, 2, 1))[0]
    if shop.domain in FEATURED:
        course = "complete"
    for kind, values, source in _KINDS:
        luck = chance("trust", shop.id, kind)
        fate = luck.choices(_FATES, weights=(74, 9, 11, 3, 3))[0]
        if course != "mixed" or not shop.is_public:
            fate = "pipeline_gap" if course == "empty" and shop.is_public else "measured"
        if fate == "not_checked":
            continue
        value = luck.choice(values) if values else day_before(luck, days=7_000)
        yield TrustRow(
            shop_id=shop.id,
            kind=kind,
            value=None if fate == "pipeline_gap" else value,
            source=None if fate == "no_source" else source,
            checked_at=None if fate == "no_time" else moment_before(luck, days=90),
        )
