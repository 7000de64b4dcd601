"""The operations document: it comes back as it was written, and what is not one is refused."""

import json
from typing import Any

import pytest

from index_mappings.generations import FollowerStatus, Operations, ResourceAccount

ACCOUNT = ResourceAccount("P", "a", "calls", 1.5, 10.0, "2031-05-06T00:00:00Z", "ok", "2031-05-05T12:00:00Z")
BARE = ResourceAccount("P", "b", None, None, None, None, None, None)
FOLLOWER = FollowerStatus("file", "line 3, byte 99", 0, "2031-05-06T07:08:09Z", "2031-05-06T07:08:09Z")


@pytest.mark.parametrize(
    "operations",
    [
        Operations((), None),
        Operations((ACCOUNT, BARE), FOLLOWER),
        Operations((), FollowerStatus("sql", None, None, None, "2031-05-06T07:08:09Z")),
    ],
)
def test_a_document_comes_back_from_json_as_it_was(operations: Operations) -> None:
    assert Operations.from_wire(json.loads(json.dumps(operations.as_wire()))) == operations


def test_fields_of_a_later_version_are_passed_over() -> None:
    stored = Operations((ACCOUNT,), FOLLOWER).as_wire()
    later = {
        **stored,
        "accounts": [{**stored["accounts"][0], "colour": "green"}],
        "follower": {**stored["follower"], "host": "h"},
        "more": 1,
    }
    assert Operations.from_wire(later) == Operations((ACCOUNT,), FOLLOWER)


def test_a_whole_number_is_a_number() -> None:
    stored = Operations((ACCOUNT,), None).as_wire()
    stored["accounts"][0]["limit"] = 10
    assert Operations.from_wire(stored) == Operations((ACCOUNT,), None)


def _with(part: str, **changed: object) -> dict[str, Any]:
    stored = Operations((ACCOUNT,), FOLLOWER).as_wire()
    if part == "follower":
        return {**stored, "follower": {**stored["follower"], **changed}}
    return {**stored, "accounts": [{**stored["accounts"][0], **changed}]}


@pytest.mark.parametrize(
    "stored",
    [
        {},
        [],
        "operations",
        {"accounts": [], "follower": "unknown"},
        {"accounts": None, "follower": None},
        {"accounts": [{"provider": "P"}], "follower": None},
        _with("account", used="many"),
        _with("account", limit=True),
        _with("account", provider=None),
        _with("follower", waiting=True),
        _with("follower", waiting=1.5),
        _with("follower", told_at=None),
    ],
)
def test_anything_else_is_refused(stored: Any) -> None:  # noqa: ANN401 - whatever lies there
    with pytest.raises(ValueError, match="not an operations document"):
        Operations.from_wire(stored)
