"""What is known of a shop: its statement about shipping, and its measured trust signals, which are never a score."""

import re
from typing import Final

from shop_directory.conformance.exchange import Part, fields_of, require
from shop_directory.conformance.rule import SHOP_DOMAIN, Call, Need, each, expect_shape, has, null_or, rule
from shop_directory.conformance.rules.shops import NO_TOOL, expect_absent
from shop_directory.conformance.service_under_test import PROBED, ServiceUnderTest, expect_equal

_COUNTRIES: Final = 3
_SOURCES: Final = ("policy_page", "structured_data")
_VERDICTS: Final = ("yes", "no", "unknown")
_STATED: Final = ("destinations", "delivery_time", "free_shipping_threshold")
_FORBIDDEN: Final = re.compile(r"(.*_)?(carrier|price|cost|fee|rate|tariff)s?(_.*)?")
_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")
_COUNTRY: Final = re.compile("[A-Z]{2}")
# A group of countries that looks like a country code.
_GROUPS: Final = frozenset({"EU"})
# Territories with their state, and a group that has it without them; groups that have both.
_TERRITORIES: Final = {"GP": {"FR", "EU"}, "AX": {"FI", "EU"}, "FO": {"DK", "EU"}, "SJ": {"NO", "EEA"}, "JE": {"GB"}}
_WITH_ALL: Final = frozenset({"WORLDWIDE", "BRITISH_ISLES"})
# A country that few statements name.
_FAR: Final = "NR"
KINDS: Final = (
    "tls_issuer",
    "tls_grade",
    "hosting_isp",
    "hosting_country",
    "domain_registered_at",
    "registrar",
    "payment_methods",
)
_GAPS: Final = ("not_collected_yet", "pipeline_gap")
_NOTHING: Final = "no_signals_collected"
_JUDGEMENT: Final = re.compile("score|rating|percent|stars?$|rank|trustworth|verdict|reputation", re.IGNORECASE)


async def _measured(service: ServiceUnderTest) -> list[Part]:
    found = [answer for answer in await _answers(service) if answer["signals"].values()]
    return require(found, f"a shop with a trust signal among the first {PROBED}")


def _text_or_texts(value: Part) -> None:
    if isinstance(value.value, list):
        value.texts()
    else:
        value.text()


_SHIPPING: Final = "get_shipping_policy"
_FACTS: Final = ("payment_methods", "buyer_protection")
_POLICIES: Final = "get_shop_policies"
_POLICY: Final = {"country": null_or(Part.text), "source": Part.text, "checked_at": Part.time}
_RETURNS: Final = {
    **_POLICY,
    "category": lambda category: category.one_of("finite", "unlimited", "not_permitted"),
    "days": null_or(Part.whole),
    "counted_from": null_or(lambda start: start.one_of("delivered", "ordered")),
    "fees": lambda fees: fees.one_of("free", "paid", "unknown"),
}
_SIGNAL: Final = {"source": Part.text, "checked_at": Part.time, "value": _text_or_texts}

ROWS: Final = (
    rule("I59", "get_shipping_policy needs shop_domain and takes an ISO country.")(
        Call(_SHIPPING, status=400, shape={}),
        Call(_SHIPPING, {"shop_domain": SHOP_DOMAIN, "country": "Nauru"}, 400, shape={}),
        Call(_SHIPPING, {"shop_domain": SHOP_DOMAIN, "country": _FAR}, shape={}),
    ),
    rule("I30", "A signal has value, source and checked_at; one without source or time is omitted.", Need.TOKEN)(
        has(_measured, {"signals": each(_SIGNAL)})
    ),
)


@rule("I7", "Data is never invented: where nothing was collected about shipping, nothing is stated.")
async def _nothing_made_up(service: ServiceUnderTest) -> None:
    for statement in await _statements(service, collected=False):
        for name in (*_STATED, "checked_at", "source"):
            stated = statement.value.get(name)
            statement.must(stated in (None, [], False), f"no {name}, as nothing was collected, instead of {stated!r}")


@rule("I25", "A shipping statement has destinations, delivery time and free-shipping threshold; no carrier, no price.")
async def _terms(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        for name in _STATED:
            statement[name]
        for name, _ in fields_of(statement.value):
            is_allowed = not _FORBIDDEN.fullmatch(_HUMP.sub("_", name).lower())
            statement.must(is_allowed, f"no {name} in a statement about shipping")


@rule("I26", "A shipping statement says when it was checked, and whether on a policy_page or in structured_data.")
async def _checked(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        expect_shape(
            statement, {"checked_at": null_or(Part.time), "source": null_or(lambda one: one.one_of(*_SOURCES))}
        )
    sources = [statement["source"].value for statement in await _statements(service, collected=True)]
    require(any(source is not None for source in sources), "a statement about shipping whose source is known")


@rule("I27", "collected is a boolean; false is a gap in the data, never a refusal to ship.")
async def _collected(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        statement["collected"].flag()
    for statement in await _statements(service, collected=False):
        (await _verdict(service, statement, _FAR)).expect("unknown")


@rule("I28", "With country, ships_to is a verdict from the stated destinations, unknown where they don't settle it.")
async def _ships_to(service: ServiceUnderTest) -> None:
    found = False
    for statement in await _statements(service, collected=True):
        statement.must("ships_to" not in statement, "no ships_to where no country was given")
        destinations = _names(statement, "destinations")
        if not destinations or not all(map(is_country, destinations)):
            continue
        found = True
        (await _verdict(service, statement, destinations[0])).expect("yes")
        elsewhere = await _verdict(service, statement, _FAR)
        is_settled = _FAR not in destinations and elsewhere.one_of(*_VERDICTS) == "yes"
        elsewhere.must(not is_settled, "no or unknown, as the statement does not name the country")
    require(found, "a statement about shipping that names countries only")


@rule("A7", "What a statement names by itself counts; a complete list with a state leaves its territories unknown.")
async def _territories(service: ServiceUnderTest) -> None:
    found = False
    for statement in await _statements(service, collected=True):
        # The interface does not require excluded; without it a "no" can't be understood.
        if "excluded" not in statement:
            continue
        names, excepted = set(_names(statement, "destinations")), set(_names(statement, "excluded"))
        for country in sorted(filter(is_country, names | excepted))[:_COUNTRIES]:
            found = True
            (await _verdict(service, statement, country)).expect("no" if country in excepted else "yes")
        for territory, states in _TERRITORIES.items():
            if names & states and not (names | excepted) & (_WITH_ALL | {territory}):
                (await _verdict(service, statement, territory)).expect("unknown")
    require(found, "a statement about shipping that names a country")


@rule(
    "F8",
    "get_shop_policies, where it exists, has null or facts with source and time, and get_shipping_policy's shipping; "
    "unknown shops and those under review are shop_not_found.",
)
async def _policies(service: ServiceUnderTest) -> None:
    there = await service.about_shop(_POLICIES, service.subjects.shop().domain)
    require(there.status not in NO_TOOL, f"the tool {_POLICIES}, which the interface does not require")
    for policies, shipping in zip(
        await service.of_first_shops(_POLICIES), await service.of_first_shops(_SHIPPING), strict=True
    ):
        expect_shape(policies, {"returns": null_or(_RETURNS)} | dict.fromkeys(_FACTS, null_or(_POLICY)))
        policies["shipping"].expect(shipping.value)
    await expect_absent(service, _POLICIES)


@rule("I29", "get_trust returns at most the seven named kinds of signal, each once.", Need.TOKEN)
async def _kinds(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        kinds = [signal["kind"].one_of(*KINDS) for signal in answer["signals"].each()]
        answer["signals"].must(len(set(kinds)) == len(kinds), "each kind once")


@rule("I31", "No response of get_trust has a score, rating, percentage or star value.", Need.TOKEN)
async def _no_score(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        for name, value in fields_of(answer.value):
            answer.must(not _JUDGEMENT.search(name), f"no {name} in a response of get_trust")
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            is_allowed = not is_number or name in {"present", "total"}
            answer.must(is_allowed, f"no number except the two of the coverage; {name} is one")


@rule("I32", "Where nothing was measured, status is no_signals_collected and the list is empty.", Need.TOKEN)
async def _nothing_measured(service: ServiceUnderTest) -> None:
    unknown = await service.read("get_trust", {"shop_domain": service.unknown_id})
    for answer in (unknown, *await _answers(service)):
        is_empty, status = not answer["signals"].values(), answer["status"]
        status.must((status.text() == _NOTHING) == is_empty, f"{_NOTHING} exactly when there are no signals")


@rule("I33", "signal_coverage has the number of signals returned (present) and possible (total).", Need.TOKEN)
async def _coverage(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        answer["signal_coverage"]["present"].expect(len(answer["signals"].values()))
        answer["signal_coverage"]["total"].expect(len(KINDS))


@rule("I34", "Each missing signal has its reason: not_collected_yet or pipeline_gap.", Need.TOKEN)
async def _missing(service: ServiceUnderTest) -> None:
    for answer in await _answers(service):
        kinds = [signal["kind"].value for signal in answer["signals"].each()]
        missing = answer["signal_coverage"]["missing"]
        for gap in missing.each():
            gap["reason"].one_of(*_GAPS)
            kinds.append(gap["kind"].text())
        missing.must(sorted(kinds) == sorted(KINDS), "every kind that was not returned, once")


@rule("I35", "The description says that coverage is about the data, not the shop, and not for ranking or filtering.")
async def _coverage_is_described(service: ServiceUnderTest) -> None:
    openapi = await service.openapi()
    fields = fields_of(openapi["paths"]["/tool/get_trust"].value)
    described = " ".join(text for name, text in fields if name == "description" and isinstance(text, str)).lower()
    expected = "a description of get_trust that says not to rank or filter by the coverage"
    openapi.response.must(all(word in described for word in ("rank", "filter", "data")), expected, "none")


@rule(
    "I60",
    "get_trust needs shop_domain; unknown shops, those under review and unmeasured ones are indistinguishable.",
    Need.TOKEN,
)
async def _indistinguishable(service: ServiceUnderTest) -> None:
    (await service.tool("get_trust", {})).problem(400)
    unknown = await service.about_shop("get_trust", service.unknown_id)
    unknown.json()
    absent = [service.unknown_domain, *service.under_review]
    for shop, answer in zip(service.subjects.shops, await service.of_first_shops("get_trust"), strict=False):
        coverage = answer["signal_coverage"]
        if not coverage["present"].whole() and all(
            gap["reason"].value == _GAPS[0] for gap in coverage["missing"].each()
        ):
            absent.append(shop.domain)
    for subject in absent:
        response = await service.about_shop("get_trust", subject)
        expect_equal(unknown, response, "the same response for shops that are unknown, under review or not measured")
    require(service.under_review, f"a shop under review ({Need.UNDER_REVIEW}); the other responses are correct")


async def _statements(service: ServiceUnderTest, *, collected: bool | None = None) -> list[Part]:
    """The statements of the first shops; with `collected`, only those of that value."""
    found = await service.of_first_shops(_SHIPPING)
    if collected is not None:
        found = [statement for statement in found if statement.value.get("collected") is collected]
    kind = {None: "a shop", True: "a shop with a statement", False: "a shop without a statement"}[collected]
    return require(found, f"{kind} about shipping among the first {PROBED}")


def _names(statement: Part, field: str) -> tuple[str, ...]:
    """The countries and groups in a field; none where it is null."""
    return () if statement[field].value is None else statement[field].texts()


async def _verdict(service: ServiceUnderTest, statement: Part, country: str) -> Part:
    arguments = {"shop_domain": statement["shop"]["domain"].text(), "country": country}
    return (await service.read(_SHIPPING, arguments))["ships_to"]


def is_country(name: str) -> bool:
    """Whether a destination is the code of a country, and not of a group."""
    return _COUNTRY.fullmatch(name) is not None and name not in _GROUPS


async def _answers(service: ServiceUnderTest) -> list[Part]:
    service.subjects.shop()
    return await service.of_first_shops("get_trust")
