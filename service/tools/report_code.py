"""report_code: a report that a coupon code did not work as stated (A9)."""

from typing import Annotated, Final

from pydantic import Field, PlainValidator, WithJsonSchema

from service.tools.fields import CodeText, choice
from service.tools.report import APPENDS, ReportResponse, append
from service.tools.request import ShopRequest
from service.tools.tool import Example, TokenRule, Tool, ToolContext

DESCRIPTION = (
    "Report that a coupon code did not work as stated, after a person tried it: invalid (refused), mismatch (another "
    "discount than stated), item_restricted (not for what was in the cart) or min_order_missing (an order minimum that"
    " was not stated). It appends a report and queues a re-check; no delivered data change, and the answer is always "
    "the same status, never a verdict. The same report within a day counts once. Requires an API token."
)
REASONS: Final = ("invalid", "mismatch", "item_restricted", "min_order_missing")

Reason = Annotated[str, PlainValidator(choice(REASONS)), WithJsonSchema({"type": "string", "enum": list(REASONS)})]


class ReportCodeRequest(ShopRequest):
    """Which code of which shop, and what was wrong."""

    code: CodeText = Field(description="The code as it was tried.", examples=["WELCOME10"])
    reason: Reason = Field(description="What was wrong.")


async def run(request: ReportCodeRequest, context: ToolContext) -> ReportResponse:
    """Append the report."""
    return await append(request, "code", request.reason, context, request.code)


REPORT_CODE = Tool(
    name="report_code",
    title="Report a coupon code",
    description=DESCRIPTION,
    request=ReportCodeRequest,
    response=ReportResponse,
    token=TokenRule.REQUIRED,
    effects=APPENDS,
    run=run,
    examples=(
        Example(
            "It was refused",
            {"shop_domain": "lumen-larch.internal", "code": "FREESHIP", "reason": "invalid"},
        ),
    ),
)
