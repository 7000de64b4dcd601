"""get_shipping_policy: the fields of a statement, fields that it must not have, and the verdict for a country."""

import re
from typing import Final

from shop_directory.conformance.exchange import Part, fields_of
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import ServiceUnderTest

_SHOPS: Final = 8
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


@rule("I7", "Data is never invented: where nothing was collected about shipping, nothing is stated.")
async def _nothing_made_up(service: ServiceUnderTest) -> None:
    for statement in await _statements(service, collected=False):
        for name in (*_STATED, "checked_at", "source"):
            if (stated := statement.value.get(name)) not in (None, [], False):
                raise statement.broken(f"no {name}, as nothing was collected, instead of {stated!r}")


@rule("I25", "A shipping statement has destinations, delivery time and free-shipping threshold; no carrier, no price.")
async def _terms(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        for name in _STATED:
            statement[name]
        for name, _ in fields_of(statement.value):
            if _FORBIDDEN.fullmatch(_HUMP.sub("_", name).lower()):
                raise statement.broken(f"no {name} in a statement about shipping")


@rule("I26", "A shipping statement says when it was checked, and whether on a policy_page or in structured_data.")
async def _checked(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        if not statement["checked_at"].is_null:
            statement["checked_at"].time()
        if not statement["source"].is_null:
            statement["source"].one_of(*_SOURCES)
    if all(statement["source"].is_null for statement in await _statements(service, collected=True)):
        raise NothingToSeeError("a statement about shipping whose source is known")


@rule("I27", "collected is a boolean; false is a gap in the data, never a refusal to ship.")
async def _collected(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        statement["collected"].flag()
    for statement in await _statements(service, collected=False):
        response = await service.tool("get_shipping_policy", {"shop_domain": _domain(statement), "country": _FAR})
        response.json()["ships_to"].expect("unknown")


@rule("I28", "With country, ships_to is a verdict from the stated destinations, unknown where they don't settle it.")
async def _ships_to(service: ServiceUnderTest) -> None:
    found = False
    for statement in await _statements(service, collected=True):
        if "ships_to" in statement.keys():  # noqa: SIM118 - a part is no dict
            raise statement.broken("no ships_to where no country was given")
        destinations = () if statement["destinations"].is_null else statement["destinations"].texts()
        if not destinations or not all(map(_is_country, destinations)):
            continue
        found = True
        (await _verdict(service, statement, destinations[0])).expect("yes")
        elsewhere = await _verdict(service, statement, _FAR)
        if _FAR not in destinations and elsewhere.one_of(*_VERDICTS) == "yes":
            raise elsewhere.broken("no or unknown, as the statement does not name the country")
    if not found:
        raise NothingToSeeError("a statement about shipping that names countries only")


@rule("A7", "What a statement names by itself counts; a complete list with a state leaves its territories unknown.")
async def _territories(service: ServiceUnderTest) -> None:
    found = False
    for statement in await _statements(service, collected=True):
        # The interface does not require excluded; without it a "no" can't be understood.
        if "excluded" not in statement.keys():  # noqa: SIM118 - a part is no dict
            continue
        names, excepted = (
            set() if statement[field].is_null else set(statement[field].texts())
            for field in ("destinations", "excluded")
        )
        for country in sorted(filter(_is_country, names | excepted))[:_COUNTRIES]:
            found = True
            (await _verdict(service, statement, country)).expect("no" if country in excepted else "yes")
        for territory, states in _TERRITORIES.items():
            if names & states and not (names | excepted) & (_WITH_ALL | {territory}):
                (await _verdict(service, statement, territory)).expect("unknown")
    if not found:
        raise NothingToSeeError("a statement about shipping that names a country")


@rule("I59", "get_shipping_policy needs shop_domain and takes an ISO country.")
async def _arguments(service: ServiceUnderTest) -> None:
    shop = service.subjects.shop()
    (await service.tool("get_shipping_policy", {})).problem(400)
    (await service.tool("get_shipping_policy", {"shop_domain": shop.domain, "country": "Nauru"})).problem(400)
    (await service.tool("get_shipping_policy", {"shop_domain": shop.domain, "country": _FAR})).json()


async def _statements(service: ServiceUnderTest, *, collected: bool | None = None) -> tuple[Part, ...]:
    """The statements of the first shops; with `collected`, only those of that value."""
    shops = service.subjects.shops[:_SHOPS]
    responses = [await service.tool("get_shipping_policy", {"shop_domain": shop.domain}) for shop in shops]
    found = [response.json() for response in responses]
    if collected is not None:
        found = [statement for statement in found if statement.value.get("collected") is collected]
    if not found:
        kind = {None: "a shop", True: "a shop with a statement", False: "a shop without a statement"}[collected]
        raise NothingToSeeError(f"{kind} about shipping among the first {_SHOPS}")
    return tuple(found)


async def _verdict(service: ServiceUnderTest, statement: Part, country: str) -> Part:
    arguments = {"shop_domain": _domain(statement), "country": country}
    return (await service.tool("get_shipping_policy", arguments)).json()["ships_to"]


def _is_country(name: str) -> bool:
    return _COUNTRY.fullmatch(name) is not None and name not in _GROUPS


def _domain(statement: Part) -> str:
    return statement["shop"]["domain"].text()
