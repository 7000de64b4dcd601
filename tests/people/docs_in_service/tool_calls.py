"""The calls of the tools that become examples: those of the registry, and one for each error that a tool can give."""

import json
from collections.abc import Iterator
from typing import Any, Final

from service.errors import MAX_BODY_BYTES
from service.tools.own_errors import own_errors
from service.tools.registry import REGISTRY
from service.tools.tool import TokenRule, Tool
from tests.people.docs_in_service.asking import Asking
from tests.people.docs_in_service.states import States

NO_SHOP: Final = "no-such-shop.internal"
# What has to be asked for an error of some tools alone.
_OF_CODE: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "page_too_deep": ("A page that nobody reads", {"query": "", "offset": 100_000, "limit": 10}),
    "unknown_category": ("A slug that is not of list_categories", {"query": "", "category": "lightning"}),
    "too_many_coupons": ("All shops, where the operator has set a bound", {}),
    "offer_not_found": ("An offer that there is not", {"offer_id": "off_unknown"}),
    "no_valid_checkout_url": ("An offer whose URL is not safe", {"offer_id": "off_invalid-ftp"}),
}
_WRONG: Final[dict[str, tuple[tuple[str, str, dict[str, Any]], ...]]] = {
    "find_shop": (
        ("limit_out_of_range", "A number out of its range", {"query": "lumen", "limit": 500}),
        ("no_country", "A code that is no country's", {"query": "lumen", "country": "UK"}),
    ),
    "get_shop": (
        (
            "two_shops",
            "Both names of the field, with two references",
            {"shop_domain": "kiefernhaus.internal", "shop_id_or_domain": "tsuki.internal"},
        ),
    ),
    "report_issue": (
        (
            "reason_of_another_subject",
            "A reason that belongs to another subject",
            {"subject_type": "fact", "shop_domain": "lumen-larch.internal", "reason": "no_longer_exists"},
        ),
    ),
    "resolve_conflict": (
        ("one_shop", "Twice the same shop", {"from_shop_id": "shop_kiefernhaus", "to_shop_id": "kiefernhaus.internal"}),
    ),
}


def tool_calls(at: States) -> Iterator[Asking]:
    """All of them, tool by tool."""
    for tool in REGISTRY:
        calls = _Calls(tool, at)
        yield from calls.answered()
        yield from calls.refused()
        yield from calls.elsewhere()


class _Calls:
    """The calls of one tool."""

    def __init__(self, tool: Tool[Any], at: States) -> None:
        self._tool = tool
        self._at = at
        self._good = tool.examples[0].arguments
        self._path = f"/tool/{tool.name}"
        self._token = {"x-api-token": at.token} if tool.token is TokenRule.REQUIRED else {}

    def answered(self) -> Iterator[Asking]:
        """The examples of the registry."""
        for number, example in enumerate(self._tool.examples, start=1):
            yield self._call(f"example_{number}", example.summary, self._at.whole, example.arguments)

    def refused(self) -> Iterator[Asking]:
        """What is wrong with what was asked."""
        whole = self._at.whole
        yield self._call("invalid_input", "A field that there is not", whole, {**self._good, "colour": "green"})
        if required := [name for name, field in self._tool.request.model_fields.items() if field.is_required()]:
            rest = {name: value for name, value in self._good.items() if name != required[0]}
            yield self._call("missing_field", "A required field is missing", whole, rest)
        for name, summary, arguments in _WRONG.get(self._tool.name, ()):
            yield self._call(name, summary, whole, arguments)
        for code in [error.code for error in own_errors(self._tool)]:
            if code == "shop_not_found":
                yield self._call(code, "A shop that the directory does not have", whole, self._of_no_shop())
            else:
                summary, arguments = _OF_CODE[code]
                yield self._call(code, summary, self._at.restricted if code == "too_many_coupons" else whole, arguments)
        if not any(error.status == 404 for error in own_errors(self._tool)):
            yield self._sent("not_found", "The path with a slash at its end", path=f"{self._path}/")
        if self._token:
            yield self._sent("token_required", "No token", headers={})
            yield self._sent("token_invalid", "A token that is not known", headers={"x-api-token": "unknown"})

    def elsewhere(self) -> Iterator[Asking]:
        """What HTTP or the state of the service stands against."""
        yield self._sent("method_not_allowed", "Asked with GET", method="GET")
        yield self._sent("body_too_large", "A body of more than 64 KiB", body=b" " * (MAX_BODY_BYTES + 1))
        plain = {**self._token, "content-type": "text/plain"}
        yield self._sent("unsupported_media_type", "A body of plain text", headers=plain)
        yield self._sent("quota_exceeded", "The second call, where the quota is one", base=self._at.used_up, times=2)
        yield self._sent("internal_error", "A fault of the service", base=self._at.broken)
        yield self._sent("backend_unavailable", "The search engine is away", base=self._at.away)
        yield self._sent("not_ready", "No index is published", base=self._at.empty)
        yield self._sent("overloaded", "Another request has the last place", base=self._at.full)

    def _of_no_shop(self) -> dict[str, Any]:
        field = "from_shop_id" if "from_shop_id" in self._good else "shop_domain"
        return {**self._good, field: NO_SHOP}

    def _call(self, name: str, summary: str, base: str, arguments: dict[str, Any]) -> Asking:
        body = json.dumps(arguments).encode()
        return Asking(self._tool.name, name, summary, base, "POST", self._path, body, self._token, arguments)

    def _sent(self, name: str, summary: str, **given: Any) -> Asking:  # noqa: ANN401 - any attribute of Asking
        """A call whose fault is not in its arguments, which therefore are not shown."""
        body = json.dumps(self._good).encode()
        usual = {"base": self._at.whole, "method": "POST", "path": self._path, "body": body, "headers": self._token}
        return Asking(self._tool.name, name, summary, **{**usual, **given})
