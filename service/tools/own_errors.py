"""The errors that a tool can answer, read from its modules, so that the pages list exactly these (E1)."""

import sys
from typing import Any, Final

from service.errors import (
    BackendUnavailableError,
    BodyTooLargeError,
    InternalError,
    InvalidInputError,
    MethodNotAllowedError,
    NotReadyError,
    OverloadedError,
    QuotaExceededError,
    ServiceError,
    TokenInvalidError,
    TokenRequiredError,
    UnsupportedMediaTypeError,
)
from service.tools.tool import Tool

COMMON: Final[tuple[type[ServiceError], ...]] = (
    InvalidInputError,
    MethodNotAllowedError,
    BodyTooLargeError,
    UnsupportedMediaTypeError,
    QuotaExceededError,
    InternalError,
    BackendUnavailableError,
    NotReadyError,
    OverloadedError,
)
CREDENTIALS: Final[tuple[type[ServiceError], ...]] = (TokenRequiredError, TokenInvalidError)
_TOOLS: Final = "service.tools."


def own_errors(tool: Tool[Any]) -> tuple[type[ServiceError], ...]:
    """The specific errors of a tool: those that its module, or a tools module that it calls from, imports."""
    module = tool.run.__module__
    called = {getattr(thing, "__module__", "") for thing in vars(sys.modules[module]).values() if callable(thing)}
    modules = {module, *(name for name in called if str(name).startswith(_TOOLS))}
    found = {thing for name in modules for thing in vars(sys.modules[name]).values() if _is_error(thing)}
    return tuple(sorted(found - {*COMMON, *CREDENTIALS, ServiceError}, key=lambda error: error.code))


def _is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, ServiceError)
