"""The errors that callers can get, each a class with its status and code (E1).

A detail is our own text and says what to do. It contains neither the caller's input nor internals (E5, V2).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from index_mappings.hosts import domain_parts, has_dot, reduce_host

MAX_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of the input, or with the input as a whole, whose name is empty.

    The message continues the sentence after the name: "must be a string".
    """

    field: str
    message: str


class ServiceError(Exception):
    """The base of the tree.

    The code is the stable one of E1, made of the class's name unless it is stated; the title, made of the code, is the
    same for every error of it. The detail states the problem and the remedy; `errors` are the fields of
    the input that are wrong. `retry_after` are seconds to wait before a retry, None if waiting does not help.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    default_detail: ClassVar[str]
    retry_after: int | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init_subclass__(cls, *, status: int, code: str | None = None) -> None:
        cls.status = status
        cls.code = code or re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()
        if "title" not in vars(cls):
            cls.title = cls.code.replace("_", " ").capitalize()

    def __init__(self, detail: str | None = None, errors: Sequence[FieldError] = ()) -> None:
        self.detail = self.default_detail if detail is None else detail
        self.errors = tuple(errors)
        super().__init__(self.code)

    def problem(self) -> dict[str, Any]:
        """The RFC 9457 object, the same on every protocol."""
        document: dict[str, Any] = {
            "type": f"urn:shop-directory:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.errors:
            document["errors"] = [{"field": error.field, "message": error.message} for error in self.errors]
        return document


class InvalidInputError(ServiceError, status=400):
    """The input does not follow the interface."""

    default_detail = "The input is not valid."


class UnknownCategoryError(ServiceError, status=400):
    """No public shop carries the category (E4)."""

    default_detail = "This category does not exist. Call list_categories for the slugs that do."


class PageTooDeepError(ServiceError, status=400):
    """The page is beyond the deepest one that is served (M8)."""

    default_detail = "offset plus limit may be at most 100,000. Narrow the search by category or country instead."


class TooManyCouponsError(ServiceError, status=400):
    """The list of the coupons of all or several shops is longer than this transport allows (A6, F17)."""

    default_detail = "There are more usable coupons than this transport can list. Name a shop in shop_domain."


class OfferNotFoundError(ServiceError, status=404):
    """No public shop has such an offer; the input is not echoed."""

    default_detail = "The directory has no offer with this id."


class NoValidCheckoutUrlError(ServiceError, status=404):
    """The offer has no safe checkout URL (A10)."""

    title = "No valid checkout URL"
    default_detail = "This offer has no URL that safely leads to its shop's checkout."


_HOW_TO_SEND = "Send it in the header x-api-token (over stdio: in the variable SHOP_DIRECTORY_API_TOKEN)."
_CHALLENGE = ((b"www-authenticate", b'ApiKey realm="shop-directory", header="x-api-token"'),)


class TokenRequiredError(ServiceError, status=401):
    """The tool needs a token, and the call has none."""

    default_detail = f"This tool needs an API token, which the operator issues. {_HOW_TO_SEND}"
    headers = _CHALLENGE


class TokenInvalidError(ServiceError, status=401):
    """The supplied token is invalid."""

    default_detail = f"This token is unknown, revoked or expired. {_HOW_TO_SEND}"
    headers = _CHALLENGE


class OpsKeyRequiredError(ServiceError, status=401):
    """The request to an operations endpoint has no operations key, or a wrong one."""

    title = "Operations key required"
    default_detail = "This endpoint needs the operations key in the header x-ops-key."
    headers = ((b"www-authenticate", b'ApiKey realm="shop-directory-operations", header="x-ops-key"'),)


class QuotaExceededError(ServiceError, status=429):
    """The caller's quota is used up (Q2)."""

    default_detail = "This caller's quota is used up."

    def __init__(self, retry_after: int, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(f"This caller's quota is used up. Try again in {retry_after} seconds.")
        self.retry_after = retry_after
        self.headers = headers


class ShopNotFoundError(ServiceError, status=404):
    """There is no such public shop; the advice depends on the input's form, so it says nothing of hidden shops (V2).

    `field` is the field of the reference, for a tool that takes references in several.
    """

    default_detail = "The directory has no shop with this id or domain."

    def __init__(self, reference: str | None, field: str | None = None) -> None:
        host = reduce_host(reference) if reference and has_dot(reference) else None
        advice = ""
        if host is None or any(map(str.isspace, host)):
            advice = " To look up a shop by name, call find_shop."
        elif len(domain_parts(host).labels) > 1:
            advice = " A subdomain is not looked up as its parent domain."
        detail = self.default_detail if field is None else f"{field}: {self.default_detail}"
        super().__init__(detail + advice)


class RouteNotFoundError(ServiceError, status=404, code="not_found"):
    """The path does not exist."""

    default_detail = "This path does not exist. GET /openapi.json lists the paths that do."


class OriginNotAllowedError(ServiceError, status=403):
    """A browser asks whether a page of an origin that is not allowed may call this path (C3)."""

    default_detail = (
        "Pages of this origin may not call this path. The operator allows an origin by SHOP_DIRECTORY_CORS_ORIGINS."
    )


class MethodNotAllowedError(ServiceError, status=405):
    """The path exists, but does not support the method."""

    default_detail = "This path does not support this method; the header Allow lists the supported ones."


class MisdirectedRequestError(ServiceError, status=421):
    """The Host of a request to an operations endpoint names another machine, and no operations key is configured."""

    default_detail = (
        "Without an operations key this endpoint answers only if the header Host names this machine, such as localhost."
    )


class BodyTooLargeError(ServiceError, status=413):
    """The body exceeds the limit (E6)."""

    default_detail = f"A request body may have at most {MAX_BODY_BYTES:,} bytes."


class UnsupportedMediaTypeError(ServiceError, status=415):
    """The body is not declared as JSON, or is encoded."""

    default_detail = "Send the body as JSON, with the header content-type: application/json."


class InternalError(ServiceError, status=500, code="internal_error"):
    """The service failed; the log has the cause under the request id (E5)."""

    default_detail = "The service failed to answer. The operator can find the cause by the request id."


class VersionUnknownError(ServiceError, status=503):
    """The build does not know its commit and time."""

    default_detail = "version_unknown: this build does not have its commit and build time."
    retry_after = 60


class NotReadyError(ServiceError, status=503):
    """The service has no index that it can read, or is not ready for another reason (G4, O1)."""

    default_detail = "The service is not ready."
    retry_after = 2


class OverloadedError(ServiceError, status=503):
    """The worker handles as many requests as it may; this one was not processed."""

    default_detail = "The service is at capacity. The request was not processed; retry in 1 second."
    retry_after = 1


class BackendUnavailableError(ServiceError, status=503):
    """The search engine did not answer completely and in time (E3)."""

    default_detail = "The search engine did not answer in time. The result is unknown; retry in 1 second."
    retry_after = 1
