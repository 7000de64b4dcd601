"""A request to the service, and its answer as an example: what differs from one time to the next is made the same."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.rest.openapi.examples import Exchange
from tests.rules.security.canary import Fuse, Layer
from tests.support.served import ask

JSON: Final = {"content-type": "application/json", "accept": "application/json"}
_TIMESTAMP: Final = "2030-01-31T09:30:00Z"
_GENERATION: Final = "20300131t093000000000-0a1b2c"
# Of the operators' state and of MCP's _meta; no answer of a tool has such a field.
_VOLATILE: Final[dict[str, Any]] = {
    "asked_at": _TIMESTAMP,
    "started_at": _TIMESTAMP,
    "built_at": _TIMESTAMP,
    "x-data-as-of": _TIMESTAMP,
    "generation": _GENERATION,
    "x-generation": _GENERATION,
    "x-request-id": "0123456789abcdef0123456789abcdef",
    "age_seconds": 12.5,
    "pid": 42,
}
_WAIT: Final = re.compile(r"(?<=Try again in )\d+(?= seconds)")


@dataclass(frozen=True, slots=True)
class Asking:
    """How an exchange is had.

    It is asked `times` times, and the last answer is the example of that name; `shown` is what the example says was
    asked, `only` the metrics that remain of a text. The fuse of the gate is set meanwhile.
    """

    operation: str
    name: str
    summary: str
    base: str
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] | None = None
    shown: Any = None
    times: int = 1
    only: tuple[str, ...] = ()
    gate: Fuse | None = None

    def exchange(self) -> Exchange:
        """Ask, and return the exchange."""
        # A persistent connection could be answered by the fast path, which only suggest requests have.
        headers = {**JSON, "connection": "close", **(self.headers or {})}
        if self.gate is not None:
            self.gate.set(Layer.GATE)
        for _ in range(self.times):
            reply = ask(self.base, self.method, self.path, self.body, headers)
        if self.gate is not None:
            self.gate.set(None)
        media_type = reply.headers["content-type"].partition(";")[0]
        text = _WAIT.sub(_whole_minutes, reply.body.decode())
        answer = _settled(json.loads(text)) if media_type.endswith("json") else _part(text, self.only)
        return Exchange(self.operation, self.name, self.summary, self.shown, reply.status, media_type, answer)


def _whole_minutes(seconds: re.Match[str]) -> str:
    return str(-(-int(seconds[0]) // 60) * 60)


def _settled(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _known(name, part) for name, part in value.items()}
    return [_settled(part) for part in value] if isinstance(value, list) else value


def _known(name: str, part: Any) -> Any:  # noqa: ANN401 - any JSON value
    if name in _VOLATILE and part is not None and not isinstance(part, dict | list):
        return _VOLATILE[name]
    return _settled(part)


def _part(text: str, only: tuple[str, ...]) -> str:
    """The lines of some metrics, in the order that they have."""
    selected = re.compile(rf"^(# \w+ )?({'|'.join(only)})(_total)?[ {{]")
    return "".join(line for line in text.splitlines(keepends=True) if selected.match(line))
