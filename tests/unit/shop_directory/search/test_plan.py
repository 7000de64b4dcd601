"""The plan of find_shop says what the decision's sentences say; which categories a word means (M3, M4, M5, M10)."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from index_mappings.category_forms import category_forms
from index_mappings.documents import CategoryEntry
from index_mappings.forms import query_forms, shop_forms
from index_mappings.tiers import FindTier
from service.tools.request import query_text
from shop_directory.search.plan import AllOf, AnyOf, Clause, Exact, Filters, Infix, NoneOf, Prefix, Word, find_plan
from shop_directory.search.shop_search import CATEGORY_CAP
from shop_directory.words.categories import CategoryTable
from shop_directory.words.query_words import find_forms
from tests.engines.typeahead.crowded import HAN, HANGUL
from tests.rules.backends.strategies import COUNTRIES, SLUGS, domains, names
from tests.support.reference.backend import ReferenceCategories

Fields = dict[str, tuple[str, ...]]


def meets(texts: Fields, clause: Clause) -> bool:
    match clause:
        case AllOf(parts):
            return all(meets(texts, part) for part in parts)
        case AnyOf(parts):
            return any(meets(texts, part) for part in parts)
        case NoneOf(parts):
            return not any(meets(texts, part) for part in parts)
        case Exact(field, values):
            return not set(values).isdisjoint(texts[field])
        case Prefix(field, start):
            return any(text.startswith(start) for text in texts[field])
        case Infix(field, part):
            return any(part in text for text in texts[field])
        case _:
            raise AssertionError(clause)


@st.composite
def _shops(draw: st.DrawFn) -> Fields:
    forms = shop_forms(draw(names), draw(st.lists(names, max_size=2)), draw(domains))
    slugs = tuple(draw(st.lists(st.sampled_from(SLUGS), min_size=1, max_size=2)))
    countries = tuple(draw(st.lists(st.sampled_from(COUNTRIES), max_size=2)))
    other_keys = tuple({*forms.keys}.difference(forms.full))
    return {**asdict(forms), "other_keys": other_keys, "categories": slugs, "primary": slugs[:1], "markets": countries}


@st.composite
def _words(draw: st.DrawFn, texts: Sequence[str]) -> list[Word]:
    few = st.lists(st.sampled_from(SLUGS), max_size=2).map(tuple)
    found = []
    for text in dict.fromkeys(texts):
        slugs = draw(few)
        found.append(
            Word(
                text,
                slugs,
                counts=bool(slugs) and draw(st.booleans()),
                is_category=bool(slugs) and draw(st.booleans()),
                countries=draw(st.lists(st.sampled_from(COUNTRIES), max_size=1).map(tuple)),
                hosts=draw(st.lists(domains, max_size=1).map(tuple)),
                is_inner_letter=draw(st.booleans()),
            )
        )
    return found


@pytest.mark.rule("M3", "M4")
@given(_shops(), st.one_of(names, st.sampled_from(["uk de", "a uk", "co"])), st.integers(1, 12), st.data())
def test_what_matches_is_exactly_what_has_a_tier(shop: Fields, text: str, length: int, data: st.DataObject) -> None:
    own = [*shop["words"], *shop["labels"], *(infix[1:] for infix in shop["infixes"]), "uk", text[:length]]
    query = query_forms(" ".join(data.draw(st.lists(st.sampled_from(own), min_size=1, max_size=4))))
    words = data.draw(_words(query.words))
    if data.draw(st.booleans()):  # without any category there are other tiers
        words = [replace(word, slugs=(), counts=False, is_category=False) for word in words]
    readings = [words, words[1:]] if len(words) > 1 and data.draw(st.booleans()) else [words]
    plan = find_plan(query.texts, readings)
    assert meets(shop, plan.matching) is any(meets(shop, clause) for _, clause in plan.tiers)


@pytest.mark.rule("M3", "M4")
@given(_shops(), names, st.lists(st.integers(1, 8), min_size=1, max_size=4), st.data())
def test_words_that_others_begin_with_are_needed_as_much_as_these(
    shop: Fields, text: str, lengths: list[int], data: st.DataObject
) -> None:
    unlabelled = {**shop, "labels": (), "markets": ()}
    parts = [word[:length] for word in query_forms(text).words for length in lengths]
    assume(parts)
    words = data.draw(_words(parts))
    together = dict(find_plan(("all of them",), [words]).tiers)[FindTier.PARTS]
    alone = [dict(find_plan(("one of them",), [[word]]).tiers)[FindTier.PARTS] for word in words]
    assert meets(unlabelled, together) is all(meets(unlabelled, clause) for clause in alone)


@pytest.mark.rule("M3")
@pytest.mark.parametrize(
    ("begun", "longer"),
    [
        (Word("aa"), Word("aaaa")),  # which may be a part of a name, and `aa` may not
        (Word("aaaa"), Word("aaaab", ("books",))),
        (Word("aaaa", ("books",), is_category=True), Word("aaaab")),
        (Word("aaaa"), Word("aaaab", hosts=("aaaab.de",))),
        (Word("aaaa", is_nameless=True), Word("aaaab")),
        (Word("aaaa"), Word("aaaab", is_nameless=True)),
    ],
)
def test_a_word_is_looked_up_if_what_a_longer_one_has_need_not_be_evidence_of_it(begun: Word, longer: Word) -> None:
    parts = dict(find_plan(("both",), [[begun, longer]]).tiers)[FindTier.PARTS]
    assert isinstance(parts, AllOf)
    assert len([clause for clause in parts.clauses if isinstance(clause, AnyOf)]) == 2


@pytest.mark.rule("M8")
def test_words_that_begin_one_another_are_looked_up_once() -> None:
    words = [Word("a" * length) for length in range(4, 19)]
    parts = dict(find_plan(("all of them",), [words]).tiers)[FindTier.PARTS]
    assert isinstance(parts, AllOf)
    # Others are looked up only where a longer one is a label.
    needed = [clause for clause in parts.clauses if isinstance(clause, AnyOf)]
    assert needed == [AnyOf((Infix("infixes", "a" * 18), Exact("labels", ("a" * 18,))))]


def _leaves(clause: Clause) -> int:
    """How many conditions on a field an engine evaluates for a clause at most."""
    return sum(map(_leaves, clause.clauses)) if isinstance(clause, AllOf | AnyOf | NoneOf) else 1


@pytest.mark.rule("M8", "M5")
@pytest.mark.parametrize("letters", ["abcdefghijkl", HAN, HANGUL])
@pytest.mark.parametrize(("words", "length", "most"), [(1, 200, 7), (2, 99, 41), (12, 15, 211), (12, 1, 211)], ids=str)
def test_a_plan_grows_with_the_words_of_a_query_and_not_with_their_letters(
    letters: str, words: int, length: int, most: int
) -> None:
    text = " ".join((letters[start:] + letters * 17)[:length] for start in range(words))
    query = query_forms(query_text(text))
    found = [
        Word(word, tuple(f"{word[:1]}-{number}" for number in range(CATEGORY_CAP)), counts=True)
        for word in dict.fromkeys(query.words)
    ]
    plan = find_plan(query.texts, [found], Filters(("DE",), ("books",)))
    assert sum(_leaves(clause) for _, clause in plan.tiers) <= most
    assert _leaves(plan.matching) <= most
    assert len(plan.filters) == 2


_TEXTS = st.sampled_from((
    "book", "books", "bo", "24h", "garden tools", "garden", "gardena", "Gärten", "緑 茶", "x", "bookshop", "gardens",
    "the", "Nachtbuch",
))  # fmt: skip
# Words that are near to each other, of few characters, so that errors and swaps meet often.
_NEAR = st.text("abcd", min_size=1, max_size=7)


def _entry(
    slug: str, name: str, count: int, other_names: list[str], synonyms: Sequence[tuple[str, str]] = ()
) -> CategoryEntry:
    forms = category_forms(slug, name, [("de", other) for other in other_names], synonyms)
    return CategoryEntry(slug, name, count, forms.words, forms.names)


categories = st.lists(
    st.builds(
        _entry,
        slug=_TEXTS.map(lambda text: text.replace(" ", "-")),
        name=_TEXTS,
        count=st.integers(1, 3),
        other_names=st.lists(_TEXTS, max_size=2),
    ),
    max_size=8,
    unique_by=lambda entry: entry.slug,
)
near_categories = st.lists(
    st.builds(_entry, slug=_NEAR, name=_NEAR, count=st.integers(1, 3), other_names=st.lists(_NEAR, max_size=3)),
    max_size=8,
    unique_by=lambda entry: entry.slug,
)


@pytest.mark.rule("M5", "I24")
@given(categories, st.lists(_TEXTS, max_size=4).map(" ".join), st.integers(1, 3), st.sets(_TEXTS, max_size=3))
def test_words_resolve_by_whole_names_by_their_stems_and_else_by_beginnings(
    known: list[CategoryEntry], typed: str, cap: int, filtered: set[str]
) -> None:
    words = find_forms(typed).words
    found = CategoryTable(known).resolve(words, cap, filtered)
    expected = ReferenceCategories(known).resolve(words, cap, filtered)
    assert found.truncated == expected.truncated
    assert {
        word: (set(meaning.slugs), bool(meaning.slugs) and meaning.level) for word, meaning in found.words.items()
    } == {word: (set(meaning.slugs), bool(meaning.slugs) and meaning.level) for word, meaning in expected.words.items()}


@pytest.mark.rule("M10")
@given(near_categories, st.text("abcd", min_size=4, max_size=8))
@example([_entry("a", "dcba", 1, [])], "dcbab")
@example([_entry("a", "abcd", 1, [])], "babcd")
@example([_entry("abcde", "abcde", 1, [])], "bacde")
def test_one_typing_error_is_forgiven_wherever_it_is(known: list[CategoryEntry], typed: str) -> None:
    query = query_forms(typed)
    assert CategoryTable(known).suggested(query, 20) == ReferenceCategories(known).suggested(query, 20)


# Words of which parts are typed, some of them table words, some nearly alike, of several scripts and with marks.
_TYPED = (
    "books", "book", "garden tools", "gardens", "tool", "thé", "the", "shop", "store", "Bücher", "buch", "c", "a", "ca",
    "cars", "card", "mobile", "phones", "Läden", "緑茶", "茶", "店", "버섯", "giyim", "for", "t", "toy", "toys", "new",
)  # fmt: skip
_NAME = st.lists(st.sampled_from(_TYPED), min_size=1, max_size=3).map(" ".join)
typed_categories = st.lists(
    st.builds(
        _entry,
        slug=_NAME.map(lambda text: text.replace(" ", "-")),
        name=_NAME,
        count=st.integers(1, 3),
        other_names=st.lists(_NAME, max_size=2),
        synonyms=st.lists(st.tuples(st.sampled_from(("en", "de", "fr", "tr", "zh")), _NAME), max_size=3),
    ),
    max_size=6,
    unique_by=lambda entry: entry.slug,
)
_CUT = st.tuples(_NAME, st.integers(0, 3)).map(lambda typed: typed[0][: max(1, len(typed[0]) - typed[1])])


@pytest.mark.rule("M10")
@settings(max_examples=400, deadline=None)
@given(typed_categories, st.lists(_CUT, min_size=1, max_size=3).map(" ".join), st.integers(1, 6))
def test_a_query_that_is_being_typed_finds_categories_as_the_rules_say(
    known: list[CategoryEntry], typed: str, limit: int
) -> None:
    query = query_forms(typed, cut=64)
    assert CategoryTable(known).suggested(query, limit) == ReferenceCategories(known).suggested(query, limit)
