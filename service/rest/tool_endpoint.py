"""POST /tool/<name>: reads the arguments and the caller, and leaves the call to the dispatcher (R5)."""

from functools import partial
from urllib.parse import parse_qsl

from starlette.requests import Request

from service.calls.dispatch import Dispatcher
from service.errors import FieldError, InvalidInputError, UnsupportedMediaTypeError
from service.http.messages import (
    JSON,
    Answer,
    Endpoint,
    decode_object,
    http_caller,
    is_json,
    problem_answer,
    read_body,
    stamp_headers,
)
from service.runtime.caller import Channel, Proxies
from service.tools.request import invalid, shown_name


def tool_endpoint(dispatcher: Dispatcher, name: str, trusted: Proxies) -> Endpoint:
    """The endpoint of one tool; the caller's address is read from headers of `trusted` proxies."""

    async def answer(request: Request) -> Answer:
        caller = http_caller(request.scope, Channel.REST, trusted)
        outcome = await dispatcher.call(name, partial(_arguments, request), caller)
        headers = (*stamp_headers(outcome.stamp), *outcome.headers)
        if outcome.error is not None:
            return problem_answer(outcome.error, headers, outcome.body)
        return Answer(200, outcome.body, JSON, headers)

    return Endpoint(("POST",), answer)


async def _arguments(request: Request) -> object:
    if not is_json(request.headers.get("content-type")):
        raise UnsupportedMediaTypeError
    body = await read_body(request.headers.raw, request.receive)
    if query_string := request.scope["query_string"]:
        raise _query_string_error(query_string)
    return decode_object(body)


def _query_string_error(query_string: bytes) -> InvalidInputError:
    """The error for arguments in the query string; ignoring them could ignore a filter (R3)."""
    names = dict.fromkeys(
        shown_name(name) for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    )
    message = "is in the query string, where this path takes nothing; send it in the JSON body"
    return invalid(tuple(FieldError(name, message) for name in names or ("(a field)",)))
