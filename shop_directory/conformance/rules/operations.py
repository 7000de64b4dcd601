"""The rules of what those who run a service ask it: probes, the build, and the two operations endpoints."""

import re
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from shop_directory.conformance.exchange import Part, Reply
from shop_directory.conformance.findings import NothingToSeeError
from shop_directory.conformance.rule import rule
from shop_directory.conformance.service_under_test import Visit

STATE: Final = "/api/ops/state"
RESOURCES: Final = "/metrics/resources"
_COMMIT: Final = re.compile("[0-9a-f]{40}")
_OK: Final = 200
_REFUSED: Final = 401
_UNKNOWN: Final = 503
# The parser takes time by the square of a line's length.
_LONGEST_LINE: Final = 4_096
_KEY: Final = "the operations key of this service (--ops-key)"


@rule("I73", "GET /health and GET /ready answer 200 to anybody.")
async def _is_alive_and_ready(visit: Visit) -> None:
    for path in ("/health", "/ready"):
        (await visit.get(path)).expect_status(_OK)


@rule("I74", "GET /version gives service, commit (40 hex digits) and builtAt (RFC 3339, UTC).")
async def _tells_its_build(visit: Visit) -> None:
    reply = await visit.get("/version")
    if reply.status == _UNKNOWN:
        raise NothingToSeeError("a build that knows its commit and time")
    answer = reply.answer()
    answer["service"].text()
    if _COMMIT.fullmatch(answer["commit"].text()) is None:
        raise answer["commit"].broken("40 hexadecimal digits")
    answer["builtAt"].time()


@rule("I75", "A build without its commit and time answers /version with 503 version_unknown.")
async def _tells_that_its_build_is_unknown(visit: Visit) -> None:
    reply = await visit.get("/version")
    if reply.status == _OK:
        answer = reply.answer()
        known = {name for name in answer.keys() if not answer[name].is_null}  # noqa: SIM118 - a part is no dict
        if {"commit", "builtAt"} <= known:
            raise NothingToSeeError("a build that does not know its commit and time")
        raise reply.broken("503 version_unknown from a build that does not know its commit and time")
    reply.problem(_UNKNOWN, "version_unknown")


@rule("I76", "GET /api/ops/state tells shop counts and freshness, sizes, flags, consumers and resource accounts.")
async def _tells_its_state(visit: Visit) -> None:
    state = (await _with_key(visit, STATE)).answer()
    shops, catalogue = state["shops"], state["catalogue"]
    if _is_told(shops):
        live = shops["live"]
        live["counts"]["shops"].whole()
        live["built_at"].time()
        if (age := live["age_seconds"].value) is not None and not _is_number(age):
            raise live["age_seconds"].broken("seconds")
    if _is_told(catalogue):
        sizes = catalogue["sizes"]
        for kind in sizes.keys():  # noqa: SIM118 - a part is no dict
            sizes[kind].whole()
    if not state["flags"].keys():
        raise state["flags"].broken("the settings in force")
    for consumer in ("rechecks", "follower"):
        _is_told(state["consumers"][consumer])
    if _is_told(accounts := state["resource_accounts"]):
        for account in accounts["accounts"].each():
            account["provider"].text()
            account["account"].text()


@rule("I77", "GET /metrics/resources gives the accounts with outside providers in the Prometheus text format.")
async def _exposes_its_accounts(visit: Visit) -> None:
    reply = await _with_key(visit, RESOURCES)
    reply.expect_status(_OK)
    media_type = reply.header("content-type") or ""
    if not media_type.startswith("text/plain"):
        raise reply.broken("text/plain, as Prometheus reads it", f"content-type {media_type or 'missing'}")
    shown = {(sample.labels.get("provider"), sample.labels.get("account")) for sample in _samples(reply)}
    state = (await _with_key(visit, STATE)).answer()["resource_accounts"]
    if not _is_told(state):
        raise NothingToSeeError("a state that tells of the accounts")
    used = [account for account in state["accounts"].each() if not account["used"].is_null]
    for account in used[:100]:
        if (account["provider"].text(), account["account"].text()) not in shown:
            raise account.broken(f"samples in {RESOURCES} with its provider and account")
    if not used:
        raise NothingToSeeError("an account with an outside provider in the catalogue")


@rule("I81", "Where an operations key is configured both operations endpoints are 401 without it; else they are open.")
async def _keeps_to_its_key(visit: Visit) -> None:
    wrong = (("x-ops-key", visit.unknown_id),)
    without = [await visit.get(path, *header) for path in (STATE, RESOURCES) for header in ((), wrong)]
    if visit.ops_key is not None or any(reply.status == _REFUSED for reply in without):
        for reply in without:
            reply.expect_status(_REFUSED)
    for reply in without:
        if reply.status not in {_OK, _REFUSED}:
            raise reply.broken("status 200, or 401 where a key is configured")
    if visit.ops_key is not None:
        for path in (STATE, RESOURCES):
            (await visit.get(path, *visit.ops_key_header)).expect_status(_OK)


@rule("I84", "The interface description is OpenAPI 3.1.0 in version 0.1.1.")
async def _is_described(visit: Visit) -> None:
    document = (await visit.get("/openapi.json")).answer()
    document["openapi"].expect("3.1.0")
    document["info"]["version"].expect("0.1.1")


@rule("O1", "/ready lists its checks.")
async def _lists_its_checks(visit: Visit) -> None:
    checks = (await visit.get("/ready")).answer()["checks"]
    for check in checks.each():
        check["name"].text()
        check["status"].text()
    if not checks.values():
        raise checks.broken("at least one check")


async def _with_key(visit: Visit, path: str) -> Reply:
    """An answer of an operations endpoint, with the key if there is one."""
    reply = await visit.get(path, *visit.ops_key_header)
    if reply.status == _REFUSED and visit.ops_key is None:
        raise NothingToSeeError(_KEY)
    return reply


def _is_told(part: Part) -> bool:
    """Whether a part of the state is there; one that is away says why."""
    if part["available"].flag():
        return True
    part["reason"].text()
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _samples(reply: Reply) -> list[Sample]:
    """All samples of an exposition; at least one."""
    text = reply.body.decode("utf-8", "replace")
    if any(len(line) > _LONGEST_LINE for line in text.split("\n")):
        raise reply.broken(f"lines of up to {_LONGEST_LINE:,} characters")
    try:
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (ValueError, LookupError):
        raise reply.broken("the Prometheus text format") from None
    if not samples:
        raise reply.broken("at least one sample")
    return samples
