"""report_code: a report that a coupon code did not work as stated (A9).

report_issue shares the appending: a public shop, one durable row, and always the same status (Q5).
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from service.errors import BackendUnavailableError, ShopNotFoundError, TokenRequiredError
from service.reports.protocol import Report, ReportKind, ReportsUnavailable
from service.tools.get_shop import public_shop
from service.tools.request import CodeText, ShopRequest, one_of
from service.tools.tool import Example, TokenRule, Tool, ToolContext, ToolResponse

RECEIPT: Final = "wird gemeldet, Pruefung laeuft"
REASONS: Final = ("invalid", "mismatch", "item_restricted", "min_order_missing")

Reason = Annotated[str, *one_of(REASONS)]


class ReportResponse(ToolResponse):
    """The receipt of a report; no verdict."""

    status: Literal["wird gemeldet, Pruefung laeuft"] = Field(
        description='German for "is being reported, check in progress". Always this text, never a verdict.'
    )


async def append(
    request: ShopRequest, kind: ReportKind, reason: str, context: ToolContext, code: str | None = None
) -> ReportResponse:
    """Append a report about a public shop.

    BackendUnavailableError means that it is not certain that the report was stored; sending it again is safe.
    """
    if context.source is None:
        # The dispatcher has refused such calls; a report without a source must not exist.
        raise TokenRequiredError
    shop = await public_shop(request.reference, context)
    try:
        await context.reports.append(Report(context.source, kind, shop.id, code, reason, context.now))
    except ReportsUnavailable as error:
        raise BackendUnavailableError(
            "Reports can't be taken just now; try again in 1 second. Sending the same report twice is safe."
        ) from error
    return ReportResponse(status=RECEIPT)


class ReportCodeRequest(ShopRequest):
    """The shop, its code, and the problem."""

    code: CodeText = Field(description="The code as entered.", examples=["WELCOME10"])
    reason: Reason = Field(description="What was wrong.")


async def run(request: ReportCodeRequest, context: ToolContext) -> ReportResponse:
    """Append the report."""
    return await append(request, "code", request.reason, context, request.code)


REPORT_CODE = Tool(
    name="report_code",
    title="Report a coupon code",
    description=(
        "Report that a coupon code did not work as stated, after a person tried it: invalid (refused), mismatch (a "
        "different discount), item_restricted (not valid for the items in the cart) or min_order_missing (an "
        "unstated minimum order). This appends a report and queues a re-check. No data changes, and the answer is "
        "always the same status, never a verdict. A repeat within a day counts once. Needs an API token."
    ),
    request=ReportCodeRequest,
    response=ReportResponse,
    token=TokenRule.REQUIRED,
    read_only=False,
    run=run,
    errors=(ShopNotFoundError,),
    examples=(
        Example(
            "It was refused",
            {"shop_domain": "lumen-larch.internal", "code": "FREESHIP", "reason": "invalid"},
        ),
    ),
)
