"""Bodies in and out: what counts as JSON, how much is read, and which bytes are sent."""

from collections.abc import Sequence
from typing import Any

import pytest
from starlette.types import Receive

from service.calls.dispatch import decode_object
from service.errors import BodyTooLargeError, InvalidInputError
from service.http.messages import header, is_json, json_answer, read_body

pytestmark = pytest.mark.rule("E6")


def _receiving(messages: Sequence[dict[str, Any]]) -> Receive:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    return receive


def _part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_an_object_is_decoded_with_its_numbers_as_they_are() -> None:
    assert decode_object(b' {"a": [1, 1.0, 1e2, -0.5, null, true, "\\ud83d\\ude00"]}\n') == {
        "a": [1, 1.0, 100.0, -0.5, None, True, "😀"]
    }


@pytest.mark.parametrize(("levels", "taken"), [(31, True), (32, False)])
def test_nesting_has_a_limit(levels: int, *, taken: bool) -> None:
    raw = b'{"a":' + b"[" * levels + b"]" * levels + b"}"
    if taken:
        assert list(decode_object(raw)) == ["a"]
    else:
        with pytest.raises(InvalidInputError):
            decode_object(raw)


@pytest.mark.rule("I5")
def test_answers_are_compact_utf_8() -> None:
    assert (
        json_answer({"name": "Zoë", "none": None, "score": 8.5}).body
        == '{"name":"Zoë","none":null,"score":8.5}'.encode()
    )


async def test_a_body_is_read_in_its_parts() -> None:
    receive = _receiving([_part(b"{", more=True), _part(b"", more=True), _part(b"}")])
    assert await read_body([], receive) == b"{}"


@pytest.mark.parametrize("declared", [[], [(b"content-length", b"2")], [(b"content-length", b"-1")]])
async def test_a_body_over_the_limit_is_refused_whatever_was_declared(declared: list[tuple[bytes, bytes]]) -> None:
    receive = _receiving([_part(b"x" * 65_536, more=True), _part(b"x", more=True)])
    assert isinstance(await read_body(declared, receive), BodyTooLargeError)


async def test_a_caller_who_leaves_has_sent_no_body() -> None:
    receive = _receiving([_part(b"{", more=True), {"type": "http.disconnect"}])
    assert isinstance(await read_body([], receive), InvalidInputError)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", True),
        ("application/json;charset=utf-8", True),
        ("APPLICATION/JSON ; x=y", True),
        ("application/jsonx", False),
        ("text/json", False),
        ("", False),
        (None, False),
    ],
)
def test_json_is_declared_by_its_media_type(content_type: str | None, *, expected: bool) -> None:
    assert is_json(content_type) is expected


def test_the_first_of_equal_headers_counts() -> None:
    headers = [(b"a", b"1"), (b"b", b"2"), (b"b", b"3")]
    assert (header(headers, b"b"), header(headers, b"c")) == ("2", None)
