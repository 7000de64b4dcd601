"""What is known of a shop: its coupons, its shipping and policies, and its trust signals, which are never a score.

Reports are sent with --write only, and all about one shop.
"""

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from shop_directory.conformance.exchange import (
    NothingToSeeError,
    Part,
    Response,
    RuleBrokenError,
    TooLongError,
    fields_of,
    require,
)
from shop_directory.conformance.rule import (
    AGAIN,
    SHOP_DOMAIN,
    UNKNOWN_ID,
    Call,
    Need,
    absent,
    each,
    exactly,
    expect_shape,
    null_or,
    rule,
)
from shop_directory.conformance.service_under_test import (
    LONG,
    NO_TOOL,
    PROBED,
    Arguments,
    ServiceUnderTest,
    expect_equal,
)

_REASONS: Final = ("expired", "verified_rejected", "reserved_test_domain", "policy")
_REJECTED: Final = "verified_rejected"
_PROOF: Final = re.compile("proof|artifact|artefact|screenshot|evidence|recording|transcript|receipt", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_RESERVED: Final = re.compile(r"(.*\.)?(test|example|invalid|localhost|example\.(com|net|org))", re.IGNORECASE)
# The clocks of the two machines may differ.
_SKEW: Final = timedelta(minutes=2)
_SAMPLE: Final = 2

_ATTEMPTS: Final = 3
_CODE_REASONS: Final = ("invalid", "mismatch", "item_restricted", "min_order_missing")
_ISSUE_REASONS: Final = {
    "shop": ("unreachable", "no_longer_exists", "info_outdated", "wrong_category", "wrong_name_or_domain"),
    "fact": ("shipping_cost", "return_period", "payment_methods", "evidence_broken"),
}
_WRITING: Final = (Need.TOKEN, Need.WRITE)

_SHIPPING: Final = "get_shipping_policy"
_COUNTRIES: Final = 3
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

_POLICIES: Final = "get_shop_policies"
_POLICY: Final = {"country": null_or(Part.text), "source": Part.text, "checked_at": Part.time}
_RETURNS: Final = {
    **_POLICY,
    "category": lambda category: category.one_of("finite", "unlimited", "not_permitted"),
    "days": null_or(Part.whole),
    "counted_from": null_or(lambda start: start.one_of("delivered", "ordered")),
    "fees": lambda fees: fees.one_of("free", "paid", "unknown"),
}

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


async def _coupons(service: ServiceUnderTest) -> list[Part]:
    found = [coupon for document in await _lists(service) for coupon in document["results"].each()]
    return require(found, "a usable coupon")


async def _lists(service: ServiceUnderTest) -> list[Part]:
    """The list of all shops if it is available, and those of some shops with and without usable codes."""
    with_codes = list(service.subjects.codes)
    without = [shop.id for shop in service.subjects.shops if shop.id not in with_codes]
    asked = with_codes[:_SAMPLE] + without[:_SAMPLE]
    responses = [await service.about_shop("list_coupons", shop_id) for shop_id in asked]
    # Another rule checks whether this list is available.
    with suppress(NothingToSeeError, RuleBrokenError):
        responses.insert(0, await _all_coupons(service))
    return [response.json() for response in responses]


async def _all_coupons(service: ServiceUnderTest) -> Response:
    """The list of all shops, unless it is longer than the service returns or than a run reads (NothingToSeeError)."""
    try:
        response = await service.tool("list_coupons", {}, max_bytes=LONG)
    except TooLongError:
        raise NothingToSeeError("a shorter list of all coupons") from None
    if response.status != 200 and response.problem(400)["code"].value == "too_many_coupons":  # noqa: PLR2004 - of HTTP
        raise NothingToSeeError("a list of all coupons within the service's own bound")
    response.json()
    return response


def _withheld(document: Part) -> tuple[int, ...]:
    return tuple(document["withheld"][reason].whole() for reason in _REASONS)


def _reported(service: ServiceUnderTest) -> tuple[str, str]:
    """A shop and one of its codes; where no shop has a code, an invented code."""
    return next(iter(service.subjects.codes.items()), None) or (service.subjects.shop.id, "CHECK")


_REPORT: Final = partial(Call, caller=AGAIN)
_ABOUT: Final = {"shop_domain": lambda service: _reported(service)[0]}
_CODE: Final = {**_ABOUT, "code": lambda service: _reported(service)[1], "reason": "invalid"}
_ISSUE: Final = {**_ABOUT, "subject_type": "shop", "reason": "unreachable"}


def _taken(answer: Part) -> None:
    """The fixed text and nothing else, which answers a report."""
    answer["status"].expect("wird gemeldet, Pruefung laeuft")
    answer.must(answer.names() == ["status"], "the status and nothing else")


def _refused(tool: str, whole: Arguments, *others: Arguments) -> Iterable[Call]:
    """Reports that are refused: those without one of the fields of a right one, and others."""
    parts = ({name: value for name, value in whole.items() if name != omitted} for omitted in whole)
    return (_REPORT(tool, wrong, 400, "invalid_input") for wrong in (*parts, *others))


async def _statements(service: ServiceUnderTest, *, collected: bool | None = None) -> list[Part]:
    """The shipping statements of the first shops; with `collected`, only those of that value."""
    found = await service.of_first_shops(_SHIPPING)
    if collected is not None:
        found = [statement for statement in found if statement.value.get("collected") is collected]
    kind = {None: "a shop", True: "a shop with a statement", False: "a shop without a statement"}[collected]
    return require(found, f"{kind} about shipping among the first {PROBED}")


_uncollected = partial(_statements, collected=False)


def _names(statement: Part, field: str) -> tuple[str, ...]:
    """The countries and groups in a field; none where it is null."""
    return () if statement[field].value is None else statement[field].texts()


async def _verdict(service: ServiceUnderTest, statement: Part, country: str) -> Part:
    arguments = {"shop_domain": statement["shop"]["domain"].text(), "country": country}
    return (await service.read(_SHIPPING, arguments))["ships_to"]


def is_country(name: str) -> bool:
    """Whether a destination is the code of a country, and not of a group."""
    return _COUNTRY.fullmatch(name) is not None and name not in _GROUPS


async def _policies(service: ServiceUnderTest) -> None:
    there = await service.about_shop(_POLICIES, service.subjects.shop.domain)
    require(there.status not in NO_TOOL, f"the tool {_POLICIES}, which the interface does not require")
    shipping = await service.of_first_shops(_SHIPPING)
    for policies, statement in zip(await service.of_first_shops(_POLICIES), shipping, strict=True):
        facts = dict.fromkeys(("payment_methods", "buyer_protection"), null_or(_POLICY))
        expect_shape(policies, {"returns": null_or(_RETURNS), **facts, "shipping": exactly(statement.value)})


async def _trust(service: ServiceUnderTest) -> list[Part]:
    require(service.subjects.shops, "a shop in the catalogue")
    return await service.of_first_shops("get_trust")


async def _measured(service: ServiceUnderTest) -> list[Part]:
    found = [answer for answer in await _trust(service) if answer["signals"].values()]
    return require(found, f"a shop with a trust signal among the first {PROBED}")


def _text_or_texts(value: Part) -> None:
    if isinstance(value.value, list):
        value.texts()
    else:
        value.text()


ROWS: Final = (
    rule("I16", "validUntil is an ISO timestamp, or null for a coupon without an end.", of=_coupons)(
        {"validUntil": null_or(Part.time)}
    ),
    rule("I18", "list_coupons returns results, total_count and withheld with its four integer counts.", of=_lists)(
        {"results": Part.each, "total_count": Part.whole, "withheld": dict.fromkeys(_REASONS, Part.whole)}
    ),
    rule("I57", "list_coupons answers shop_not_found for an unknown shop and one under review, never an empty list.")(
        absent("list_coupons")
    ),
    rule("I36", "A report has its reason from a fixed list, and no free text.", *_WRITING)(
        *(
            _REPORT("report_code", {**_CODE, wrong: "it did not work"}, 400, "invalid_input")
            for wrong in ("comment", "reason", "code")
        )
    ),
    rule("I61", "report_code needs shop_domain, code and one of its four reasons.", *_WRITING)(
        *_refused("report_code", _CODE, {**_CODE, "reason": "unreachable"}),
        *(_REPORT("report_code", {**_CODE, "reason": reason}, shape={}) for reason in _CODE_REASONS),
        _REPORT("report_code", {**_CODE, "shop_domain": UNKNOWN_ID}, 404, "shop_not_found"),
    ),
    rule("I62", "The response to a report is the fixed status text, never a verdict.", *_WRITING)(
        # Twice: a repeated report has the same response.
        *(
            _REPORT("report_code", {**_CODE, "reason": "mismatch"}, shape=_taken),
            _REPORT("report_issue", {**_ABOUT, "subject_type": "fact", "reason": "shipping_cost"}, shape=_taken),
        )
        * 2
    ),
    rule("I63", "report_issue needs subject_type, shop_domain and a reason of that subject type.", *_WRITING)(
        *_refused("report_issue", _ISSUE, {**_ISSUE, "reason": "shipping_cost"}, {**_ISSUE, "subject_type": "fact"}),
        *(
            _REPORT("report_issue", {**_ABOUT, "subject_type": subject, "reason": reason}, shape={})
            for subject, reasons in _ISSUE_REASONS.items()
            for reason in reasons
        ),
    ),
    rule("I59", "get_shipping_policy needs shop_domain and takes an ISO country.")(
        Call(_SHIPPING, status=400, shape={}),
        Call(_SHIPPING, {"shop_domain": SHOP_DOMAIN, "country": "Nauru"}, 400, shape={}),
        Call(_SHIPPING, {"shop_domain": SHOP_DOMAIN, "country": _FAR}, shape={}),
    ),
    rule(
        "F8",
        "get_shop_policies, where it exists, has null or facts with source and time, and get_shipping_policy's "
        "shipping; unknown shops and those under review are shop_not_found.",
    )(_policies, absent(_POLICIES)),
    rule(
        "I30",
        "A signal has value, source and checked_at; one without source or time is omitted.",
        Need.TOKEN,
        of=_measured,
    )({"signals": each({"source": Part.text, "checked_at": Part.time, "value": _text_or_texts})}),
)


@rule("I17", "lastVerifiedAt is the timestamp of the latest real test, or null when there was none.", of=_coupons)
def _last_verified(coupon: Part) -> None:
    tested = coupon["lastVerifiedAt"]
    if tested.value is None:
        is_untested = coupon["verificationStatus"].value != "verified_applied"
        tested.must(is_untested, "the timestamp of the test that a verified_applied code has passed")
    else:
        tested.must(tested.time() <= datetime.now(UTC) + _SKEW, "a timestamp in the past")


@rule("I19", "note states the balance of the counts in one sentence, for an empty list too.", of=_lists)
def _note(document: Part) -> None:
    note = document["note"]
    note.must(". " not in note.text() and "\n" not in note.text(), "one sentence")
    stated = [0, *(int(number) for number in _NUMBER.findall(note.text()))]
    for number in (document["total_count"].whole(), len(document["results"].values()), *_withheld(document)):
        note.must(number in stated, f"a sentence that states {number} too")


@rule("I20", "total_count minus the number of results of list_coupons is the sum of the counts in withheld.", of=_lists)
def _balance(document: Part) -> None:
    shown, withheld, total = (
        len(document["results"].values()),
        sum(_withheld(document)),
        document["total_count"].whole(),
    )
    expected = f"total_count = {shown} results + {withheld} withheld"
    document.response.must(total - shown == withheld, expected, f"total_count = {total}")


@rule("I39", "results has verified_applied and unverified coupons only, and no artefact of a proof.", of=_coupons)
def _only_usable(coupon: Part) -> None:
    coupon["verificationStatus"].one_of("verified_applied", "unverified")
    for name in coupon.names():
        coupon[name].must(not _PROOF.search(name), "no artefact of a proof")


@rule("I40", "A verified_rejected coupon is never in results and counts in withheld.verified_rejected.")
async def _rejected(service: ServiceUnderTest) -> None:
    found = 0
    for document in await _lists(service):
        for coupon in document["results"].each():
            status = coupon["verificationStatus"]
            status.must(status.value != _REJECTED, "no rejected coupon in results")
        found += document["withheld"][_REJECTED].whole()
    require(found, "a coupon that a real test has rejected")


@rule("I41", "Expired coupons and those of reserved test domains are withheld, and counted under their reason.")
async def _withheld_reasons(service: ServiceUnderTest) -> None:
    now = datetime.now(UTC)
    found = 0
    for document in await _lists(service):
        for coupon in document["results"].each():
            ends, domain = coupon["validUntil"], coupon["shop"]["domain"]
            ends.must(ends.value is None or ends.time() >= now - _SKEW, "no coupon that has expired")
            domain.must(not _RESERVED.fullmatch(domain.text()), "no coupon of a reserved test domain")
        found += document["withheld"]["expired"].whole() + document["withheld"]["reserved_test_domain"].whole()
    require(found, "a coupon that is withheld as expired or for its domain")


@rule("I56", "list_coupons works with and without a shop.")
async def _with_and_without(service: ServiceUnderTest) -> None:
    everything = (await _all_coupons(service)).json()
    for shop_id in require(list(service.subjects.codes)[:_SAMPLE], "a usable coupon"):
        wanted = [coupon.value for coupon in everything["results"].each() if coupon["shop"]["id"].text() == shop_id]
        response = await service.about_shop("list_coupons", shop_id)
        expected = f"the codes of {shop_id} that the list of all shops has ({len(wanted)})"
        response.must(response.json()["results"].values() == wanted, expected)


@rule("I8", "A report changes no response, including that of list_coupons.", *_WRITING)
async def _nothing_changes(service: ServiceUnderTest) -> None:
    shop_id, _ = _reported(service)
    about = {"shop_domain": shop_id}
    calls: list[tuple[str, Arguments]] = [
        *((tool, about) for tool in ("list_coupons", "get_shop", "get_shipping_policy", "get_trust")),
        *((tool, {}) for tool in ("list_categories", "list_coupons")),
        ("find_shop", {"query": ""}),
        ("resolve_conflict", {"from_shop_id": shop_id}),
    ]
    before = [await service.fresh.tool(tool, arguments) for tool, arguments in calls]
    await _REPORT("report_code", _CODE, shape=_taken)(service)
    await _REPORT("report_issue", {**_ISSUE, "reason": "info_outdated"}, shape=_taken)(service)
    for (tool, arguments), response in zip(calls, before, strict=True):
        after = await service.fresh.tool(tool, arguments)
        expect_equal(response, after, f"the same response of {tool} before and after a report")


@rule(
    "I37",
    "A report queues a re-check, and the same report again from the same source queues no other.",
    *_WRITING,
    Need.OPS_KEY,
)
async def _repeats(service: ServiceUnderTest) -> None:
    for attempt in range(_ATTEMPTS):
        report = {"shop_domain": service.subjects.shop.id, "code": f"CHECK-{secrets.token_hex(6)}", "reason": "invalid"}
        depths = [await _depth(service)]
        for _ in range(2):
            await _REPORT("report_code", report, shape=_taken)(service)
            depths.append(await _depth(service))
        before, once, twice = (depth.whole() for depth in depths)
        if once == before + 1 and twice == once:
            return
        # Other callers report too, and workers take re-checks away: only the last attempt is judged.
        if attempt == _ATTEMPTS - 1:
            raise depths[-1].broken(f"{before + 1} after a new report, and no more after the same one again")


async def _depth(service: ServiceUnderTest) -> Part:
    """The number of queued re-checks by the operations state."""
    state = (await service.fresh.get("/api/ops/state", *service.ops_key_header)).json()
    depth = state["consumers"]["rechecks"]["depth"]
    require(depth.value is not None, "an operations state with the depth of the re-check queue")
    return depth


@rule("I7", "Data is never invented: where nothing was collected about shipping, nothing is stated.", of=_uncollected)
def _nothing_made_up(statement: Part) -> None:
    for name in (*_STATED, "checked_at", "source"):
        stated = statement.value.get(name)
        statement.must(stated in (None, [], False), f"no {name}, as nothing was collected, instead of {stated!r}")


@rule(
    "I25",
    "A shipping statement has destinations, delivery time and free-shipping threshold; no carrier, no price.",
    of=_statements,
)
def _terms(statement: Part) -> None:
    for name in _STATED:
        statement[name]
    for name, _ in fields_of(statement.value):
        is_allowed = not _FORBIDDEN.fullmatch(_HUMP.sub("_", name).lower())
        statement.must(is_allowed, f"no {name} in a statement about shipping")


@rule("I26", "A shipping statement says when it was checked, and whether on a policy_page or in structured_data.")
async def _checked(service: ServiceUnderTest) -> None:
    source = null_or(lambda stated: stated.one_of("policy_page", "structured_data"))
    for statement in await _statements(service):
        expect_shape(statement, {"checked_at": null_or(Part.time), "source": source})
    sources = [statement["source"].value for statement in await _statements(service, collected=True)]
    require(any(sources), "a statement about shipping whose source is known")


@rule("I27", "collected is a boolean; false is a gap in the data, never a refusal to ship.")
async def _collected(service: ServiceUnderTest) -> None:
    for statement in await _statements(service):
        statement["collected"].flag()
    for statement in await _uncollected(service):
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
        is_settled = _FAR not in destinations and elsewhere.one_of("yes", "no", "unknown") == "yes"
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


@rule("I29", "get_trust returns at most the seven named kinds of signal, each once.", Need.TOKEN, of=_trust)
def _kinds(answer: Part) -> None:
    kinds = [signal["kind"].one_of(*KINDS) for signal in answer["signals"].each()]
    answer["signals"].must(len(set(kinds)) == len(kinds), "each kind once")


@rule("I31", "No response of get_trust has a score, rating, percentage or star value.", Need.TOKEN, of=_trust)
def _no_score(answer: Part) -> None:
    for name, value in fields_of(answer.value):
        answer.must(not _JUDGEMENT.search(name), f"no {name} in a response of get_trust")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_allowed = not is_number or name in {"present", "total"}
        answer.must(is_allowed, f"no number except the two of the coverage; {name} is one")


@rule("I32", "Where nothing was measured, status is no_signals_collected and the list is empty.", Need.TOKEN)
async def _nothing_measured(service: ServiceUnderTest) -> None:
    unknown = await service.read("get_trust", {"shop_domain": service.unknown_id})
    for answer in (unknown, *await _trust(service)):
        is_empty, status = not answer["signals"].values(), answer["status"]
        status.must((status.text() == _NOTHING) == is_empty, f"{_NOTHING} exactly when there are no signals")


@rule(
    "I33", "signal_coverage has the number of signals returned (present) and possible (total).", Need.TOKEN, of=_trust
)
def _coverage(answer: Part) -> None:
    answer["signal_coverage"]["present"].expect(len(answer["signals"].values()))
    answer["signal_coverage"]["total"].expect(len(KINDS))


@rule("I34", "Each missing signal has its reason: not_collected_yet or pipeline_gap.", Need.TOKEN, of=_trust)
def _missing(answer: Part) -> None:
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
