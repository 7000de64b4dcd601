"""get_trust: seven kinds of measured signals with source and time, their coverage, and never a score."""

import re
from collections.abc import Iterator
from typing import Any, Final

from shop_directory.conformance.exchange import Part, fields_of
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import ServiceUnderTest, expect_equal

KINDS: Final = (
    "tls_issuer",
    "tls_grade",
    "hosting_isp",
    "hosting_country",
    "domain_registered_at",
    "registrar",
    "payment_methods",
)
_REASONS: Final = ("not_collected_yet", "pipeline_gap")
_NOTHING: Final = "no_signals_collected"
_SHOPS: Final = 8
_JUDGEMENT: Final = re.compile("score|rating|percent|stars?$|rank|trustworth|verdict|reputation", re.IGNORECASE)


@rule("I29", "get_trust returns at most the seven named kinds of signal, each once.", Need.TOKEN)
async def _kinds(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        kinds = [signal["kind"].one_of(*KINDS) for signal in answer["signals"].each()]
        if len(set(kinds)) != len(kinds):
            raise answer["signals"].broken("each kind once")


@rule("I30", "A signal has value, source and checked_at; one without source or time is omitted.", Need.TOKEN)
async def _complete_signals(service: ServiceUnderTest) -> None:
    for answer in await _measured(service):
        for signal in answer["signals"].each():
            signal["source"].text()
            signal["checked_at"].time()
            value = signal["value"]
            if isinstance(value.value, list):
                value.texts()
            else:
                value.text()


@rule("I31", "No response of get_trust has a score, rating, percentage or star value.", Need.TOKEN)
async def _no_score(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        for name, value in fields_of(answer.value):
            if _JUDGEMENT.search(name):
                raise answer.broken(f"no {name} in a response of get_trust")
            if name not in {"present", "total"} and isinstance(value, int | float) and not isinstance(value, bool):
                raise answer.broken(f"no number except the two of the coverage; {name} is one")


@rule("I32", "Where nothing was measured, status is no_signals_collected and the list is empty.", Need.TOKEN)
async def _nothing_measured(service: ServiceUnderTest) -> None:
    unknown = (await service.tool("get_trust", {"shop_domain": service.unknown_id})).json()
    for answer in (unknown, *await _answers(service)):
        is_empty = not answer["signals"].values()
        if (answer["status"].text() == _NOTHING) != is_empty:
            raise answer["status"].broken(f"{_NOTHING} exactly when there are no signals")


@rule("I33", "signal_coverage has the number of signals returned (present) and possible (total).", Need.TOKEN)
async def _coverage(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        coverage = answer["signal_coverage"]
        coverage["present"].expect(len(answer["signals"].values()))
        coverage["total"].expect(len(KINDS))


@rule("I34", "Each missing signal has its reason: not_collected_yet or pipeline_gap.", Need.TOKEN)
async def _missing(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        present = [signal["kind"].value for signal in answer["signals"].each()]
        missing = []
        for gap in answer["signal_coverage"]["missing"].each():
            gap["reason"].one_of(*_REASONS)
            missing.append(gap["kind"].text())
        if sorted(present + missing) != sorted(KINDS):
            raise answer["signal_coverage"]["missing"].broken("every kind that was not returned, once")


@rule("I35", "The description says that coverage is about the data, not the shop, and not for ranking or filtering.")
async def _coverage_is_described(service: ServiceUnderTest) -> None:
    response = await service.get("/openapi.json")
    described = " ".join(_texts(response.json()["paths"]["/tool/get_trust"].value)).lower()
    if not all(word in described for word in ("rank", "filter", "data")):
        raise response.broken("a description of get_trust that says not to rank or filter by the coverage", "none")


@rule(
    "I60",
    "get_trust needs shop_domain; unknown shops, those under review and unmeasured ones are indistinguishable.",
    Need.TOKEN,
)
async def _indistinguishable(service: ServiceUnderTest) -> None:
    (await service.tool("get_trust", {})).problem(400)
    unknown = await service.tool("get_trust", {"shop_domain": service.unknown_id})
    unknown.json()
    absent = [service.unknown_domain, *service.under_review]
    for shop in service.subjects.shops[:_SHOPS]:
        coverage = (await service.tool("get_trust", {"shop_domain": shop.domain})).json()["signal_coverage"]
        if not coverage["present"].whole() and all(
            gap["reason"].value == _REASONS[0] for gap in coverage["missing"].each()
        ):
            absent.append(shop.domain)
    for subject in absent:
        response = await service.tool("get_trust", {"shop_domain": subject})
        expect_equal(unknown, response, "the same response for shops that are unknown, under review or not measured")
    if not service.under_review:
        raise NothingToSeeError(f"a shop under review ({Need.UNDER_REVIEW}); the other responses are correct")


async def _answers(service: ServiceUnderTest) -> tuple[Part, ...]:
    """The responses for the first shops."""
    responses = [
        await service.tool("get_trust", {"shop_domain": shop.domain}) for shop in service.subjects.shops[:_SHOPS]
    ]
    if not responses:
        raise NothingToSeeError("a shop in the catalogue")
    return tuple(response.json() for response in responses)


async def _measured(service: ServiceUnderTest) -> tuple[Part, ...]:
    found = tuple(answer for answer in await _answers(service) if answer["signals"].values())
    if not found:
        raise NothingToSeeError(f"a shop with a trust signal among the first {_SHOPS}")
    return found


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    for name, found in fields_of(value):
        if name == "description" and isinstance(found, str):
            yield found
