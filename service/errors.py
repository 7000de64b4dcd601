"""The errors that callers can get, each a class with its status and code (E1).

A detail is our own text and says what to do. It contains neither the caller's input nor internals (E5, V2).
"""

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

    The code is the stable one of E1; the title, made of it, is the same for every error of the code. The detail says
    what is wrong in this case, and what to do; `errors` are the fields of the input that are wrong. `retry_after` are
    seconds to wait before a retry, None if waiting does not help.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]
    default_detail: ClassVar[str]
    retry_after: int | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init_subclass__(cls) -> None:
        if "title" not in vars(cls):
            cls.title = cls.code.replace("_", " ").capitalize()

    def __init__(self, detail: str | None = None, errors: Sequence[FieldError] = ()) -> None:
        self.detail = self.default_detail if detail is None else detail
        self.errors = tuple(errors)
        super().__init__(self.code)

    def problem(self) -> dict[str, Any]:
        """The RFC 9457 object, the same on every protocol."""
        document: dict[str, Any] = {
            "type": problem_type(self.code),
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }
        if self.errors:
            document["errors"] = [{"field": error.field, "message": error.message} for error in self.errors]
        return document


def problem_type(code: str) -> str:
    """The stable URI of a code."""
    return f"urn:shop-directory:problem:{code}"


class InvalidInputError(ServiceError):
    """The input does not follow the interface."""

    status = 400
    code = "invalid_input"
    default_detail = "The input is not valid."


class UnknownCategoryError(ServiceError):
    """No public shop carries the category (E4)."""

    status = 400
    code = "unknown_category"
    default_detail = "There is no such category. Call list_categories for the slugs that exist."


class PageTooDeepError(ServiceError):
    """The page is beyond the deepest one that is served (M8)."""

    status = 400
    code = "page_too_deep"
    default_detail = (
        "offset and limit together may not be over 100,000. Narrow the search by category or country instead."
    )


class TooManyCouponsError(ServiceError):
    """The list of the coupons of all or several shops is longer than this transport allows (A6, F17)."""

    status = 400
    code = "too_many_coupons"
    default_detail = "There are more usable coupons than can be listed here. Ask for one shop by shop_domain."


class OfferNotFoundError(ServiceError):
    """No public shop has such an offer; the input is not echoed."""

    status = 404
    code = "offer_not_found"
    default_detail = "There is no offer with this id in the directory."


class NoValidCheckoutUrlError(ServiceError):
    """The offer has no safe checkout URL (A10)."""

    status = 404
    code = "no_valid_checkout_url"
    title = "No valid checkout URL"
    default_detail = "This offer states no URL that safely leads to its shop's checkout."


_HOW_TO_SEND = "Send it in the header x-api-token (over stdio: in the variable SHOP_DIRECTORY_API_TOKEN)."
_CHALLENGE = ((b"www-authenticate", b'ApiKey realm="shop-directory", header="x-api-token"'),)


class TokenRequiredError(ServiceError):
    """The tool needs a token, and the call has none."""

    status = 401
    code = "token_required"
    default_detail = f"This tool needs an API token, which the operator issues. {_HOW_TO_SEND}"
    headers = _CHALLENGE


class TokenInvalidError(ServiceError):
    """The supplied token is invalid."""

    status = 401
    code = "token_invalid"
    default_detail = f"This token is not known, has been revoked or has expired. {_HOW_TO_SEND}"
    headers = _CHALLENGE


class OpsKeyRequiredError(ServiceError):
    """The request to an operations endpoint has no operations key, or a wrong one."""

    status = 401
    code = "ops_key_required"
    title = "Operations key required"
    default_detail = "This endpoint needs the operations key in the header x-ops-key."
    headers = ((b"www-authenticate", b'ApiKey realm="shop-directory-operations", header="x-ops-key"'),)


class QuotaExceededError(ServiceError):
    """The caller's quota is used up (Q2)."""

    status = 429
    code = "quota_exceeded"
    default_detail = "The quota of this caller is used up."

    def __init__(self, retry_after: int, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(f"The quota of this caller is used up. Try again in {retry_after} seconds.")
        self.retry_after = retry_after
        self.headers = headers


class ShopNotFoundError(ServiceError):
    """There is no such public shop; the advice depends on the input's form, so it says nothing of hidden shops (V2)."""

    status = 404
    code = "shop_not_found"
    default_detail = "There is no shop with this id or domain in the directory."

    def __init__(self, reference: str | None) -> None:
        host = reduce_host(reference) if reference and has_dot(reference) else None
        advice = ""
        if host is None or any(map(str.isspace, host)):
            advice = " To look a shop up by its name, call find_shop."
        elif len(domain_parts(host).labels) > 1:
            advice = " A sub-domain is not looked up as its parent domain."
        super().__init__(self.default_detail + advice)


class RouteNotFoundError(ServiceError):
    """Nothing is at this path."""

    status = 404
    code = "not_found"
    default_detail = "Nothing is at this path. GET /openapi.json lists the paths that exist."


class OriginNotAllowedError(ServiceError):
    """A browser asks whether a page of an origin that is not allowed may call this path (C3)."""

    status = 403
    code = "origin_not_allowed"
    default_detail = (
        "Pages of this origin may not call this path. The operator allows an origin by SHOP_DIRECTORY_CORS_ORIGINS."
    )


class MethodNotAllowedError(ServiceError):
    """The path exists, but does not support the method."""

    status = 405
    code = "method_not_allowed"
    default_detail = "This path does not answer this method; the header Allow names those that it does."


class MisdirectedRequestError(ServiceError):
    """The Host of a request to an operations endpoint names another machine, and no operations key is configured."""

    status = 421
    code = "misdirected_request"
    default_detail = (
        "Without an operations key this endpoint answers only where the header Host names this machine, as localhost"
        " does."
    )


class BodyTooLargeError(ServiceError):
    """The body exceeds the limit (E6)."""

    status = 413
    code = "body_too_large"
    default_detail = f"A request body may hold at most {MAX_BODY_BYTES:,} bytes."


class UnsupportedMediaTypeError(ServiceError):
    """The body is not declared as JSON."""

    status = 415
    code = "unsupported_media_type"
    default_detail = "Send the body as JSON, with the header content-type: application/json."


class InternalError(ServiceError):
    """The service failed; the log has the cause under the request id (E5)."""

    status = 500
    code = "internal_error"
    default_detail = "The service failed to answer. The operator finds the cause by the request id."


class VersionUnknownError(ServiceError):
    """The build does not know its commit and time."""

    status = 503
    code = "version_unknown"
    default_detail = "version_unknown: this build was made without its commit and build time."
    retry_after = 60


class NotReadyError(ServiceError):
    """The service has no index that it can read, or is not ready for another reason (G4, O1)."""

    status = 503
    code = "not_ready"
    default_detail = "The service is not ready."
    retry_after = 2


class OverloadedError(ServiceError):
    """The worker handles as many requests as it may; this one was not processed."""

    status = 503
    code = "overloaded"
    default_detail = "The service has as much to do as it can. Nothing was done; try again in 1 second."
    retry_after = 1


class BackendUnavailableError(ServiceError):
    """The search engine did not answer completely and in time (E3)."""

    status = 503
    code = "backend_unavailable"
    default_detail = "The search engine did not answer in time. Nothing is known of the result; try again in 1 second."
    retry_after = 1
