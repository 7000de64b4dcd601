"""The tiers of a key press where the engine is in the process: as few searches as will do (M9)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from index_mappings.tiers import SuggestTier
from service.search.clauses import Clause
from service.search.engine import Hit, Press
from service.search.plan import Plan, filter_clauses, last_plan, loose_tiers, suggest_plan, word_tiers
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
    if none_but_loose(found) and (last := last_plan(press.forms, _filters(press))) is not None:
        found = search(last, press.limit)
    return tuple(found)


def none_but_loose(found: Sequence[Hit | Suggestion]) -> bool:
    """Whether two typing errors may be looked for: nothing is found, or only loose words are (M9)."""
    return not found or found[0].tier < SuggestTier.ONE_TYPO


def _by_plan(press: Press, search: Search) -> list[Suggestion]:
    forms = press.forms
    # Typing errors cost most and can only add to the end, so they are looked for last.
    later = partial(loose_tiers, forms) if forms.words else None
    plan = suggest_plan(forms, press.slugs(), _filters(press), later)
    return search(plan, press.limit)


def _by_texts(press: Press, typeahead: "Typeahead", search: Search) -> list[Suggestion]:
    forms, limit = press.forms, press.limit
    found = typeahead.best(forms, press.country, limit)
    several = len(forms.words) > 1
    if not several or (len(found) == limit and found[-1].tier > SuggestTier.WORDS_AND_CATEGORY):
        return found
    categories = [tier for tier in word_tiers(forms, press.slugs()) if tier[0] == SuggestTier.WORDS_AND_CATEGORY]
    if not categories:
        return found
    better = [one for one in found if one.tier > SuggestTier.WORDS_AND_CATEGORY]
    worse = found[len(better) :]
    # As many as are wanted, since the better ones may be among them.
    for more in (search(Plan("shops", tuple(categories), _filters(press)), limit), worse):
        known = {one.shop.id for one in better}
        better += [one for one in more if one.shop.id not in known]
    return better[:limit]


def _filters(press: Press) -> tuple[Clause, ...]:
    return filter_clauses(press.country, None)
