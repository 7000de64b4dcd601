"""Tokens and the interface of a token store.

A store never sees a token's text, only its hash, and no `repr` shows even the hash (Q1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from service.runtime.store_waits import StoreUnavailable


class TokensUnavailable(StoreUnavailable):
    """It is not known whether a token is valid, or whether a change was made; `retry_after` are seconds to wait."""

    def __init__(self, text: str = "", *, late: bool = False, retry_after: int = 1) -> None:
        self.retry_after = retry_after
        super().__init__(text, late=late)


@dataclass(frozen=True, slots=True)
class SecretHash:
    """The SHA-256 of a token's text as 64 lower-case hexadecimal digits, left out of its `repr`."""

    hexadecimal: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """An issued token, without its secret.

    The id identifies it to the operator, in quotas and as the source of reports (Q5), and is not secret. `expires_at`
    is the first second since 1970 in UTC at which it is no longer valid; None if it never expires.
    """

    id: str
    name: str
    quota_class: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Issuer:
    """An authorization server, and what its tokens must be.

    `token_types` are values of the header `typ`, in lower case, without `application/`. The first scope of
    `scope_classes` that a token has names its quota class, by default `default_class`. `source_key` is the key of the
    HMAC that stands for a subject.
    """

    url: str
    keys_url: str
    audience: str
    algorithms: tuple[str, ...]
    token_types: tuple[str, ...]
    scope_classes: Mapping[str, str]
    default_class: str
    source_key: str = field(repr=False)


class Verifier(Protocol):
    """Verifies the tokens of calls."""

    async def verify(self, text: str) -> Token | None:
        """The token of a text; None if it is not valid, TokensUnavailable if that is not known."""

    async def close(self) -> None:
        """End pending work."""


class TokenStore(Protocol):
    """Stores issued tokens; every method but `close` raises TokensUnavailable when the store does not answer."""

    async def find(self, secret_hash: SecretHash) -> Token | None:
        """The token of a secret; None when it was never issued or has been revoked. An expired token is returned."""

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        """Store a new token; it is durable when this returns."""

    async def all(self) -> tuple[Token, ...]:
        """All tokens that are not revoked, also expired ones, by name, then id."""

    async def revoke(self, token_id: str) -> bool:
        """Delete a token; returns whether there was one with this id."""

    async def close(self) -> None:
        """Close connections and files."""
