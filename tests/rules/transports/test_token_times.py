"""When a token begins and ceases to count: issued, revoked, and with the store away (Q1)."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from service.app import create_app
from service.auth.verifier import TokenVerifier
from service.settings.service import Settings
from tests.rules.limits.clocks import HandClock
from tests.rules.transports.test_tokens import INVALID
from tests.support.callers import Issued, issue, revoke
from tests.support.problems import problem
from tests.support.rpc import Era, call, request
from tests.support.served import Reply, get, post, served
from tests.support.worlds import embedded_world

UNAVAILABLE: Final = problem(
    503, "backend_unavailable", "The token could not be checked just now; try again in 1 second."
)
TRUST: Final = {"shop_domain": "shop_books"}


@pytest.mark.rule("Q1", "I80")
def test_a_revoked_token_is_refused_within_two_seconds_and_a_new_one_counts_immediately(tmp_path: Path) -> None:
    settings = Settings(data_dir=embedded_world(tmp_path), token_file=tmp_path / "tokens.sqlite", request_timeout=10.0)
    with served(create_app(settings)) as base:
        first, other = issue(settings.token_file), issue(settings.token_file)
        assert [_trust(base, one).status for one in (first, other)] == [200, 200]
        revoke(settings.token_file, first)
        revoked_at = time.monotonic()
        while _trust(base, first).status == 200:
            assert time.monotonic() - revoked_at < 2.0
            # The bound is on the service's memory: there is nothing to be woken by.
            time.sleep(0.02)
        assert time.monotonic() - revoked_at < 2.0
        assert _trust(base, first).summary == (401, "application/problem+json", INVALID)
        for era in Era:
            assert call(base, era, "get_trust", json.dumps(TRUST).encode(), x_api_token=first.text).status == 401
        assert [_trust(base, one).status for one in (other, issue(settings.token_file))] == [200, 200]


@pytest.mark.rule("Q1", "E1.retry_after", "E2.wait")
def test_with_the_store_away_a_token_confirmed_within_ten_minutes_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = HandClock(5_000)
    verifier = partial(TokenVerifier, wall=HandClock(), steady=steady)
    monkeypatch.setattr("service.parts.TokenVerifier", lambda store, **_: verifier(store))
    settings = Settings(data_dir=embedded_world(tmp_path), token_file=tmp_path / "tokens.sqlite", request_timeout=10.0)
    known, never_seen = issue(settings.token_file), issue(settings.token_file)
    with served(create_app(settings)) as base:
        assert _trust(base, known).status == 200
        away = settings.token_file.rename(tmp_path / "elsewhere")
        steady.pass_seconds(599)
        assert _trust(base, known).status == 200
        _assert_not_checked(base, never_seen)
        steady.pass_seconds(1)
        _assert_not_checked(base, known)
        away.rename(settings.token_file)
        steady.pass_seconds(1)
        assert [_trust(base, one).status for one in (known, never_seen)] == [200, 200]


def _assert_not_checked(base: str, issued: Issued) -> None:
    """503 where a token is needed, with the time to wait, and none anywhere else."""
    reply = _trust(base, issued)
    assert (reply.summary, reply.headers["retry-after"]) == ((503, "application/problem+json", UNAVAILABLE), "1")
    for era in Era:
        result = call(base, era, "get_trust", json.dumps(TRUST).encode(), x_api_token=issued.text).json["result"]
        assert (result["isError"], result["content"][0]["text"]) == (True, reply.body.decode())
        assert request(base, era, "tools/list", x_api_token=issued.text).status == 200
    assert post(base, "/tool/get_shop", TRUST, x_api_token=issued.text).status == 200
    assert get(base, "/suggest?q=", x_api_token=issued.text).status == 200


def _trust(base: str, issued: Issued) -> Reply:
    return post(base, "/tool/get_trust", TRUST, x_api_token=issued.text)
