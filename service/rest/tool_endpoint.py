"""POST /tool/<name>: the wire becomes name, raw input and caller; everything else is dispatch's (R5)."""

from functools import partial
from urllib.parse import parse_qsl

from service.calls.dispatch import Dispatcher
from service.errors import FieldError, InvalidInputError, UnsupportedMediaTypeError
from service.http.callers import http_caller
from service.http.responses import Answer, Asked, Endpoint, problem_answer, stamp_headers
from service.runtime.addresses import Proxies
from service.runtime.caller import Channel
from service.runtime.wire import JSON, decode_object, header, is_json, read_body
from service.tools.request import invalid, shown_name


def tool_endpoint(dispatcher: Dispatcher, name: str, trusted: Proxies) -> Endpoint:
    """The endpoint of one tool; `believed` proxies tell whose call it is."""

    async def answer(asked: Asked) -> Answer:
        caller = http_caller(asked.scope, Channel.REST, trusted)
        outcome = await dispatcher.call(name, partial(_arguments, asked), caller)
        headers = (*stamp_headers(outcome.stamp), *outcome.headers)
        if outcome.error is not None:
            return problem_answer(outcome.error, headers, outcome.body)
        return Answer(200, outcome.body, JSON, headers)

    return Endpoint(("POST",), answer)


async def _arguments(asked: Asked) -> object:
    if not is_json(header(asked.headers, b"content-type")):
        raise UnsupportedMediaTypeError
    body = await read_body(asked.headers, asked.receive)
    if query_string := asked.scope["query_string"]:
        raise _misplaced(query_string)
    return decode_object(body)


def _misplaced(query_string: bytes) -> InvalidInputError:
    """Arguments in the query string would be ignored, and a filter among them too (R3)."""
    names = dict.fromkeys(
        shown_name(name) for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    )
    message = "is in the query string, where this path takes nothing; send it in the JSON body"
    return invalid(tuple(FieldError(name, message) for name in names or ("(a field)",)))
