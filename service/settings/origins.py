"""Origins as operators list them, checked at the start: what no browser sends would silently never match (C3).

Neither `*` nor `null` is one: the first would let every page in, and the second is the origin of any page in a sandbox.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

from shop_directory.settings.reading import CommaSeparated

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?")
_ANY_PORT: Final = ":*"
_PUBLIC_URL: Final = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]+)?(?:/[A-Za-z0-9._~-]+)*")


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(map(_ORIGIN.fullmatch, values)):
        # The setting's own description says what it must be.
        raise ValueError("not all are origins")
    return values


def _of_any_port(values: tuple[str, ...]) -> tuple[str, ...]:
    _origins(tuple(value.removesuffix(_ANY_PORT) for value in values))
    return values


def _public_url(value: str) -> str:
    if _PUBLIC_URL.fullmatch(value) is None:
        raise ValueError("is not such a URL")
    return value


Origins = Annotated[CommaSeparated, AfterValidator(_origins)]
OriginPatterns = Annotated[CommaSeparated, AfterValidator(_of_any_port)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
