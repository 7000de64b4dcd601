"""Access tokens of a real authorization server: which are valid, and what is known while it is away (F14, F15)."""

import asyncio
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from service.auth.oauth import MAX_KEY_SET_BYTES, MAX_KEYS, OAuthVerifier
from service.auth.protocol import Issuer, Token, TokensUnavailable
from service.runtime.telemetry import Metrics
from tests.rules.auth.authorization_server import SUBJECT, AuthorizationServer, signing_key, unsigned
from tests.rules.limits.clocks import HandClock
from tests.support.loopback import Forwarding, listening

RESOURCE: Final = "https://shops.example/mcp/oauth"
SOURCE_KEY: Final = "a key that only the operator has"
Forge = Callable[[AuthorizationServer], str]


class Fetches(Metrics):
    """Counts the requests to the issuer by their outcome."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def store_call(self, store: str, operation: str, outcome: str, seconds: float) -> None:
        assert (store, operation, seconds >= 0) == ("issuer", "keys", True)
        self.outcomes.append(outcome)


class World:
    """A verifier under a clock that the test sets."""

    def __init__(self, issuer: str, keys_url: str, **given: Any) -> None:  # noqa: ANN401 - any field of an issuer
        self.clock, self.fetches = HandClock(5_000), Fetches()
        usual: dict[str, Any] = {
            "audience": RESOURCE,
            "algorithms": ("RS256", "ES256"),
            "token_types": ("at+jwt",),
            "scope_classes": {"shops:partner": "partner", "shops:read": "reader"},
            "default_class": "default",
            "source_key": SOURCE_KEY,
        }
        stated = Issuer(url=issuer, keys_url=keys_url, **(usual | given))
        self.verifier = OAuthVerifier(stated, steady=self.clock, metrics=self.fetches)

    async def verdict(self, text: str) -> str:
        """`valid`, `refused` or `unknown`."""
        try:
            return "refused" if await self.verifier.verify(text) is None else "valid"
        except TokensUnavailable:
            return "unknown"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationServer]:
    with AuthorizationServer(tmp_path_factory.mktemp("issuer"), RESOURCE) as server:
        yield server


@pytest.fixture
async def world(issuer: AuthorizationServer) -> AsyncIterator[World]:
    world = World(issuer.url, issuer.keys_url)
    yield world
    await world.verifier.close()


@pytest.mark.rule("F15")
async def test_a_granted_token_counts_by_its_subject_whose_name_is_nowhere(
    issuer: AuthorizationServer, world: World
) -> None:
    granted = [
        issuer.granted(**scope) for scope in ({}, {"scope": "shops:read"}, {"scope": "shops:read shops:partner"})
    ]
    tokens = [await world.verifier.verify(text) for text in granted]
    digest = hmac.new(SOURCE_KEY.encode(), json.dumps([issuer.url, "machine"]).encode(), sha256).hexdigest()
    assert [(token.id, token.quota_class) for token in tokens if token] == [
        (f"oauth-{digest[:32]}", quota_class) for quota_class in ("default", "reader", "partner")
    ]
    other = await world.verifier.verify(issuer.token(scp=["shops:read", 5]))
    assert isinstance(other, Token)
    assert (other.id == f"oauth-{digest[:32]}", other.quota_class) == (False, "reader")
    assert SUBJECT not in repr(other)
    assert world.fetches.outcomes == ["ok"]


def _header(issuer: AuthorizationServer, algorithm: str) -> dict[str, Any]:
    return {"alg": algorithm, "typ": "at+jwt", "kid": issuer.keys[0].id}


def _hs256(issuer: AuthorizationServer) -> str:
    signed = unsigned(_header(issuer, "HS256"), issuer.claims())
    public = issuer.keys[0].private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{signed}.{urlsafe_b64encode(hmac.digest(pem, signed.encode(), 'sha256')).rstrip(b'=').decode()}"


VALID: Final[dict[str, Forge]] = {
    "as it is": lambda issuer: issuer.token(),
    "several audiences": lambda issuer: issuer.token(aud=["https://other.example", RESOURCE]),
    "expired within the skew": lambda issuer: issuer.token(exp=int(time.time()) - 50),
    "not yet valid within the skew": lambda issuer: issuer.token(nbf=int(time.time()) + 50),
    "the whole media type": lambda issuer: issuer.keys[0].sign(issuer.claims(), typ="application/AT+JWT"),
    "a subject that is no text of UTF-8": lambda issuer: issuer.token(sub="\ud800"),
}
FORGED: Final[dict[str, Forge]] = {
    "another issuer": lambda issuer: issuer.token(iss="https://issuer.example"),
    "the issuer with a slash": lambda issuer: issuer.token(iss=f"{issuer.url}/"),
    "another audience": lambda issuer: issuer.token(aud="https://shops.example/mcp"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "no subject": lambda issuer: issuer.token(sub=None),
    "a subject that is no text": lambda issuer: issuer.token(sub=5),
    "an empty subject": lambda issuer: issuer.token(sub=""),
    "a blank subject": lambda issuer: issuer.token(sub=" \u00a0\n"),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "an expiry as text": lambda issuer: issuer.token(exp=str(int(time.time()) + 600)),
    "an expiry after all dates": lambda issuer: issuer.token(exp=10**30),
    "an infinite expiry": lambda issuer: issuer.token(exp=float("inf")),
    "an expiry that is no number": lambda issuer: issuer.token(exp=float("nan")),
    "an expiry that is true": lambda issuer: issuer.token(exp=True),
    "an expiry in a list": lambda issuer: issuer.token(exp=[int(time.time()) + 600]),
    "a beginning as text": lambda issuer: issuer.token(nbf=str(int(time.time()) - 10)),
    "a beginning before all dates": lambda issuer: issuer.token(nbf=-(10**30)),
    "an issue time in an object": lambda issuer: issuer.token(iat={}),
    "an issue time as text": lambda issuer: issuer.token(iat="0"),
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 70),
    "not yet valid": lambda issuer: issuer.token(nbf=int(time.time()) + 70),
    "issued in future": lambda issuer: issuer.token(iat=int(time.time()) + 70),
    "an ID token's type": lambda issuer: issuer.keys[0].sign(issuer.claims(), typ="JWT"),
    "no type": lambda issuer: issuer.keys[0].sign(issuer.claims(), typ=None),
    "another key under its id": lambda issuer: _with_id(issuer.keys[0].id, issuer.claims()),
    "no key id": lambda issuer: issuer.keys[0].sign(issuer.claims(), kid=None),
    "another key that it names": lambda issuer: signing_key("foreign").sign(
        issuer.claims(), jku="https://evil.example/jwks", jwk=signing_key("foreign").jwk
    ),
    "algorithm none": lambda issuer: unsigned(_header(issuer, "none"), issuer.claims()) + ".",
    "an algorithm that is not accepted": lambda issuer: _changed(issuer.token(), 0, _header(issuer, "RS512")),
    "HS256 with the public key": _hs256,
    "claims of another token": lambda issuer: _changed(issuer.token(), 1, issuer.claims(sub="mallory")),
    "no signature": lambda issuer: issuer.token().rpartition(".")[0] + ".",
    "no token": lambda _: "letmein",
    "two dots": lambda _: "..",
    "an empty text": lambda _: "",
}


@pytest.mark.rule("F14")
@pytest.mark.parametrize(("forge", "verdict"), [
    *(pytest.param(forge, "valid", id=name) for name, forge in VALID.items()),
    *(pytest.param(forge, "refused", id=name) for name, forge in FORGED.items()),
])  # fmt: skip
async def test_only_a_token_of_this_issuer_for_this_service_is_valid(
    issuer: AuthorizationServer, world: World, forge: Forge, verdict: str
) -> None:
    assert await world.verdict(forge(issuer)) == verdict


@pytest.mark.rule("F14")
async def test_while_the_issuer_is_away_its_known_keys_count_for_ten_minutes(tmp_path: Path) -> None:
    issuer = AuthorizationServer(tmp_path, RESOURCE)
    world = World(issuer.url, issuer.keys_url)
    known, unknown = issuer.token(), signing_key("unknown").sign(issuer.claims())
    with issuer:
        assert await world.verdict(known) == "valid"
    # Seconds since the last verdicts, then those of the known and of the unknown key.
    steps = [
        (59.0, "valid", "refused"),
        (1.0, "valid", "unknown"),
        (539.0, "valid", "unknown"),
        (1.0, "unknown", "unknown"),
        (58.0, "unknown", "unknown"),
    ]
    for seconds, of_known, of_unknown in steps:
        world.clock.pass_seconds(seconds)
        assert (seconds, await world.verdict(known), await world.verdict(unknown)) == (seconds, of_known, of_unknown)
    with issuer:
        assert await world.verdict(known) == "unknown"
        world.clock.pass_seconds(1)
        assert await world.verdict(known) == "valid"
    await world.verifier.close()
    assert world.fetches.outcomes == ["ok", "unavailable", "unavailable", "ok"]


@pytest.mark.rule("F14")
async def test_a_new_key_counts_and_an_old_one_does_not_after_a_minute(tmp_path: Path) -> None:
    issuer = AuthorizationServer(tmp_path, RESOURCE)
    world = World(issuer.url, issuer.keys_url)
    first, second = (signing_key(name).sign(issuer.claims()) for name in ("first", "second"))
    with issuer:
        verdicts = await asyncio.gather(*(world.verdict(text) for text in [first, second] * 20))
        assert verdicts == ["valid", "refused"] * 20
    issuer.keys = [signing_key("second")]
    with issuer:
        world.clock.pass_seconds(59)
        assert (await world.verdict(second), await world.verdict(first)) == ("refused", "valid")
        world.clock.pass_seconds(1)
        assert (await world.verdict(second), await world.verdict(first)) == ("valid", "refused")
    await world.verifier.close()
    assert world.fetches.outcomes == ["ok", "ok"]


class Answering(Forwarding):
    """Answers with a status and a body; without a body not in time."""

    status: int
    body: bytes | None

    def through(self, body: bytes) -> None:
        if self.body is None:
            time.sleep(1)
        self.reply(self.status, self.body or body)


def _keys_of(count: int) -> bytes:
    whole = signing_key("first").jwk
    return json.dumps(
        {"keys": [{name: whole[name] for name in ("kid", "alg", "use", "kty", "n", "e")}] * count}
    ).encode()


@pytest.mark.rule("F14", "E5")
@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, _keys_of(MAX_KEYS), "valid"),
        (200, _keys_of(MAX_KEYS + 1), "unknown"),
        (200, _keys_of(1) + b" " * MAX_KEY_SET_BYTES, "unknown"),
        (302, b"", "unknown"),
        (404, _keys_of(1), "unknown"),
        (200, b"<html>", "unknown"),
        (200, b"[" * 60_000, "unknown"),
        (200, b'{"keys":[{"kty":"oct","k":"AAAA","kid":"first"},5,{}]}', "refused"),
        (200, b'{"keys":[]}', "unknown"),
        (200, None, "unknown"),
    ],
    ids=["many", "too many", "too large", "redirect", "not found", "no JSON", "deep", "symmetric", "none", "silent"],
)
async def test_what_is_no_key_set_leaves_the_token_unknown_and_the_event_loop_free(
    monkeypatch: pytest.MonkeyPatch, status: int, body: bytes | None, verdict: str
) -> None:
    monkeypatch.setattr("service.auth.oauth.FETCH_SECONDS", 0.5 if body is None else 5.0)
    with listening(Answering, status=status, body=body) as port:
        world = World("https://issuer.example", f"http://127.0.0.1:{port}/jwks")
        token = signing_key("first").sign({"iss": "https://issuer.example", "aud": RESOURCE, "sub": "a", "exp": 2**33})
        pending = asyncio.create_task(world.verdict(token))
        await asyncio.sleep(0)
        assert not pending.done()
        assert await pending == verdict
        await world.verifier.close()


def _with_id(key_id: str, claims: dict[str, Any]) -> str:
    return signing_key("foreign").sign(claims, kid=key_id)


def _changed(token: str, part: int, document: dict[str, Any]) -> str:
    parts = token.split(".")
    parts[part] = urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()
    return ".".join(parts)
