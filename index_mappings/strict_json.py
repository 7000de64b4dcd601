"""A strict JSON parser: the standard library's accepts documents that hide mistakes (E6)."""

import json
from typing import Any, Final

MAX_DEPTH: Final = 32


class NotStrictJsonError(ValueError):
    """The text is not acceptable JSON. The message gives the reason and no part of the text."""


def strict_loads(raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Parse UTF-8 JSON; NotStrictJsonError has the reason, such as NaN, a key twice or more than MAX_DEPTH levels."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise NotStrictJsonError("is not UTF-8") from None
    try:
        value = _DECODER.decode(text)
    except NotStrictJsonError:
        raise
    except RecursionError:
        raise NotStrictJsonError(f"is nested more than {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError:
        raise NotStrictJsonError("is not valid JSON") from None
    except ValueError:
        # The decoder's only other error is an integer with more digits than Python parses.
        raise NotStrictJsonError("holds a number with too many digits") from None
    # Half a pair needs an escape, and too many levels need as many brackets.
    if "\\u" in text or text.count("[") + text.count("{") > MAX_DEPTH:
        _check(value, MAX_DEPTH)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NotStrictJsonError("has the same key twice in one object")
    return value


def _constant(_: str) -> float:
    raise NotStrictJsonError("holds NaN or Infinity, which JSON does not have")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise NotStrictJsonError("holds a number that is too large")
    return number


# Shared, because it has no state.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def _check(value: object, levels: int) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotStrictJsonError("holds half of a surrogate pair") from None
    elif isinstance(value, (dict, list)):
        if levels == 0:
            raise NotStrictJsonError(f"is nested more than {MAX_DEPTH} levels deep")
        for part in value if isinstance(value, list) else [*value, *value.values()]:
            _check(part, levels - 1)
