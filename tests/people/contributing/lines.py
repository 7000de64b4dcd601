"""A token store over lines of text, which lacks one method of its protocol; a test plants it in a copy."""

from service.auth.protocol import SecretHash, Token


class LinesTokenStore:
    """Keeps nothing, and can't be closed."""

    async def find(self, secret_hash: SecretHash) -> Token | None:  # noqa: ARG002 - the protocol's
        """There is none."""
        return None

    async def issue(self, token: Token, secret_hash: SecretHash) -> None:
        """Forget it."""

    async def all(self) -> tuple[Token, ...]:
        """None."""
        return ()

    async def revoke(self, token_id: str) -> bool:  # noqa: ARG002 - the protocol's
        """There is none."""
        return False
