"""Verifies access tokens of an OAuth issuer, which are JWTs, for a resource server that trusts it (F14, F15).

Keys come from the one configured address only, whatever a token names, and at most once a minute, so that forged tokens
with invented keys cause no more requests. While the issuer does not answer, its known keys count for ten minutes. After
that, and for other keys, nothing is known of a token; this is not a refusal.
"""

import asyncio
import hmac
import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final

import httpx2
import jwt
import orjson

from service.auth.protocol import Issuer, Token, TokensUnavailable
from service.runtime.store_waits import timed_store_call, wait_for_store
from shop_directory.runtime.metrics import NO_METRICS, Metrics
from shop_directory.runtime.request_context import detached_from_request, remaining_seconds

SKEW_SECONDS: Final = 60
FETCH_INTERVAL_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 600.0
FETCH_SECONDS: Final = 5.0
MAX_KEY_SET_BYTES: Final = 65_536
MAX_KEYS: Final = 100

_REQUIRED: Final = ["exp", "iss", "aud", "sub"]
# Claims that are numbers of seconds since 1970, and the end of the year 9999.
_TIMES: Final = ("exp", "nbf", "iat")
_LAST_SECOND: Final = 253_402_300_799
_MEDIA_TYPE: Final = "application/"
# Hexadecimal digits of the HMAC, which has 64; 128 bits.
_SOURCE_DIGITS: Final = 32
_LOG: Final = logging.getLogger(__name__)


class OAuthVerifier:
    """Verifies the access tokens of one issuer."""

    def __init__(
        self, issuer: Issuer, *, steady: Callable[[], float] = time.monotonic, metrics: Metrics = NO_METRICS
    ) -> None:
        """Set up the verifier, which fetches keys when it needs them; `steady` gives seconds for their age."""
        self._issuer = issuer
        self._keys = _IssuerKeys(issuer, steady, metrics)

    async def verify(self, text: str) -> Token | None:
        """The token of a text, whose id stands for its subject; neither is stored or logged.

        None means that the text is not an access token of the issuer for this service, or has expired.
        TokensUnavailable is raised if that is not known.
        """
        try:
            header = jwt.get_unverified_header(text)
            kind = str(header.get("typ", "")).lower().removeprefix(_MEDIA_TYPE)
            if header.get("alg") not in self._issuer.algorithms or kind not in self._issuer.token_types:
                return None
            key = await self._keys.find(header.get("kid"))
            claims = None if key is None else self._claims(text, key)
        except jwt.PyJWTError:
            return None
        return self._token(claims) if claims is not None and _is_sound(claims) else None

    async def close(self) -> None:
        await self._keys.close()

    def _claims(self, text: str, key: jwt.PyJWK) -> dict[str, Any]:
        return jwt.decode(
            text,
            key,
            algorithms=self._issuer.algorithms,
            audience=self._issuer.audience,
            issuer=self._issuer.url,
            leeway=SKEW_SECONDS,
            options={"require": _REQUIRED, "enforce_minimum_key_length": True},
        )

    def _token(self, claims: Mapping[str, Any]) -> Token:
        # As ASCII, as a subject may be any JSON string.
        subject = json.dumps([claims["iss"], claims["sub"]]).encode()
        digest = hmac.new(self._issuer.source_key.encode(), subject, sha256).hexdigest()
        scopes = _scopes(claims)
        classes = (name for scope, name in self._issuer.scope_classes.items() if scope in scopes)
        quota_class = next(classes, self._issuer.default_class)
        return Token(f"oauth-{digest[:_SOURCE_DIGITS]}", "oauth", quota_class, int(claims["exp"]))


class _IssuerKeys:
    """The keys of an issuer by id, which is None for a key that states none."""

    def __init__(self, issuer: Issuer, steady: Callable[[], float], metrics: Metrics) -> None:
        self._issuer = issuer
        self._steady = steady
        self._metrics = metrics
        self._http = httpx2.AsyncClient(
            timeout=FETCH_SECONDS,
            headers={"accept-encoding": "identity"},
            # A proxy between this machine and itself could send other keys.
            trust_env=issuer.keys_url.startswith("https:"),
        )
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        # When the last fetch that succeeded, and the last one at all, began.
        self._as_of = self._began_at = float("-inf")
        self._fetch: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """A key; None if the issuer has no such key. TokensUnavailable if that is not known."""
        fetch = self._current_fetch()
        key = self._keys.get(key_id)
        if key is None or self._steady() - self._as_of >= GRACE_SECONDS:
            if fetch is not None:
                await wait_for_store(fetch, remaining_seconds(FETCH_SECONDS))
            if self._as_of != self._began_at:
                raise TokensUnavailable(retry_after=self._next_fetch_seconds())
            key = self._keys.get(key_id)
        return key

    async def close(self) -> None:
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.wait((self._fetch,))
        await self._http.aclose()

    def _next_fetch_seconds(self) -> int:
        """Whole seconds until a token can cause a fetch, at least 1; 1 while one is pending."""
        if self._fetch is not None and not self._fetch.done():
            return 1
        return max(1, math.ceil(self._began_at + FETCH_INTERVAL_SECONDS - self._steady()))

    def _current_fetch(self) -> "asyncio.Task[None] | None":
        """The pending fetch, a new one if the last one is a minute old, else None."""
        now = self._steady()
        if now - self._began_at >= FETCH_INTERVAL_SECONDS:
            self._began_at = now
            # All calls share it, so it must not end with the request that started it.
            with detached_from_request():
                self._fetch = asyncio.create_task(self._fetch_keys(now))
        return None if self._fetch is None or self._fetch.done() else self._fetch

    async def _fetch_keys(self, began_at: float) -> None:
        try:
            with timed_store_call(self._metrics, "issuer", "keys"):
                async with asyncio.timeout(FETCH_SECONDS):
                    self._keys = self._usable(await self._key_set())
        except Exception as error:  # noqa: BLE001 - whatever the issuer sends, its keys are not known now
            reason = str(error) if type(error) is ValueError else type(error).__name__
            _LOG.warning("the keys of the OAuth issuer could not be fetched: %s", reason)
            return
        self._as_of = began_at

    async def _key_set(self) -> Any:  # noqa: ANN401 - any JSON value
        async with self._http.stream("GET", self._issuer.keys_url) as response:
            if response.status_code != HTTPStatus.OK:
                raise ValueError(f"status {response.status_code}")
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_KEY_SET_BYTES:
                    raise ValueError(f"more than {MAX_KEY_SET_BYTES:,} bytes")
        return orjson.loads(body)

    def _usable(self, key_set: Any) -> Mapping[str | None, jwt.PyJWK]:  # noqa: ANN401 - any JSON value
        keys = key_set.get("keys") if isinstance(key_set, dict) else None
        if not isinstance(keys, list) or len(keys) > MAX_KEYS:
            raise ValueError(f"no key set of at most {MAX_KEYS} keys")
        return {
            key.key_id: key
            for key in jwt.PyJWKSet(keys)
            if key.algorithm_name in self._issuer.algorithms and key.public_key_use in {None, "sig"}
        }


def _is_sound(claims: Mapping[str, Any]) -> bool:
    """Whether a token has a subject that is not blank, and times that are numbers; the library takes numeric text."""
    return bool(str(claims["sub"]).strip()) and all(
        type(claims[name]) in {int, float} and 0 <= claims[name] <= _LAST_SECOND for name in _TIMES if name in claims
    )


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """The scopes of a token: a text as of RFC 9068, or a list, as some issuers have it, also under the name `scp`."""
    stated = claims.get("scope", claims.get("scp", ""))
    texts = stated.split() if isinstance(stated, str) else stated
    return frozenset(text for text in texts if isinstance(text, str)) if isinstance(texts, list) else frozenset()
