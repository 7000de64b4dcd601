"""A part of an answer, read with the type that the rule demands; anything else breaks the rule and says where."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from shop_directory.conformance.rule import RuleBrokenError

if TYPE_CHECKING:
    from shop_directory.conformance.replies import Reply

_SHOWN: Final = 120
_UTC_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


class Part:
    """A JSON value at its place in an answer. `part["results"][0]["id"].text()` reads, or raises RuleBrokenError."""

    __slots__ = ("_place", "_reply", "value")

    def __init__(self, reply: "Reply", place: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
        self._reply = reply
        self._place = place
        self.value = value

    def __getitem__(self, key: str | int) -> "Part":
        """A member that must be there."""
        if isinstance(key, int):
            values = self.values()
            if not -len(values) <= key < len(values):
                raise self.broken(f"at least {key + 1} elements")
            return Part(self._reply, f"{self._place}[{key}]", values[key])
        if key not in self.keys():
            raise self.broken(f"a field {key}")
        return Part(self._reply, f"{self._place}.{key}".lstrip("."), self.value[key])

    def keys(self) -> list[str]:
        """The names of an object."""
        if not isinstance(self.value, dict):
            raise self.broken("an object")
        return list(self.value)

    def values(self) -> list[Any]:
        """The plain values of an array."""
        if not isinstance(self.value, list):
            raise self.broken("an array")
        return self.value

    def each(self) -> Iterator["Part"]:
        """The elements of an array; that it is one is checked at once."""
        return iter([Part(self._reply, f"{self._place}[{place}]", value) for place, value in enumerate(self.values())])

    def text(self) -> str:
        """A string that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self.broken("a text")
        return self.value

    def whole(self) -> int:
        """A whole number from 0."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.broken("a whole number from 0")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.broken("true or false")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """An array of strings."""
        return tuple(part.text() for part in self.each())

    def time(self) -> datetime:
        """A UTC time as RFC 3339 writes it."""
        if not isinstance(self.value, str) or _UTC_TIME.fullmatch(self.value) is None:
            raise self.broken("a UTC time such as 2026-01-31T09:30:00Z")
        try:
            return datetime.fromisoformat(self.value)
        except ValueError:
            raise self.broken("a time that exists") from None

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self.value is None

    def one_of(self, *allowed: str) -> str:
        """One of a few words."""
        if not isinstance(self.value, str) or self.value not in allowed:
            raise self.broken(f"one of {', '.join(allowed)}")
        return self.value

    def expect(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Raise unless it is exactly this."""
        if self.value != value or isinstance(self.value, bool) != isinstance(value, bool):
            raise self.broken(repr(value))

    def broken(self, expected: str) -> RuleBrokenError:
        """The error that says that this part is not what the rule demands."""
        try:
            shown = repr(self.value)
        except RecursionError:
            shown = "something that is nested too deep"
        cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        return self._reply.broken(f"{self._place or 'the answer'}: {expected}", f"{self._place or 'answer'} = {cut}")
