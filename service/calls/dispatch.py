"""One call of a tool, the same over each transport: look up the tool, admit the call, read and validate the input, run.

R5 fixes this order of checks, so the arguments may be passed as unread bytes. Of a fault, the answer has only the
request id (E5).
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

import orjson

from index_mappings.generations import Stamp
from index_mappings.strict_json import NotStrictJsonError, strict_loads
from service.calls.admission import Admission, Admitted
from service.calls.live_data import LiveData, LiveResult
from service.errors import (
    BackendUnavailableError,
    InternalError,
    InvalidInputError,
    QuotaExceededError,
    ServiceError,
)
from service.insights.counting import InsightCounter
from service.limits.policy import Bucket, QuotaHeaders, address_group
from service.reports.protocol import ReportStore
from service.runtime.caller import Caller, Channel
from service.tools.find_shop import FindShopRequest
from service.tools.request import validated
from service.tools.tool import TokenRule, Tool, ToolAnswer, ToolContext
from shop_directory.runtime.request_context import (
    bind_request,
    current,
    new_request_context,
    remaining_seconds,
)
from shop_directory.search.protocol import Snapshot

# The arguments, the JSON that holds them, or the error for those that can't be read.
Arguments = dict[str, Any] | bytes | ServiceError

_NOT_ADMITTED: Final = "The call could not be admitted in time; try again in 1 second."
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call: the answer or the problem object, and its encoded form.

    The stamp is that of the data that it comes from, None when no data was used (C2). `headers` are of the quota,
    without the headers of an error.
    """

    request_id: str
    document: dict[str, Any]
    body: bytes
    stamp: Stamp | None
    error: ServiceError | None
    headers: QuotaHeaders

    @property
    def quota(self) -> QuotaHeaders:
        """The headers of the quota; a refusal by the quota has its own."""
        return self.headers if self.error is None else (*self.headers, *self.error.headers)


AdmissionResult = Admitted | ServiceError


class Dispatcher:
    """Runs the tools of a registry on live data."""

    def __init__(
        self,
        registry: Sequence[Tool[Any]],
        live: LiveData,
        admission: Admission,
        reports: ReportStore,
        *,
        timeout: float,
        most_coupons: Mapping[Channel, int | None] = MappingProxyType({}),
        token_required: bool = False,
        insights: InsightCounter | None = None,
    ) -> None:
        """A call whose transport sets no deadline may take `timeout` seconds.

        `most_coupons` bounds the coupons in a listing of all shops by transport; None is unlimited (A6). With
        `token_required` every call needs a token, whatever its tool.
        """
        self.tools = tuple(registry)
        self._by_name = {tool.name: tool for tool in registry}
        self._live = live
        self._admission = admission
        self._reports = reports
        self._most_coupons = most_coupons
        self._token_required = token_required
        self._insights = insights
        self.timeout = timeout

    def has_tool(self, name: str) -> bool:
        """Whether the registry has a tool of this name."""
        return name in self._by_name

    async def admit(self, name: str | None, caller: Caller, *, otherwise: Bucket = Bucket.READS) -> AdmissionResult:
        """Apply the token rule and the quota of a tool.

        A request that calls no tool (no name, or an unknown one) is counted in the bucket `otherwise`. An error that
        refuses the call is returned; nothing is raised but cancellation.
        """
        tool = self._by_name.get(name) if name is not None else None
        if tool is not None and (request := current()) is not None:
            # Set before admission, so that refused calls are logged with their tool, too.
            request.tool = tool.name
        bucket = otherwise if tool is None else _bucket(tool)
        required = self._token_required or (tool is not None and tool.token is TokenRule.REQUIRED)
        try:
            if caller.token is None and not required:
                headers = self._admission.try_admit(caller.address, bucket)
                if headers is not None:
                    return Admitted(None, headers)
            async with asyncio.timeout(remaining_seconds(self.timeout)):
                return await self._admission.admit(caller, bucket, token_required=required)
        except TimeoutError:
            return BackendUnavailableError(_NOT_ADMITTED)
        except ServiceError as error:
            return error
        except Exception:  # noqa: BLE001 - an unforeseen fault of a store becomes an answer (E5)
            _LOG.exception("request=%s the call could not be admitted", caller.request_id)
            return InternalError()

    async def call(
        self, name: str, arguments: Arguments, caller: Caller, admit: AdmissionResult | None = None
    ) -> Outcome:
        """Call a tool of the registry; nothing is raised but cancellation.

        The arguments are read after the admission, which `admit` holds if the transport has asked for it already.
        """
        if (request := current()) is None:
            with bind_request(new_request_context(caller.request_id, self.timeout)):
                return await self.call(name, arguments, caller, admit)
        if admit is None:
            admit = await self.admit(name, caller)
        request.caller = address_group(caller.address)
        if isinstance(admit, Admitted):
            outcome = await self._run(self._by_name[name], arguments, caller, admit)
        else:
            # The error has the headers of the quota.
            outcome = _outcome(caller, LiveResult(None, admit), ())
        request.outcome = outcome.error.code if outcome.error else "ok"
        return outcome

    async def _run(self, tool: Tool[Any], arguments: Arguments, caller: Caller, admitted: Admitted) -> Outcome:
        headers = admitted.headers
        try:
            request = validated(tool.request, _read(arguments))
            if tool.extra_cost is not None and (units := tool.extra_cost(request)):
                headers = await self._charge(tool, units, caller, admitted)
            now = datetime.now(UTC)

            async def work(snapshot: Snapshot) -> ToolAnswer:
                context = ToolContext(
                    search=snapshot,
                    now=now,
                    channel=caller.channel.value,
                    country=caller.country,
                    most_coupons=self._most_coupons.get(caller.channel),
                    reports=self._reports,
                    source=None if admitted.token is None else admitted.token.id,
                )
                return await tool.run(request, context)

            result = await self._live.run(work, caller.request_id)
            if self._insights is not None and isinstance(request, FindShopRequest):
                self._note(request, result, caller)
        except QuotaExceededError as error:
            # The error has newer headers of the quota.
            return _outcome(caller, LiveResult(None, error), ())
        except ServiceError as error:
            result = LiveResult(None, error)
        except Exception:  # noqa: BLE001 - an unforeseen fault of a tool becomes an answer (E5)
            _LOG.exception("request=%s tool=%s failed", caller.request_id, tool.name)
            result = LiveResult(None, InternalError())
        return _outcome(caller, result, headers)

    def _note(self, request: FindShopRequest, result: LiveResult[ToolAnswer], caller: Caller) -> None:
        """Count a search that was answered; later pages of it are the same search."""
        answer = result.result
        if (
            self._insights is not None
            and not isinstance(answer, ServiceError)
            and not (request.offset or request.cursor)
        ):
            self._insights.found(caller.address, request.query, nothing=not to_wire(answer)["total_count"])

    async def _charge(self, tool: Tool[Any], units: int, caller: Caller, admitted: Admitted) -> QuotaHeaders:
        """Count the units that a call costs beyond the one of its admission."""
        bucket = _bucket(tool)
        try:
            async with asyncio.timeout(remaining_seconds(self.timeout)):
                return await self._admission.charge(caller, admitted.token, bucket, units)
        except TimeoutError:
            raise BackendUnavailableError(_NOT_ADMITTED) from None


def decode_object(raw: bytes) -> dict[str, Any]:
    """Parse the arguments of a call, which must be a JSON object; the error does not repeat the input."""
    if not raw.strip():
        raise InvalidInputError("The body is empty: send a JSON object, {} at least.")
    try:
        value = strict_loads(raw)
    except NotStrictJsonError as error:
        raise InvalidInputError(f"The body {error}.") from None
    if not isinstance(value, dict):
        raise InvalidInputError("The body must be a JSON object.")
    return value


def to_wire(answer: ToolAnswer) -> dict[str, Any]:
    """The object that every transport sends."""
    return answer if isinstance(answer, dict) else answer.model_dump(by_alias=True)


def _read(arguments: Arguments) -> dict[str, Any]:
    if isinstance(arguments, ServiceError):
        raise arguments
    return decode_object(arguments) if isinstance(arguments, bytes) else arguments


def _bucket(tool: Tool[Any]) -> Bucket:
    return Bucket.READS if tool.read_only else Bucket.REPORTS


def _outcome(caller: Caller, live: LiveResult[ToolAnswer], headers: QuotaHeaders) -> Outcome:
    if isinstance(live.result, ServiceError):
        document, error = live.result.problem(), live.result
    else:
        document, error = to_wire(live.result), None
    return Outcome(caller.request_id, document, orjson.dumps(document), live.stamp, error, headers)
