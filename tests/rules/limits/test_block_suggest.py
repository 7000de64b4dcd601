"""A suggest request that goes through the application takes from blocks, as the fast path does."""

from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Scope

from service.auth.sqlite import SqliteTokenStore
from service.auth.verifier import TokenVerifier
from service.calls.admission import Admission
from service.calls.live_data import LiveData
from service.limits.policy import QuotaClass, QuotaPolicy
from service.runtime.caller import proxies
from service.suggest.endpoint import suggest_endpoint
from service.suggest.responder import SuggestResponder
from tests.rules.limits.block_world import World
from tests.support.worlds import reference_world

REQUESTS = 100
SUGGEST = QuotaClass(reads=1, suggest=1_200, reports=0)


@pytest.mark.rule("Q2")
async def test_suggest_requests_in_the_application_share_the_requests_to_the_store(tmp_path: Path) -> None:
    world = World()
    admission = Admission(
        TokenVerifier(SqliteTokenStore(tmp_path / "no-tokens")), world.limiter, QuotaPolicy(anonymous=SUGGEST)
    )
    live = LiveData(reference_world(tmp_path), 1.0)
    endpoint = suggest_endpoint(SuggestResponder(live, admission, 0), proxies(()))
    answers = []
    for _ in range(REQUESTS):
        answers.append(await asked(endpoint, b"q=harb"))
        world.clock.pass_seconds(0.05)
    assert {answer["status"] for answer in answers} == {200}
    assert len(world.store.asked) == 5


async def asked(endpoint: Any, query: bytes) -> Message:  # noqa: ANN401 - any ASGI application
    """How the answer to a suggest request begins."""
    scope: Scope = {"type": "http", "method": "GET", "path": "/suggest", "query_string": query, "headers": []}
    scope["client"] = ("192.0.2.1", 5)
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await endpoint(scope, receive, send)
    return sent[0]
