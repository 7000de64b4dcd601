"""The shared part of the two report tools: a public shop, one durable row, and always the same status (A9, Q5)."""

from typing import Final, Literal

from pydantic import Field

from service.errors import BackendUnavailableError, ShopNotFoundError, TokenRequiredError
from service.reports.protocol import Report, ReportKind, ReportsUnavailable
from service.tools.request import ShopRequest
from service.tools.tool import Effects, ToolContext, ToolResponse

# A repeated report appends nothing more.
APPENDS: Final = Effects(read_only=False, repeatable=True)
RECEIPT: Final = "wird gemeldet, Pruefung laeuft"


class ReportResponse(ToolResponse):
    """The receipt of a report; no verdict."""

    status: Literal["wird gemeldet, Pruefung laeuft"] = Field(
        description="German for: is being reported, the check is under way. Always this, never a verdict."
    )


async def append(
    request: ShopRequest, kind: ReportKind, reason: str, context: ToolContext, code: str | None = None
) -> ReportResponse:
    """Append a report about a public shop.

    Raises:
        ShopNotFoundError: there is no such public shop.
        BackendUnavailableError: it is not certain that the report was stored; sending it again is safe.
    """
    if context.source is None:
        # The dispatcher has refused such calls; a report without a source must not exist.
        raise TokenRequiredError
    lookup = request.lookup
    shop = None if lookup is None else await context.search.shop(lookup)
    if shop is None:
        raise ShopNotFoundError(request.reference)
    try:
        await context.reports.append(Report(context.source, kind, shop.id, code, reason, context.now))
    except ReportsUnavailable as error:
        raise BackendUnavailableError(
            "Reports can't be taken just now; try again in 1 second. Sending the same report twice is safe."
        ) from error
    return ReportResponse(status=RECEIPT)
