"""What an answer to a bulk request means for each of its operations: done, refused for good, or to be sent again.

Only statuses and types of errors are read: their texts hold documents (V1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

# What is asked of the engine, so that no text of an error ever arrives. The statuses keep the items at their places.
ANSWER_PARTS: Final = "errors,items.*.status,items.*.error.type"

_NO_INDEX: Final = "index_not_found_exception"
# Its status is 400, but it is not the document's fault.
_CLOSED: Final = "index_closed_exception"
_UNFIT: Final = "action_request_validation_exception"
_PASSING: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
_DOCUMENT_AT_FAULT: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


class UnreadableAnswerError(Exception):
    """The answer is not one to the request that was sent."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something was not done.

    Attributes:
        status: the HTTP status; None when there was no answer.
        kind: the type of the error.
    """

    status: int | None
    kind: str

    def __str__(self) -> str:
        return self.kind if self.status is None else f"{self.status} {self.kind}"

    @property
    def passes(self) -> bool:
        """Whether the same may go well later."""
        return (
            self.status is None
            or self.status in _PASSING
            or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            or self.says_no_index
        )

    @property
    def is_pressure(self) -> bool:
        """Whether the engine has too much to do just now."""
        return self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def says_no_index(self) -> bool:
        """Whether a node knows no such index, which has to be looked into: it may not know it yet."""
        return self.kind == _NO_INDEX

    @property
    def may_be_of_the_index(self) -> bool:
        """Whether it may be that the index can't be written to: no answer, or that of a failure."""
        return self.status is None or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    @property
    def is_of_the_request(self) -> bool:
        """Whether the request was refused as a whole for what is in it: it is too long, or one operation is unfit."""
        return self.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or self.kind == _UNFIT

    @property
    def is_of_the_document(self) -> bool:
        """Whether the document itself is what the engine can't take."""
        return self.status in _DOCUMENT_AT_FAULT and self.kind != _CLOSED


UNREADABLE: Final = Trouble(None, "an answer that can't be read")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the operations of one request, which are told of by their positions.

    Attributes:
        done: how many were done.
        refused: those that never will be.
        again: those that may go well later.
        troubles: why the latter did not.
        fatal: the first trouble that no operation is to blame for and no waiting helps; None without.
    """

    done: int
    refused: tuple[tuple[int, Trouble], ...] = ()
    again: tuple[int, ...] = ()
    troubles: frozenset[Trouble] = frozenset()
    fatal: Trouble | None = None


def judge(answer: Mapping[str, Any], count: int) -> Verdict:
    """Read an answer.

    Args:
        answer: as the engine gave it, of the parts in ANSWER_PARTS.
        count: how many operations the request had.

    Raises:
        UnreadableAnswerError: it does not say something of each of them.
    """
    try:
        results = [next(iter(item.values())) for item in answer["items"]]
        troubles = {place: _trouble(result) for place, result in enumerate(results) if "error" in result}
    except (LookupError, TypeError, AttributeError, StopIteration) as error:
        raise UnreadableAnswerError from error
    if len(results) != count:
        raise UnreadableAnswerError
    again = tuple(place for place, trouble in troubles.items() if trouble.passes)
    refused = tuple((place, trouble) for place, trouble in troubles.items() if trouble.is_of_the_document)
    others = (one for one in troubles.values() if not one.passes and not one.is_of_the_document)
    return Verdict(
        done=count - len(troubles),
        refused=refused,
        again=again,
        troubles=frozenset(troubles[place] for place in again),
        fatal=next(others, None),
    )


def _trouble(result: Mapping[str, Any]) -> Trouble:
    return Trouble(int(result["status"]), str(result["error"]["type"]))
