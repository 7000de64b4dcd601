"""The key that a delete names, brought to the form of the record's own key.

A key of another form would delete nothing and leave the record visible, so it is refused.
"""

from typing import Final

from pydantic import ValidationError

from indexer.records.related import KEYS

# Two hosts, which people may paste as URLs.
MAX_KEY: Final = 2 * 2_048 + 1


def reduced_key(kind: str, key: str) -> str:
    """The key as a record of this type has it, with reduced hosts.

    Args:
        kind: a key of RECORDS.
        key: as a change states it, of at most MAX_KEY characters.

    Raises:
        ValueError: it has another form; the message states the form and nothing of the key.
    """
    model = KEYS[kind]
    for parts in _splits(kind, key, len(model.key_fields)):
        try:
            return model.model_validate(dict(zip(model.key_fields, parts, strict=True))).key
        except ValidationError:
            continue
    raise ValueError(f"must be {'/'.join(model.key_fields)} as in a record")


def _splits(kind: str, key: str, parts: int) -> list[tuple[str, ...]]:
    """The ways to split a key into parts: a name may hold a slash, so each slash may be the separator."""
    if parts == 1:
        return [(key,)]
    if kind == "redirects" and key.count("/") > 1:
        return []  # a record may state a host as a URL, a key may not
    return [(key[:at], key[at + 1 :]) for at, character in enumerate(key) if character == "/"]
