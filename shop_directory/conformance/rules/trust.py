"""Trust: seven kinds of measured fact, each with source and time, how complete they are, and never a score."""

import re
from collections.abc import Iterator
from typing import Any, Final

from shop_directory.conformance.exchange import Part
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import Need, rule
from shop_directory.conformance.service_under_test import Visit, expect_equal

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


@rule("I29", "get_trust delivers at most the seven named kinds of signal, each once.", Need.TOKEN)
async def _kinds(visit: Visit) -> None:
    for answer in await _answers(visit):
        kinds = [signal["kind"].one_of(*KINDS) for signal in answer["signals"].each()]
        if len(set(kinds)) != len(kinds):
            raise answer["signals"].broken("each kind once")


@rule("I30", "A signal has its value, source and checked_at; one without source or time is left out whole.", Need.TOKEN)
async def _whole_signals(visit: Visit) -> None:
    for answer in await _measured(visit):
        for signal in answer["signals"].each():
            signal["source"].text()
            signal["checked_at"].time()
            value = signal["value"]
            if isinstance(value.value, list):
                value.texts()
            else:
                value.text()


@rule("I31", "No score, rating, percentage or star value is in any trust answer.", Need.TOKEN)
async def _no_score(visit: Visit) -> None:
    for answer in await _answers(visit):
        for name, value in _fields(answer.value):
            if _JUDGEMENT.search(name):
                raise answer.broken(f"no {name} in an answer about trust")
            if name not in {"present", "total"} and isinstance(value, int | float) and not isinstance(value, bool):
                raise answer.broken(f"no number but the two of the coverage, and {name} is one")


@rule("I32", "Nothing measured is status no_signals_collected with an empty list, and no verdict.", Need.TOKEN)
async def _nothing_measured(visit: Visit) -> None:
    unknown = (await visit.tool("get_trust", {"shop_domain": visit.unknown_id})).answer()
    for answer in (unknown, *await _answers(visit)):
        is_empty = not answer["signals"].values()
        if (answer["status"].text() == _NOTHING) != is_empty:
            raise answer["status"].broken(f"{_NOTHING} exactly when there are no signals")


@rule("I33", "signal_coverage counts the signals delivered (present) and possible (total).", Need.TOKEN)
async def _coverage(visit: Visit) -> None:
    for answer in await _answers(visit):
        coverage = answer["signal_coverage"]
        coverage["present"].expect(len(answer["signals"].values()))
        coverage["total"].expect(len(KINDS))


@rule("I34", "Each missing signal has its reason: not_collected_yet or pipeline_gap.", Need.TOKEN)
async def _missing(visit: Visit) -> None:
    for answer in await _answers(visit):
        present = [signal["kind"].value for signal in answer["signals"].each()]
        missing = []
        for gap in answer["signal_coverage"]["missing"].each():
            gap["reason"].one_of(*_REASONS)
            missing.append(gap["kind"].text())
        if sorted(present + missing) != sorted(KINDS):
            raise answer["signal_coverage"]["missing"].broken("every kind that was not delivered, once")


@rule("I35", "Clients are told that coverage measures the data and not the shop, and is not for ranking or filtering.")
async def _told(visit: Visit) -> None:
    reply = await visit.get("/openapi.json")
    described = " ".join(_texts(reply.answer()["paths"]["/tool/get_trust"].value)).lower()
    if not all(word in described for word in ("rank", "filter", "data")):
        raise reply.broken("a description of get_trust that says not to rank or filter by the coverage", "none")


@rule("I60", "get_trust needs shop_domain; unknown, under review and unmeasured can't be told apart.", Need.TOKEN)
async def _one_absence(visit: Visit) -> None:
    (await visit.tool("get_trust", {})).problem(400)
    unknown = await visit.tool("get_trust", {"shop_domain": visit.unknown_id})
    unknown.answer()
    absent = [visit.unknown_domain, *visit.under_review]
    for shop in visit.seen.shops[:_SHOPS]:
        coverage = (await visit.tool("get_trust", {"shop_domain": shop.domain})).answer()["signal_coverage"]
        if not coverage["present"].whole() and all(
            gap["reason"].value == _REASONS[0] for gap in coverage["missing"].each()
        ):
            absent.append(shop.domain)
    for subject in absent:
        reply = await visit.tool("get_trust", {"shop_domain": subject})
        expect_equal(unknown, reply, "the same answer for whatever is unknown, under review or not measured")
    if not visit.under_review:
        raise NothingToSeeError(f"a shop under review ({Need.UNDER_REVIEW}); the others are as they should be")


async def _answers(visit: Visit) -> tuple[Part, ...]:
    """Those for the first shops."""
    replies = [await visit.tool("get_trust", {"shop_domain": shop.domain}) for shop in visit.seen.shops[:_SHOPS]]
    if not replies:
        raise NothingToSeeError("a shop in the catalogue")
    return tuple(reply.answer() for reply in replies)


async def _measured(visit: Visit) -> tuple[Part, ...]:
    found = tuple(answer for answer in await _answers(visit) if answer["signals"].values())
    if not found:
        raise NothingToSeeError(f"a shop with a trust signal among the first {_SHOPS}")
    return found


def _fields(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON value
    """All fields with their values, at any depth."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as found:
                yield from found.items()
                waiting += found.values()
            case list() as found:
                waiting += found


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    for name, found in _fields(value):
        if name == "description" and isinstance(found, str):
            yield found
