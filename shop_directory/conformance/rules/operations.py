"""The endpoints for operators: probes, the build, and the two operations endpoints."""

import re
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from shop_directory.conformance.exchange import NothingToSeeError, Part, Response
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import ServiceUnderTest

STATE: Final = "/api/ops/state"
RESOURCES: Final = "/metrics/resources"
_TOKEN_OPTIONAL: Final = (
    "find_shop", "list_categories", "get_shop", "list_coupons", "get_shipping_policy", "resolve_checkout_url",
)  # fmt: skip
_COMMIT: Final = re.compile("[0-9a-f]{40}")
_OK: Final = 200
_REFUSED: Final = 401
_UNKNOWN: Final = 503
# The time of the parser grows with the square of the length of a line.
_LONGEST_LINE: Final = 4_096
_KEY: Final = "the operations key of this service (--ops-key)"


@rule("I73", "GET /health and GET /ready are 200 without credentials.")
async def _is_alive_and_ready(service: ServiceUnderTest) -> None:
    for path in ("/health", "/ready"):
        (await service.get(path)).expect_status(_OK)


@rule("I74", "GET /version has service, commit (40 hex digits) and builtAt (RFC 3339, UTC).")
async def _states_its_build(service: ServiceUnderTest) -> None:
    response = await service.get("/version")
    if response.status == _UNKNOWN:
        raise NothingToSeeError("a build with its commit and time")
    answer = response.json()
    answer["service"].text()
    if _COMMIT.fullmatch(answer["commit"].text()) is None:
        raise answer["commit"].broken("40 hexadecimal digits")
    answer["builtAt"].time()


@rule("I75", "A build without its commit and time answers /version with 503 version_unknown.")
async def _unknown_build(service: ServiceUnderTest) -> None:
    response = await service.get("/version")
    if response.status == _OK:
        answer = response.json()
        known = {name for name in answer.keys() if not answer[name].is_null}  # noqa: SIM118 - a part is no dict
        if {"commit", "builtAt"} <= known:
            raise NothingToSeeError("a build without its commit and time")
        raise response.broken("503 version_unknown from a build without its commit and time")
    response.problem(_UNKNOWN, "version_unknown")


@rule("I76", "GET /api/ops/state has shop counts and freshness, sizes, flags, consumers and resource accounts.")
async def _state(service: ServiceUnderTest) -> None:
    state = (await _with_key(service, STATE)).json()
    shops, catalogue = state["shops"], state["catalogue"]
    if _is_available(shops):
        live = shops["live"]
        live["counts"]["shops"].whole()
        live["built_at"].time()
        if (age := live["age_seconds"].value) is not None and not _is_number(age):
            raise live["age_seconds"].broken("seconds")
    if _is_available(catalogue):
        sizes = catalogue["sizes"]
        for kind in sizes.keys():  # noqa: SIM118 - a part is no dict
            sizes[kind].whole()
    if not state["flags"].keys():
        raise state["flags"].broken("the settings in force")
    for consumer in ("rechecks", "follower"):
        _is_available(state["consumers"][consumer])
    if _is_available(accounts := state["resource_accounts"]):
        for account in accounts["accounts"].each():
            account["provider"].text()
            account["account"].text()


@rule("I77", "GET /metrics/resources has the accounts with external providers in the Prometheus text format.")
async def _accounts(service: ServiceUnderTest) -> None:
    response = await _with_key(service, RESOURCES)
    response.expect_status(_OK)
    media_type = response.header("content-type") or ""
    if not media_type.startswith("text/plain"):
        raise response.broken("text/plain, as Prometheus reads it", f"content-type {media_type or 'missing'}")
    shown = {(sample.labels.get("provider"), sample.labels.get("account")) for sample in _samples(response)}
    state = (await _with_key(service, STATE)).json()["resource_accounts"]
    if not _is_available(state):
        raise NothingToSeeError("a state with resource accounts")
    used = [account for account in state["accounts"].each() if not account["used"].is_null]
    for account in used[:100]:
        if (account["provider"].text(), account["account"].text()) not in shown:
            raise account.broken(f"samples in {RESOURCES} with its provider and account")
    if not used:
        raise NothingToSeeError("an account with an external provider in the catalogue")


@rule("I81", "Where an operations key is configured, both operations endpoints are 401 without it; else they are open.")
async def _operations_key(service: ServiceUnderTest) -> None:
    wrong = (("x-ops-key", service.unknown_id),)
    without = [await service.get(path, *header) for path in (STATE, RESOURCES) for header in ((), wrong)]
    if service.ops_key is not None or any(response.status == _REFUSED for response in without):
        for response in without:
            response.expect_status(_REFUSED)
    for response in without:
        if response.status not in {_OK, _REFUSED}:
            raise response.broken("status 200, or 401 where a key is configured")
    if service.ops_key is not None:
        for path in (STATE, RESOURCES):
            (await service.get(path, *service.ops_key_header)).expect_status(_OK)


@rule("I84", "The interface description is OpenAPI 3.1.0 in version 0.1.1.")
async def _is_described(service: ServiceUnderTest) -> None:
    document = (await service.get("/openapi.json")).json()
    document["openapi"].expect("3.1.0")
    document["info"]["version"].expect("0.1.1")


@rule("O1", "/ready lists its checks, and the OpenAPI document says where a token is optional.")
async def _lists_its_checks(service: ServiceUnderTest) -> None:
    paths = (await service.get("/openapi.json")).json()["paths"]
    for operation in (*(paths[f"/tool/{tool}"]["post"] for tool in _TOKEN_OPTIONAL), paths["/suggest"]["get"]):
        if {} not in operation["security"].values() or len(operation["security"].values()) == 1:
            raise operation["security"].broken("nothing, or a token")
    checks = (await service.get("/ready")).json()["checks"]
    for check in checks.each():
        check["name"].text()
        check["status"].text()
    if not checks.values():
        raise checks.broken("at least one check")


async def _with_key(service: ServiceUnderTest, path: str) -> Response:
    """The response of an operations endpoint, with the key if there is one."""
    response = await service.get(path, *service.ops_key_header)
    if response.status == _REFUSED and service.ops_key is None:
        raise NothingToSeeError(_KEY)
    return response


def _is_available(part: Part) -> bool:
    """Whether a part of the state is available; one that is not has a reason."""
    if part["available"].flag():
        return True
    part["reason"].text()
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _samples(response: Response) -> list[Sample]:
    """All samples of an exposition, which has at least one."""
    text = response.body.decode("utf-8", "replace")
    if any(len(line) > _LONGEST_LINE for line in text.split("\n")):
        raise response.broken(f"lines of up to {_LONGEST_LINE:,} characters")
    try:
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (ValueError, LookupError):
        raise response.broken("the Prometheus text format") from None
    if not samples:
        raise response.broken("at least one sample")
    return samples
