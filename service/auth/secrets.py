"""Generates, recognises and hashes the secret text of a token.

The text is `sd_`, 256 random bits as 43 base-62 digits, and 6 digits of a checksum over all of that. The checksum lets
the service refuse a mistyped or truncated token without a look-up, and scanners of leaked secrets recognise a real one.
"""

import re
import secrets
from hashlib import sha256
from typing import Final
from zlib import crc32

from service.auth.protocol import SecretHash

PREFIX: Final = "sd_"

_SECRET_BITS: Final = 256
_SECRET_DIGITS: Final = 43
_CHECKSUM_DIGITS: Final = 6
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM: Final = re.compile(f"{PREFIX}[0-9A-Za-z]{{{_SECRET_DIGITS + _CHECKSUM_DIGITS}}}")


def new_token_text() -> str:
    """A new random secret."""
    secret = PREFIX + _to_digits(secrets.randbits(_SECRET_BITS), _SECRET_DIGITS)
    return secret + _checksum(secret)


def new_token_id() -> str:
    """16 hexadecimal digits, not secret and not derived from the secret."""
    return secrets.token_hex(8)


def is_token_text(text: str) -> bool:
    """Whether the text has the form of a token and the right checksum."""
    if _FORM.fullmatch(text) is None:
        return False
    return text[-_CHECKSUM_DIGITS:] == _checksum(text[:-_CHECKSUM_DIGITS])


def hash_of(text: str) -> SecretHash:
    """The hash that a store identifies the token by. 256 random bits need no salt and no slow hash."""
    return SecretHash(sha256(text.encode()).hexdigest())


def _checksum(text: str) -> str:
    return _to_digits(crc32(text.encode()), _CHECKSUM_DIGITS)


def _to_digits(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
