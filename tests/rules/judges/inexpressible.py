"""The refusals that the OpenAPI document can't express, read from their list, and the hook that accepts exactly those.

Schemathesis loads this module by name (SCHEMATHESIS_HOOKS) in a process of its own.
"""

import json
import tomllib
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import schemathesis
from schemathesis import Case, HookContext, Response
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.openapi.checks import RejectedPositiveData

from service.errors import MAX_BODY_BYTES

_LIST: Final = Path(__file__).with_name("inexpressible.toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """A refusal that no schema can express; the attributes are those of the list."""

    code: str
    reason: str
    path: str
    refused: dict[str, Any]
    accepted: dict[str, Any]
    field: str | None = None
    message: str | None = None

    def explains(self, code: str, error: dict[str, str]) -> bool:
        return (
            self.code == code
            and self.field in (None, error.get("field"))
            and self.message in (None, error.get("message"))
        )


ENTRIES: Final = tuple(Entry(**entry) for entry in tomllib.loads(_LIST.read_text(encoding="utf-8"))["entry"])


def is_inexpressible(status: int, body: bytes) -> bool:
    if status != 400:
        return False
    problem = json.loads(body)
    errors = problem.get("errors") or [{}]
    return all(any(entry.explains(problem.get("code", ""), error) for entry in ENTRIES) for error in errors)


def is_too_large(status: int, sent: object) -> bool:
    """Whether a body was refused for its size, which a schema of its parts does not bound."""
    size = len(sent) if isinstance(sent, bytes | str) else 0
    return status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and size > MAX_BODY_BYTES


@schemathesis.hook
def filter_failure(_: HookContext, failure: Failure, __: Case[Any], response: Response) -> bool:
    """Report every failure but the refusal of valid input for a reason of the list, and of any for its size."""
    if not isinstance(failure, RejectedPositiveData | AcceptedNegativeData):
        return True
    if is_too_large(response.status_code, response.request.body):
        return False
    return not (isinstance(failure, RejectedPositiveData) and is_inexpressible(response.status_code, response.content))
