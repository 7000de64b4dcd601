"""The endpoints for operators: probes, the build, and the two operations endpoints."""

import re
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from shop_directory.conformance.exchange import Part, Response, require
from shop_directory.conformance.rule import Call, each, exactly, expect_shape, rule
from shop_directory.conformance.service_under_test import OPEN, ServiceUnderTest

_STATE: Final = "/api/ops/state"
_RESOURCES: Final = "/metrics/resources"
_COMMIT: Final = re.compile("[0-9a-f]{40}")
_OK: Final = 200
_REFUSED: Final = 401
_UNKNOWN: Final = 503
# The time of the parser grows with the square of the length of a line.
_LONGEST_LINE: Final = 4_096
_KEY: Final = "the operations key of this service (--ops-key)"


ROWS: Final = (
    rule("I73", "GET /health and GET /ready are 200 without credentials.")(Call("GET /health"), Call("GET /ready")),
    rule("I84", "The interface description is OpenAPI 3.1.0 in version 0.1.1.")(
        Call("GET /openapi.json", shape={"openapi": exactly("3.1.0"), "info": {"version": exactly("0.1.1")}})
    ),
)


@rule("I74", "GET /version has service, commit (40 hex digits) and builtAt (RFC 3339, UTC).")
async def _states_its_build(service: ServiceUnderTest) -> None:
    response = await service.get("/version")
    require(response.status != _UNKNOWN, "a build with its commit and time")
    answer = response.json()
    answer["service"].text()
    answer["commit"].must(_COMMIT.fullmatch(answer["commit"].text()), "40 hexadecimal digits")
    answer["builtAt"].time()


@rule("I75", "A build without its commit and time answers /version with 503 version_unknown.")
async def _unknown_build(service: ServiceUnderTest) -> None:
    response = await service.get("/version")
    if response.status == _OK:
        stated = [name for name, value in response.json().value.items() if value is not None]
        require(not {"commit", "builtAt"} <= set(stated), "a build without its commit and time")
        raise response.broken("503 version_unknown from a build without its commit and time")
    response.problem(_UNKNOWN, "version_unknown")


@rule("I76", "GET /api/ops/state has shop counts and freshness, sizes, flags, consumers and resource accounts.")
async def _state(service: ServiceUnderTest) -> None:
    state = (await _with_key(service, _STATE)).json()
    shops, catalogue = state["shops"], state["catalogue"]
    if _is_available(shops):
        live = shops["live"]
        expect_shape(live, {"counts": {"shops": Part.whole}, "built_at": Part.time})
        age = live["age_seconds"]
        age.must(age.value is None or age.number() >= 0, "seconds")
    if _is_available(catalogue):
        expect_shape(catalogue["sizes"], dict.fromkeys(catalogue["sizes"].names(), Part.whole))
    state["flags"].must(state["flags"].names(), "the settings in force")
    for consumer in ("rechecks", "follower"):
        _is_available(state["consumers"][consumer])
    if _is_available(accounts := state["resource_accounts"]):
        expect_shape(accounts["accounts"], each({"provider": Part.text, "account": Part.text}))


@rule("I77", "GET /metrics/resources has the accounts with external providers in the Prometheus text format.")
async def _accounts(service: ServiceUnderTest) -> None:
    response = await _with_key(service, _RESOURCES)
    response.expect_status(_OK)
    media_type = response.header("content-type") or ""
    is_text = media_type.startswith("text/plain")
    response.must(is_text, "text/plain, as Prometheus reads it", f"content-type {media_type or 'missing'}")
    shown = {(sample.labels.get("provider"), sample.labels.get("account")) for sample in _samples(response)}
    state = (await _with_key(service, _STATE)).json()["resource_accounts"]
    require(_is_available(state), "a state with resource accounts")
    used = [account for account in state["accounts"].each() if account["used"].value is not None]
    for account in used[:100]:
        is_shown = (account["provider"].text(), account["account"].text()) in shown
        account.must(is_shown, f"samples in {_RESOURCES} with its provider and account")
    require(used, "an account with an external provider in the catalogue")


@rule("I81", "Where an operations key is configured, both operations endpoints are 401 without it; else they are open.")
async def _operations_key(service: ServiceUnderTest) -> None:
    wrong = (("x-ops-key", service.unknown_id),)
    without = [await service.get(path, *header) for path in (_STATE, _RESOURCES) for header in ((), wrong)]
    if service.ops_key is not None or any(response.status == _REFUSED for response in without):
        for response in without:
            response.expect_status(_REFUSED)
    for response in without:
        response.must(response.status in {_OK, _REFUSED}, "status 200, or 401 where a key is configured")
    if service.ops_key is not None:
        for path in (_STATE, _RESOURCES):
            (await service.get(path, *service.ops_key_header)).expect_status(_OK)


@rule("O1", "/ready lists its checks, and the OpenAPI document says where a token is optional.")
async def _lists_its_checks(service: ServiceUnderTest) -> None:
    paths = (await service.openapi())["paths"]
    for operation in (*(paths[f"/tool/{tool}"]["post"] for tool in OPEN), paths["/suggest"]["get"]):
        security = operation["security"].values()
        operation["security"].must({} in security and len(security) > 1, "nothing, or a token")
    checks = (await service.get("/ready")).json()["checks"]
    expect_shape(checks, each({"name": Part.text, "status": Part.text}))
    checks.must(checks.values(), "at least one check")


async def _with_key(service: ServiceUnderTest, path: str) -> Response:
    """The response of an operations endpoint, with the key if there is one."""
    response = await service.get(path, *service.ops_key_header)
    require(response.status != _REFUSED or service.ops_key is not None, _KEY)
    return response


def _is_available(part: Part) -> bool:
    """Whether a part of the state is available; one that is not has a reason."""
    if not part["available"].flag():
        part["reason"].text()
    return bool(part["available"].value)


def _samples(response: Response) -> list[Sample]:
    """All samples of an exposition, which has at least one."""
    text = response.body.decode("utf-8", "replace")
    is_short = all(len(line) <= _LONGEST_LINE for line in text.split("\n"))
    response.must(is_short, f"lines of up to {_LONGEST_LINE:,} characters")
    try:
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (ValueError, LookupError):
        raise response.broken("the Prometheus text format") from None
    response.must(samples, "at least one sample")
    return samples
