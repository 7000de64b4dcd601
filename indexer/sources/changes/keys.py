"""The key that a delete names, brought to the form that the record's own key has.

A key of another form would delete nothing and leave its record shown, so it is refused.
"""

from typing import Annotated, Final, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from indexer.records.related import TrustRecord
from indexer.records.shop import Host, Name, RecordId, Slug

# Two hosts as people paste them.
MAX_KEY: Final = 2 * 2_048 + 1

_KINDS: Final = frozenset(get_args(TrustRecord.model_fields["kind"].annotation))


def _kind(text: str) -> str:
    if text not in _KINDS:
        raise ValueError("must be a kind of signal")
    return text


def _without_path(text: object) -> object:
    if "/" in str(text):
        raise ValueError("must not hold a path")
    return text


class _Form(NamedTuple):
    """How a type's key is written, and what its parts have to be."""

    shown: str
    parts: tuple[TypeAdapter[str], ...]


_ID: Final = TypeAdapter[str](RecordId)
_NAME: Final = TypeAdapter[str](Name)
_HOST: Final = TypeAdapter[str](Annotated[Host, BeforeValidator(_without_path)])
_FORMS: Final = {
    "shops": _Form("id", (_ID,)),
    "coupons": _Form("id", (_ID,)),
    "offers": _Form("id", (_ID,)),
    "shipping": _Form("shop_id", (_ID,)),
    "trust": _Form("shop_id/kind", (_ID, TypeAdapter[str](Annotated[str, AfterValidator(_kind)]))),
    "affiliate_programs": _Form("shop_id/network", (_ID, _NAME)),
    "redirects": _Form("from_domain/to_domain", (_HOST, _HOST)),
    "resource_accounts": _Form("provider/account", (_NAME, _NAME)),
    "categories": _Form("slug", (TypeAdapter[str](Slug),)),
}


def reduced_key(kind: str, key: str) -> str:
    """The key as a record of this type has it; hosts are reduced.

    Args:
        kind: a key of RECORDS.
        key: as a change states it, of at most MAX_KEY characters.

    Raises:
        ValueError: it has another form; the text tells the form and nothing of the key.
    """
    form = _FORMS[kind]
    for cut in _cuts(key, len(form.parts)):
        try:
            return "/".join(part.validate_python(text, strict=True) for part, text in zip(form.parts, cut, strict=True))
        except ValidationError:
            continue
    raise ValueError(f"must be {form.shown} as in a record")


def _cuts(key: str, parts: int) -> list[tuple[str, ...]]:
    """The ways to take a key apart: a name may hold a slash, so each slash may be the one between two parts."""
    if parts == 1:
        return [(key,)]
    return [(key[:at], key[at + 1 :]) for at, sign in enumerate(key) if sign == "/"]
