"""Completion of what is typed into an argument: shops as on /suggest, categories, countries.

It is counted as a suggest request. Where the directory can't be asked the answer is an error, never an empty completion
(E3, M10).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from mcp.types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    PromptReference,
)

from index_mappings.countries import COUNTRY_CODES
from index_mappings.text import fold, is_blank
from service.calls.admission import Admitted
from service.calls.dispatch import Dispatcher
from service.errors import FieldError, ServiceError
from service.limits.policy import Bucket
from service.mcp_server.handling import Call, Context, OwnError, Working, note_outcome, told_of
from service.mcp_server.messages import NOTHING_TO_COMPLETE, failed_method
from service.mcp_server.prompts import Completes, argument_of
from service.mcp_server.resources import DOMAIN, SHOP
from service.search.protocol import SuggestQuery
from service.suggest.query import MAX_Q, MAX_SUGGESTIONS
from service.suggest.responder import SuggestResponder
from service.tools.fields import spaced
from service.tools.list_categories import LIST_CATEGORIES
from service.tools.request import invalid

# The protocol's bound.
MOST_VALUES: Final = 100

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_TYPED: Final = "argument.value"


class Completing:
    """Completes the arguments of the prompts and of the resource template."""

    def __init__(self, dispatcher: Dispatcher, responder: SuggestResponder, working: Working) -> None:
        self._dispatcher = dispatcher
        self._responder = responder
        self._working = working

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        """Complete an argument.

        Raises:
            OwnError: there is no such argument, or nothing can be told now.
        """
        completes = completed_by(params)

        async def work(call: Call) -> CompleteResult:
            admitted = await self._working.admitted(call, Bucket.SUGGEST)
            if completes is None:
                raise OwnError(code=INVALID_PARAMS, message=NOTHING_TO_COMPLETE)
            try:
                result = await self._completed(completes, typed_text(params.argument.value), call, admitted)
            except ServiceError as error:
                note_outcome(error.code)
                raise OwnError.of(failed_method(error)) from None
            note_outcome("ok")
            return result

        return await self._working.on(context, work)

    async def _completed(self, completes: Completes, typed: str, call: Call, admitted: Admitted) -> CompleteResult:
        match completes:
            case Completes.SHOPS:
                return await self._shops(typed, call)
            case Completes.CATEGORIES:
                return await self._categories(typed, call, admitted)
            case Completes.COUNTRIES:
                begun = typed.strip().upper()
                codes = sorted(code for code in COUNTRY_CODES if code.startswith(begun))
                return CompleteResult(completion=_all_of(codes), _meta=told_of(call.caller.request_id, None))
            case Completes.NOTHING:
                return CompleteResult(completion=_all_of(()), _meta=told_of(call.caller.request_id, None))

    async def _shops(self, typed: str, call: Call) -> CompleteResult:
        # One more than is shown tells whether there are more; how many in all, /suggest does not count either.
        answered = await self._responder.suggest(SuggestQuery(typed, None, MAX_SUGGESTIONS + 1), call.caller.request_id)
        if isinstance(answered.result, ServiceError):
            raise answered.result
        domains = [suggestion.shop.domain for suggestion in answered.result.shops]
        completion = Completion(values=domains[:MAX_SUGGESTIONS], has_more=len(domains) > MAX_SUGGESTIONS)
        return CompleteResult(completion=completion, _meta=told_of(call.caller.request_id, answered.stamp))

    async def _categories(self, typed: str, call: Call, admitted: Admitted) -> CompleteResult:
        async def arguments() -> object:
            return {}

        outcome = await self._dispatcher.call(LIST_CATEGORIES.name, arguments, call.caller, admitted)
        if outcome.error is not None:
            raise outcome.error
        begun = "" if is_blank(typed) else fold(typed)
        slugs = [
            category["slug"]
            for category in outcome.document["results"]
            if begins(begun, (category["category"], category["slug"]))
        ]
        return CompleteResult(completion=_all_of(slugs), _meta=told_of(outcome.request_id, outcome.stamp))


def completed_by(params: CompleteRequestParams) -> Completes | None:
    """What an argument is completed to; None where there is no such argument."""
    ref, name = params.ref, params.argument.name
    if isinstance(ref, PromptReference):
        argument = argument_of(ref.name, name)
        return None if argument is None else argument.completes
    return Completes.SHOPS if (ref.uri, name) == (SHOP.uri_template, DOMAIN) else None


def typed_text(value: str) -> str:
    """What was typed, as /suggest takes it.

    Raises:
        InvalidInputError: it is too long or holds a control character.
    """
    typed = spaced(value)
    if len(typed) > MAX_Q:
        raise invalid((FieldError(_TYPED, f"may have at most {MAX_Q} characters"),))
    if _CONTROL.search(typed):
        raise invalid((FieldError(_TYPED, "holds a control character"),))
    return typed


def begins(begun: str, names: Iterable[str]) -> bool:
    """Whether the names of a category, from one of their words on, begin with what was typed, folded."""
    return any(f" {fold(name)}".find(f" {begun}") >= 0 for name in names)


def _all_of(values: Sequence[str]) -> Completion:
    return Completion(values=list(values[:MOST_VALUES]), total=len(values), has_more=len(values) > MOST_VALUES)
