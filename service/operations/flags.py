"""The effective settings that operators see in the state of the service: numbers, switches and choices.

Texts, addresses, paths and secrets are left out by their type, so that a setting added later can't leak by mistake.
"""

from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr

from service.limits.policy import QuotaClass
from service.operations.state import FlagValue

_NUMBERS: Final = (bool, int, float)
# It does not change how the service behaves.
_NO_FLAGS: Final = frozenset({"port"})


def flags_of(settings: BaseModel) -> dict[str, FlagValue]:
    """The settings to show, by name."""
    fields = type(settings).model_fields
    shown = {
        name: _shown(getattr(settings, name))
        for name, field in fields.items()
        if name not in _NO_FLAGS and _is_flag(field.annotation)
    }
    return {name: shown[name] for name in sorted(shown)}


def _is_flag(kind: Any) -> bool:  # noqa: ANN401 - any annotation
    if get_origin(kind) is Literal:
        return True
    if get_origin(kind) is dict:
        return get_args(kind) == (str, QuotaClass)
    if (members := get_args(kind)) and get_origin(kind) is not tuple:
        return all(_is_flag(member) for member in members if member is not type(None))
    return isinstance(kind, type) and kind is not SecretStr and issubclass(kind, (*_NUMBERS, Enum, QuotaClass))


def _shown(value: Any) -> Any:  # noqa: ANN401 - any flag
    match value:
        case QuotaClass():
            return {"reads": value.reads, "suggest": value.suggest, "reports": value.reports}
        case dict():
            return {name: _shown(quota) for name, quota in value.items()}
        case Enum():
            return value.value
    return value
