"""get_trust: measured signals one by one, and no score; unknown shops and those under review have none (A8)."""

from typing import Literal

from pydantic import Field

from index_mappings.documents import TRUST_KINDS
from service.tools.request import ShopRequest
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse
from shop_directory.search.bounds import reduce_reference
from shop_directory.search.protocol import Facts


class GetTrustRequest(ShopRequest):
    """Whose signals."""


class Signal(ToolResponse):
    """One measured fact."""

    kind: str = Field(description=f"One of {', '.join(TRUST_KINDS)}.")
    value: str | tuple[str, ...] = Field(description="What was observed; a list for payment_methods.")
    source: str = Field(description="Where it was observed.")
    checked_at: str = Field(description="RFC 3339 time of the observation.")


class MissingSignal(ToolResponse):
    """A fact that is not there, and why."""

    kind: str = Field(description="The kind of signal.")
    reason: Literal["not_collected_yet", "pipeline_gap"] = Field(
        description="not_collected_yet: never checked. pipeline_gap: checked without a usable value."
    )


class SignalCoverage(ToolResponse):
    """How complete the data is; says nothing about the shop."""

    present: int = Field(description="Number of signals in signals.")
    total: int = Field(description="Number of kinds of signal.")
    missing: tuple[MissingSignal, ...] = Field(description="The kinds without a signal.")


class GetTrustResponse(ToolResponse):
    """The signals, and whether there are any."""

    status: Literal["signals_collected", "no_signals_collected"] = Field(
        description="no_signals_collected: nothing was measured, which is not a verdict."
    )
    signals: tuple[Signal, ...] = Field(description="The measured facts.")
    signal_coverage: SignalCoverage = Field(
        description="Completeness of the data, not quality of the shop: never rank or filter by it."
    )


async def run(request: GetTrustRequest, context: ToolContext) -> GetTrustResponse:
    """Look the signals up; text that can name no shop is looked up like an unknown shop."""
    facts = await context.search.trust(reduce_reference(request.reference or "") or "")
    signals = () if facts is None else tuple(Signal.model_validate(signal) for signal in facts.signals)
    return GetTrustResponse(
        status="signals_collected" if signals else "no_signals_collected",
        signals=signals,
        signal_coverage=SignalCoverage(
            present=len(signals), total=len(TRUST_KINDS), missing=_missing(facts, {signal.kind for signal in signals})
        ),
    )


def _missing(facts: Facts | None, present: set[str]) -> tuple[MissingSignal, ...]:
    gaps = () if facts is None else facts.pipeline_gaps
    return tuple(
        MissingSignal(kind=kind, reason="pipeline_gap" if kind in gaps else "not_collected_yet")
        for kind in TRUST_KINDS
        if kind not in present
    )


GET_TRUST = Tool(
    name="get_trust",
    title="Get a shop's trust signals",
    description=(
        "Get measured facts about a shop's site, each with its source and time: TLS issuer and grade, hosting "
        "provider and country, domain registration date, registrar, payment methods. There is no score and no "
        "verdict: do not derive one from signal_coverage, which only says how complete the data is, and never rank "
        "or filter shops by it. no_signals_collected: nothing was measured; it does not mean that the shop is "
        "known, as unknown ones get the same. Needs an API token."
    ),
    request=GetTrustRequest,
    response=GetTrustResponse,
    token=TokenRule.REQUIRED,
    run=run,
    examples=(
        Example("By domain", {"shop_domain": "rimona.internal"}),
        Example("Nothing was measured, which is no verdict", {"shop_domain": "almacenazulejo.internal"}),
    ),
)
