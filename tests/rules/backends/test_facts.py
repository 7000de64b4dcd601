"""get_shipping_policy and get_trust: what is stated, what is measured, and one miss for everything else (A7, A8)."""

import json
from typing import Any, Final

import pytest

from index_mappings.documents import TRUST_KINDS
from service.errors import ShopNotFoundError
from service.tools.get_shipping_policy import GET_SHIPPING_POLICY
from service.tools.get_trust import GET_TRUST
from tests.rules.backends.asking import call
from tests.rules.backends.conftest import Directory
from tests.support.catalogues import shipping, shop, trust

TIME: Final = "2031-05-06T07:08:09Z"
ABSENT: Final = ("nobody", "nobody.internal", "hidden", "hidden.internal", "removed", "loser", "!", "a b.", "x.")


def _shops() -> list[dict[str, Any]]:
    return [
        shop("Nord", "nord.internal", id="s1", popularity=1),
        shop("Sud", "sud.internal", id="s2"),
        shop("Hidden", "hidden.internal", id="hidden", visibility="under_review"),
        shop("Removed", id="removed", visibility="removed"),
        shop("Loser", "nord.internal", id="loser"),
    ]


@pytest.mark.rule("A7", "I25", "I26", "I28")
async def test_a_shipping_statement_is_shown_whole_and_ships_to_only_when_a_country_is_given(
    directory: Directory,
) -> None:
    world = await directory(
        _shops(),
        shipping=[
            shipping(
                "s1",
                destinations=["EU", "CH"],
                excluded=["MT"],
                destinations_exhaustive=True,
                delivery_time={"min_days": 2, "as_stated": "from 2 days"},
                free_shipping_threshold={"amount": "49.00", "currency": "EUR"},
                checked_at=TIME,
                source="policy_page",
            )
        ],
    )
    stated = {
        "shop": {"id": "s1", "domain": "nord.internal"},
        "collected": True,
        "destinations": ("EU", "CH"),
        "excluded": ("MT",),
        "destinations_exhaustive": True,
        "delivery_time": {"min_days": 2, "max_days": None, "as_stated": "from 2 days"},
        "free_shipping_threshold": {"amount": "49.00", "currency": "EUR"},
        "checked_at": TIME,
        "source": "policy_page",
    }
    for reference in ("s1", "nord.internal", "https://www.nord.internal/shipping"):
        assert await call(world, GET_SHIPPING_POLICY, shop_domain=reference) == stated
    for country, verdict in {"at": "yes", "CH": "yes", "MT": "no", "US": "no"}.items():
        answer = await call(world, GET_SHIPPING_POLICY, shop_domain="s1", country=country)
        assert answer == {**stated, "ships_to": verdict}


@pytest.mark.rule("A7", "A13", "I27")
async def test_a_shop_without_a_statement_is_a_gap_and_unknown_for_every_country(directory: Directory) -> None:
    world = await directory(_shops(), shipping=[shipping("s1", destinations=["AT"])])
    gap = {
        "shop": {"id": "s2", "domain": "sud.internal"},
        "collected": False,
        "destinations": None,
        "excluded": None,
        "destinations_exhaustive": False,
        "delivery_time": None,
        "free_shipping_threshold": None,
        "checked_at": None,
        "source": None,
    }
    assert await call(world, GET_SHIPPING_POLICY, shop_domain="s2") == gap
    assert await call(world, GET_SHIPPING_POLICY, shop_domain="s2", country="AT") == {**gap, "ships_to": "unknown"}
    collected = await call(world, GET_SHIPPING_POLICY, shop_domain="s1", country="DE")
    assert (collected["collected"], collected["ships_to"], collected["source"]) == (True, "unknown", None)


@pytest.mark.rule("A7", "V2", "I6", "V1.dependents")
async def test_the_shipping_of_an_unknown_or_hidden_shop_is_not_found(directory: Directory) -> None:
    world = await directory(_shops(), shipping=[shipping(owner) for owner in ("hidden", "removed", "loser")])
    for reference in ABSENT:
        with pytest.raises(ShopNotFoundError):
            await call(world, GET_SHIPPING_POLICY, shop_domain=reference, country="AT")


@pytest.mark.rule("A8", "I29", "I30", "I31", "I33", "I34", "M11.other_lists")
async def test_signals_are_shown_in_one_order_with_what_is_missing_and_why(directory: Directory) -> None:
    world = await directory(
        _shops(),
        trust=[
            trust("s1", "payment_methods", ["card", "invoice"]),
            trust("s1", "tls_issuer", "An Authority"),
            trust("s1", "tls_grade", None),
            trust("s1", "hosting_isp", ""),
            trust("s1", "hosting_country", "DE", source=None),
            trust("s1", "domain_registered_at", []),
            trust("s1", "registrar", "R", checked_at=None),
            trust("s2", "registrar", "R"),
            trust("s2", "tls_grade", None, source=None),
            trust("s2", "hosting_isp", "I", source=""),
        ],
    )
    answer = await call(world, GET_TRUST, shop_domain="nord.internal")
    assert answer == {
        "status": "signals_collected",
        "signals": (
            {"kind": "tls_issuer", "value": "An Authority", "source": "test", "checked_at": TIME},
            {"kind": "payment_methods", "value": ("card", "invoice"), "source": "test", "checked_at": TIME},
        ),
        "signal_coverage": {
            "present": 2,
            "total": 7,
            "missing": (
                {"kind": "tls_grade", "reason": "pipeline_gap"},
                {"kind": "hosting_isp", "reason": "pipeline_gap"},
                {"kind": "hosting_country", "reason": "not_collected_yet"},
                {"kind": "domain_registered_at", "reason": "pipeline_gap"},
                {"kind": "registrar", "reason": "not_collected_yet"},
            ),
        },
    }
    other = await call(world, GET_TRUST, shop_domain="s2")
    assert [signal["kind"] for signal in other["signals"]] == ["registrar"]
    assert {gap["reason"] for gap in other["signal_coverage"]["missing"]} == {"not_collected_yet"}


@pytest.mark.rule("A8", "V2", "I6", "I32", "I60", "V1.dependents")
async def test_unknown_hidden_and_unmeasured_are_the_same_answer_to_the_byte(directory: Directory) -> None:
    world = await directory(
        _shops(),
        trust=[
            trust("s1", "registrar", "R"),
            # Checks that ran and found nothing: without a present signal that is nothing either.
            *(trust("s2", kind, None) for kind in TRUST_KINDS),
            *(trust(owner, "registrar", "R") for owner in ("hidden", "removed", "loser", "nobody")),
        ],
    )
    answers = {
        json.dumps(await call(world, GET_TRUST, shop_domain=reference)) for reference in ("s2", "sud.internal", *ABSENT)
    }
    (only,) = map(json.loads, answers)
    assert only == {
        "status": "no_signals_collected",
        "signals": [],
        "signal_coverage": {
            "present": 0,
            "total": 7,
            "missing": [{"kind": kind, "reason": "not_collected_yet"} for kind in TRUST_KINDS],
        },
    }
