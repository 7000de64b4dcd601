"""report_issue: a report that the directory is wrong about a shop (A9)."""

from typing import Annotated, Any, Final

from pydantic import Field

from service.errors import FieldError, ShopNotFoundError
from service.tools.report_code import ReportResponse, append
from service.tools.request import ShopRequest, invalid, one_of
from service.tools.tool import Example, TokenRule, Tool, ToolContext

REASONS: Final = {
    "shop": ("unreachable", "no_longer_exists", "info_outdated", "wrong_category", "wrong_name_or_domain"),
    "fact": ("shipping_cost", "return_period", "payment_methods", "evidence_broken"),
}
ALL_REASONS: Final = tuple(reason for reasons in REASONS.values() for reason in reasons)

Subject = Annotated[str, *one_of(tuple(REASONS))]
Reason = Annotated[str, *one_of(ALL_REASONS)]


class ReportIssueRequest(ShopRequest):
    """What is wrong about which shop."""

    subject_type: Subject = Field(description="What is wrong.")
    reason: Reason = Field(description=f"For fact: {', '.join(REASONS['fact'])}. For shop: the others.")

    @classmethod
    def alternatives(cls) -> tuple[dict[str, Any], ...]:
        """Each subject has its own reasons."""
        return tuple(
            {"properties": {"subject_type": {"const": subject}, "reason": {"enum": list(reasons)}}}
            for subject, reasons in REASONS.items()
        )


async def run(request: ReportIssueRequest, context: ToolContext) -> ReportResponse:
    """Append the report if its subject has that reason."""
    allowed = REASONS[request.subject_type]
    if request.reason not in allowed:
        message = f"must be one of {', '.join(allowed)} for the subject_type {request.subject_type}"
        raise invalid((FieldError("reason", message),))
    is_shop = request.subject_type == "shop"
    return await append(request, "shop" if is_shop else "fact", request.reason, context)


REPORT_ISSUE = Tool(
    name="report_issue",
    title="Report wrong shop data",
    description=(
        "Report that the directory is wrong about a shop (subject_type shop) or about one of its facts, such as in "
        "get_shop_policies (subject_type fact); each has its own reasons. For a code that does not work, call "
        "report_code. No data changes, and the answer is never a verdict. Needs an API token."
    ),
    request=ReportIssueRequest,
    response=ReportResponse,
    token=TokenRule.REQUIRED,
    read_only=False,
    run=run,
    errors=(ShopNotFoundError,),
    examples=(
        Example(
            "A shop that is gone",
            {"subject_type": "shop", "shop_domain": "lumen-larch.internal", "reason": "no_longer_exists"},
        ),
    ),
)
