"""Sends requests to a system over one keep-alive connection and reads the responses.

The load generators only count, so the responses are validated here before the load starts.
"""

import http.client
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from bench.typeahead.load import LoadError
from bench.typeahead.system import System

_PATIENCE_S: Final = 30.0
_SAMPLE: Final = 400


@dataclass(frozen=True, slots=True)
class Sizes:
    """The mean sizes of answers, in bytes.

    Attributes:
        whole: head and body.
        body: the body alone.
    """

    whole: float
    body: float


class Caller:
    """One connection."""

    def __init__(self, port: int) -> None:
        """Nothing is sent yet."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)

    def ask(self, target: str) -> tuple[bytes, int]:
        """The body of an answer, and the size of it with its head.

        Raises:
            LoadError: it was no success.
        """
        self._connection.request("GET", target)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise LoadError(f"{target} was answered {answer.status}: {body[:300]!r}")
        head = 17 + len(answer.reason) + sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
        return body, head + len(body)

    def shops(self, system: System, query: str, country: str | None, limit: int) -> list[str]:
        """The ids of the shops that a system finds, best first; arguments as of `System.path`."""
        body, _ = self.ask(system.path(query, country, limit))
        return system.ids(body)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def probe(system: System, port: int, targets: Sequence[str]) -> Sizes:
    """Ask for some of the targets, taken evenly, and read the answers.

    Raises:
        LoadError: an answer was no success, or could not be read as shops.
    """
    whole: list[int] = []
    bodies: list[int] = []
    with closing(Caller(port)) as caller:
        for target in targets[:: max(1, len(targets) // _SAMPLE)]:
            body, size = caller.ask(target)
            try:
                system.ids(body)
            except (ValueError, KeyError, TypeError) as unread:
                raise LoadError(f"{target} was answered by no list of shops: {body[:300]!r}") from unread
            whole.append(size)
            bodies.append(len(body))
    return Sizes(sum(whole) / len(whole), sum(bodies) / len(bodies))
