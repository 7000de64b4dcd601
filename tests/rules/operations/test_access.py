"""The operations key: asked for only when there is one, and then of everybody (I81)."""

from pathlib import Path
from typing import Final

import pytest

from service.limits.policy import QuotaClass
from service.settings.service import Settings
from shop_directory.settings.reading import SettingsError
from tests.rules.operations.worlds import KEY, serving
from tests.support.problems import problem
from tests.support.served import ask, get, post

PATHS: Final = ("/api/ops/state", "/metrics/resources", "/metrics")
REFUSED: Final = problem(
    401,
    "ops_key_required",
    "This endpoint needs the operations key in the header x-ops-key.",
    title="Operations key required",
)


@pytest.mark.rule("I81", "E1")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("given", [None, "", "wrong", KEY[:-1], f"{KEY}x", KEY.upper(), "\xfc" * 20])
def test_without_the_configured_key_every_request_is_refused(keyed_base: str, path: str, given: str | None) -> None:
    reply = get(keyed_base, path) if given is None else get(keyed_base, path, x_ops_key=given)
    assert reply.summary == (401, "application/problem+json", REFUSED)
    assert reply.headers["www-authenticate"] == 'ApiKey realm="shop-directory-operations", header="x-ops-key"'


@pytest.mark.rule("I81")
@pytest.mark.parametrize("path", PATHS)
def test_with_the_key_it_is_answered_and_not_counted(keyed_base: str, path: str) -> None:
    reply = get(keyed_base, path, x_ops_key=KEY)
    assert (reply.status, "ratelimit" in reply.headers, reply.headers["cache-control"]) == (200, False, "no-store")


@pytest.mark.rule("I81")
@pytest.mark.parametrize("path", PATHS)
def test_without_a_configured_key_they_are_open_and_count_as_reads(open_base: str, path: str) -> None:
    replies = [get(open_base, path), get(open_base, path, x_ops_key="whatever")]
    assert [reply.status for reply in replies] == [200, 200]
    assert all(reply.headers["ratelimit"].startswith('"reads";') for reply in replies)


@pytest.mark.rule("I81")
@pytest.mark.parametrize("path", PATHS)
def test_without_a_key_only_a_host_that_names_this_machine_is_answered(open_base: str, path: str) -> None:
    detail = "Without an operations key this endpoint answers only where the header Host names this machine, as "
    refused = problem(421, "misdirected_request", detail + "localhost does.", title="Misdirected request")
    for host in (
        "rebound.example",
        "localhost.rebound.example:80",
        "127.1",
        "0.0.0.0",
        "[2001:db8::1]",
        "192.0.2.1",
        "",
    ):
        reply = get(open_base, path, host=host)
        assert (host, *reply.summary) == (host, 421, "application/problem+json", refused)
    for host in ("localhost", "LocalHost:8080", "127.0.0.1", "127.8.9.1:80", "[::1]:80", "[::1]", "[::ffff:127.0.0.1]"):
        assert (host, get(open_base, path, host=host).status) == (host, 200)


@pytest.mark.rule("I81")
@pytest.mark.parametrize("given", [{"open_operations": True}, {"ops_key": KEY}], ids=["opened", "key"])
def test_any_host_is_answered_where_the_endpoints_are_opened_or_the_key_is_sent(
    index: Path, given: dict[str, object]
) -> None:
    with serving(index, **given) as base:
        assert [get(base, path, host="shops.internal", x_ops_key=KEY).status for path in PATHS] == [200] * 3


@pytest.mark.rule("R5")
@pytest.mark.parametrize("path", PATHS)
def test_another_method_is_refused_before_the_key_is_looked_at(keyed_base: str, path: str) -> None:
    reply = ask(keyed_base, "POST", path)
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.rule("I81", "Q2")
def test_refused_keys_slow_down_the_address_but_stay_401(index: Path) -> None:
    quota = QuotaClass(reads=3, suggest=100, reports=0)
    with serving(index, ops_key=KEY, quota_anonymous=quota) as base:
        refused = [get(base, "/metrics", x_ops_key="wrong").status for _ in range(5)]
        read = post(base, "/tool/list_categories", {})
        holder = get(base, "/metrics", x_ops_key=KEY)
    assert (refused, read.status, holder.status) == ([401] * 5, 429, 200)


@pytest.mark.rule("I81")
def test_a_key_that_is_too_short_stops_the_start_without_being_shown() -> None:
    with pytest.raises(SettingsError, match="--ops-key") as raised:
        Settings.load(ops_key="short-secret")
    assert "short-secret" not in str(raised.value)
