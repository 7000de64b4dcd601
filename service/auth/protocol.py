"""What a token is and what the service asks of a store of tokens.

A store never sees a token's text: it knows tokens by a hash of it, and no representation shows even that (Q1).
"""

from dataclasses import dataclass, field
from typing import Protocol


class TokensUnavailable(Exception):  # noqa: N818 - it names the state that callers are told of
    """The store did not answer. The text is for the log, never for a caller (E5)."""


@dataclass(frozen=True, slots=True)
class SecretHash:
    """The SHA-256 of a token's text; its representation shows nothing of it.

    Attributes:
        hexadecimal: 64 lower-case digits.
    """

    hexadecimal: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Token:
    """An issued token, without its secret.

    Attributes:
        id: names it to the operator, in quotas and as the source of reports (Q5); not secret.
        name: whom or what it was issued for, in the operator's words.
        quota_class: the name of the quotas that it has.
        expires_at: the first second, since 1970 in UTC, at which it does not count any more; None for never.
    """

    id: str
    name: str
    quota_class: str
    expires_at: int | None


class TokenStore(Protocol):
    """Where tokens are kept.

    Every method but close raises TokensUnavailable when the store does not answer.
    """

    async def find(self, secret_hash: SecretHash) -> Token | None:
        """The token of a secret; None when it was never issued or has been revoked. An expired one is found."""

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        """Keep a new token; it is durable as soon as this returns."""

    async def all(self) -> tuple[Token, ...]:
        """All tokens that are issued and not revoked, expired ones too, by name, then id."""

    async def revoke(self, token_id: str) -> bool:
        """Forget a token, for good.

        Returns:
            Whether there was one of this id.
        """

    async def close(self) -> None:
        """Release connections and files."""
