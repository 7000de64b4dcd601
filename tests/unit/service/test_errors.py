"""The tree of errors: one class a code, and one shape of what callers receive."""

import pytest

from service.errors import FieldError, InvalidInputError, QuotaExceededError, ServiceError, ShopNotFoundError

STATUSES = {
    "invalid_input": 400,
    "unknown_category": 400,
    "page_too_deep": 400,
    "too_many_coupons": 400,
    "token_required": 401,
    "token_invalid": 401,
    "ops_key_required": 401,
    "shop_not_found": 404,
    "offer_not_found": 404,
    "no_valid_checkout_url": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "misdirected_request": 421,
    "quota_exceeded": 429,
    "internal_error": 500,
    "version_unknown": 503,
    "not_ready": 503,
    "overloaded": 503,
    "backend_unavailable": 503,
}
# The others are made of more than their class.
PLAIN = [error for error in ServiceError.__subclasses__() if error not in {QuotaExceededError, ShopNotFoundError}]


@pytest.mark.rule("E1")
def test_every_code_has_its_status() -> None:
    assert {error.code: error.status for error in ServiceError.__subclasses__()} == STATUSES


@pytest.mark.rule("E1", "E1.retry_after", "V2")
@pytest.mark.parametrize("error", PLAIN, ids=lambda error: error.code)
def test_every_error_has_the_same_members(error: type[ServiceError]) -> None:
    assert error().problem() == {
        "type": f"urn:shop-directory:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.default_detail,
        "code": error.code,
    }
    assert error.default_detail.endswith(".")
    assert (error.retry_after is not None) == (error.status == 503)


@pytest.mark.rule("E1", "E5")
def test_input_errors_name_their_fields_and_the_text_of_the_exception_is_only_its_code() -> None:
    error = InvalidInputError("a is wrong.", [FieldError("a", "is wrong")])
    assert error.problem()["errors"] == [{"field": "a", "message": "is wrong"}]
    assert str(error) == "invalid_input"
