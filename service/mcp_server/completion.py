"""Completion of an argument while a person types it: shops as on /suggest, categories, countries.

It counts as a suggest request. If the index can't be searched, the answer is an error and never an empty completion
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
from service.calls.dispatch import Dispatcher, already_read
from service.errors import FieldError, ServiceError
from service.limits.policy import Bucket
from service.mcp_server.handling import Call, Context, OwnError, RequestRunner, result_meta, set_outcome
from service.mcp_server.messages import NOTHING_TO_COMPLETE, failed_method
from service.mcp_server.prompts import CompletionKind, argument_of
from service.mcp_server.resources import DOMAIN, SHOP
from service.search.protocol import SuggestQuery
from service.suggest.query import MAX_Q, MAX_SUGGESTIONS
from service.suggest.responder import SuggestResponder
from service.tools.fields import spaced
from service.tools.list_categories import LIST_CATEGORIES
from service.tools.request import invalid

# The protocol's bound.
MAX_VALUES: Final = 100

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_TYPED: Final = "argument.value"


class Completer:
    """Completes the arguments of the prompts and of the resource template."""

    def __init__(self, dispatcher: Dispatcher, responder: SuggestResponder, runner: RequestRunner) -> None:
        self._dispatcher = dispatcher
        self._responder = responder
        self._runner = runner

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        """Complete an argument.

        Raises:
            OwnError: there is no such argument, or the index can't be searched now.
        """
        kind = completion_kind(params)

        async def work(call: Call) -> CompleteResult:
            admitted = await self._runner.admit(call, Bucket.SUGGEST)
            if kind is None:
                raise OwnError(code=INVALID_PARAMS, message=NOTHING_TO_COMPLETE)
            try:
                result = await self._completed(kind, typed_text(params.argument.value), call, admitted)
            except ServiceError as error:
                set_outcome(error.code)
                raise OwnError.of(failed_method(error)) from None
            set_outcome("ok")
            return result

        return await self._runner.run(context, work)

    async def _completed(self, kind: CompletionKind, typed: str, call: Call, admitted: Admitted) -> CompleteResult:
        match kind:
            case CompletionKind.SHOPS:
                return await self._shops(typed, call)
            case CompletionKind.CATEGORIES:
                return await self._categories(typed, call, admitted)
            case CompletionKind.COUNTRIES:
                prefix = typed.strip().upper()
                codes = sorted(code for code in COUNTRY_CODES if code.startswith(prefix))
                return CompleteResult(completion=_completion_of(codes), _meta=result_meta(call.caller.request_id, None))
            case CompletionKind.NOTHING:
                return CompleteResult(completion=_completion_of(()), _meta=result_meta(call.caller.request_id, None))

    async def _shops(self, typed: str, call: Call) -> CompleteResult:
        # One more than is shown, to see whether there are more; as on /suggest, they are not counted.
        answered = await self._responder.suggest(
            SuggestQuery.of(typed, None, MAX_SUGGESTIONS + 1), call.caller.request_id
        )
        if isinstance(answered.result, ServiceError):
            raise answered.result
        domains = [suggestion.shop.domain for suggestion in answered.result.shops]
        completion = Completion(values=domains[:MAX_SUGGESTIONS], has_more=len(domains) > MAX_SUGGESTIONS)
        return CompleteResult(completion=completion, _meta=result_meta(call.caller.request_id, answered.stamp))

    async def _categories(self, typed: str, call: Call, admitted: Admitted) -> CompleteResult:
        outcome = await self._dispatcher.call(LIST_CATEGORIES.name, already_read({}), call.caller, admitted)
        if outcome.error is not None:
            raise outcome.error
        prefix = "" if is_blank(typed) else fold(typed)
        slugs = [
            category["slug"]
            for category in outcome.document["results"]
            if has_word_prefix(prefix, (category["category"], category["slug"]))
        ]
        return CompleteResult(completion=_completion_of(slugs), _meta=result_meta(outcome.request_id, outcome.stamp))


def completion_kind(params: CompleteRequestParams) -> CompletionKind | None:
    """What an argument is completed to; None if there is no such argument."""
    ref, name = params.ref, params.argument.name
    if isinstance(ref, PromptReference):
        argument = argument_of(ref.name, name)
        return None if argument is None else argument.completes
    return CompletionKind.SHOPS if (ref.uri, name) == (SHOP.uri_template, DOMAIN) else None


def typed_text(value: str) -> str:
    """The typed text as /suggest accepts it.

    Raises:
        InvalidInputError: it is too long or holds a control character.
    """
    typed = spaced(value)
    if len(typed) > MAX_Q:
        raise invalid((FieldError(_TYPED, f"may have at most {MAX_Q} characters"),))
    if _CONTROL.search(typed):
        raise invalid((FieldError(_TYPED, "holds a control character"),))
    return typed


def has_word_prefix(prefix: str, names: Iterable[str]) -> bool:
    """Whether a folded prefix starts at the beginning of a word of one of the names."""
    return any(f" {prefix}" in f" {fold(name)}" for name in names)


def _completion_of(values: Sequence[str]) -> Completion:
    return Completion(values=list(values[:MAX_VALUES]), total=len(values), has_more=len(values) > MAX_VALUES)
