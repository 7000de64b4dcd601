"""The tiers of a key press where the engine is in the process: as few searches as will do (M9)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from index_mappings.tiers import SuggestTier
from service.search.clauses import Clause
from service.search.engine import Hit, Press
from service.search.plan import Plan, category_tiers, filter_clauses, last_plan, loose_tiers, suggest_plan
from service.search.protocol import Suggestion

if TYPE_CHECKING:
    from service.search.typeahead import Typeahead

# Finds the best shops of a plan in the index, at most so many.
Search = Callable[[Plan, int], list[Suggestion]]


def pressed(press: Press, typeahead: "Typeahead | None", search: Search) -> tuple[Suggestion, ...]:
    """The best shops.

    Args:
        press: what is asked for.
        typeahead: of the stamp; None where the index has to be asked for everything.
        search: asks the index.
    """
    if typeahead is None or not press.forms.words:
        found = _by_plan(press, search)
    else:
        found = _by_texts(press, typeahead, search)
    if two_errors_may_count(found) and (last := last_plan(press.forms, _filters(press))) is not None:
        found = search(last, press.limit)
    return tuple(found)


def two_errors_may_count(found: Sequence[Hit | Suggestion]) -> bool:
    """Whether two typing errors are to be looked for: nothing is found but in part (M9)."""
    return not found or found[0].tier < SuggestTier.ONE_TYPO


def _by_plan(press: Press, search: Search) -> list[Suggestion]:
    forms = press.forms
    # Typing errors cost most and can only add to the end, so they are looked for last.
    later = partial(loose_tiers, forms) if forms.words else None
    return search(suggest_plan(forms, press.slugs(), press.country, later), press.limit)


def _by_texts(press: Press, typeahead: "Typeahead", search: Search) -> list[Suggestion]:
    forms, limit = press.forms, press.limit
    found = typeahead.best(forms, press.country, limit)
    if len(forms.words) < 2:  # noqa: PLR2004 - only several words may say a category as well
        return found
    worst = found[-1].tier if len(found) == limit else SuggestTier.HALF_OF_WORDS
    if worst > SuggestTier.WORDS:
        return found
    tiers = tuple(tier for tier in category_tiers(forms, press.slugs()) if tier[0] >= worst)
    # As many as are wanted, since the better ones may be among them.
    return _merged(found, search(Plan("shops", tiers, _filters(press)), limit))[:limit] if tiers else found


def _merged(some: Sequence[Suggestion], others: Sequence[Suggestion]) -> list[Suggestion]:
    """Both in order, each shop once, with its better tier (M2)."""
    best: dict[str, Suggestion] = {}
    for one in (*some, *others):
        known = best.get(one.shop.id)
        if known is None or known.tier < one.tier:
            best[one.shop.id] = one
    return sorted(best.values(), key=Suggestion.order)


def _filters(press: Press) -> tuple[Clause, ...]:
    return filter_clauses(press.country, None)
