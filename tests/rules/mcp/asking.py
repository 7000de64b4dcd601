"""The methods other than the tools' by hand, in either era of the protocol."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from tests.support.served import Reply
from tests.support.wire import Era, request

SHOP_TEMPLATE: Final = {"type": "ref/resource", "uri": "shop://{domain}"}


def members(**params: object) -> bytes:
    """The members of a params object, as bytes."""
    return json.dumps(params).encode()[1:-1]


def read(base: str, era: Era, uri: str, **headers: str) -> Reply:
    # A header takes only plain text; the protocol has a way for the rest.
    name = uri if uri.isascii() and uri.isprintable() and uri.strip() == uri else _wrapped(uri)
    return request(base, era, "resources/read", members(uri=uri), name=name or "=?base64??=", **headers)


def prompt(base: str, era: Era, name: str, arguments: Mapping[str, Any] | None = None) -> Reply:
    given = {} if arguments is None else {"arguments": arguments}
    return request(base, era, "prompts/get", members(name=name, **given), name=name)


def complete(base: str, era: Era, ref: Mapping[str, str], argument: str, value: str, **headers: str) -> Reply:
    params = members(ref=ref, argument={"name": argument, "value": value})
    return request(base, era, "completion/complete", params, **headers)


def of_prompt(name: str) -> dict[str, str]:
    return {"type": "ref/prompt", "name": name}


def error(code: int, message: str, problem: Mapping[str, Any] | None = None) -> dict[str, Any]:
    fault = {"code": code, "message": message} | ({} if problem is None else {"data": problem})
    return {"jsonrpc": "2.0", "id": 7, "error": fault}


def status_of(era: Era, code: int) -> int:
    return 400 if era is Era.STATELESS and code == -32602 else 200


def _wrapped(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="
