"""The everyday words of the shipped categories: complete, in the scripts of their languages, and without brands."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.text import fold, scripts_of
from indexer.catalogue.new_catalogue import CATEGORIES, CATEGORY_SETS, EVERYDAY_WORDS, category_records
from indexer.records.related import CategoryNamesRecord
from tests.golden.shop_categories import OPTIONAL_WORDS
from tests.support.sample import records

SHOPS: Final = CATEGORY_SETS / "shops"
WORDS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = tomllib.loads(
    (SHOPS / EVERYDAY_WORDS).read_text(encoding="utf-8")
)
LANGUAGES: Final = ("en", "de", "fr", "es", "it", "nl", "pl", "pt", "tr", "ja", "zh", "ko", "ru", "ar", "sv")
_FEWEST_WORDS: Final = 3
_MOST_CATEGORIES: Final = 5
_MOST_TYPED_WORDS: Final = 6  # the longest run of words that means a category (M5)
# The prefixes of Unicode's names of the letters of each language; all other languages have Latin ones.
_SCRIPTS: Final = {
    "ja": {"CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "LATIN"},
    "zh": {"CJK", "LATIN"},
    "ko": {"HANGUL", "LATIN"},
    "ru": {"CYRILLIC", "LATIN"},
    "ar": {"ARABIC"},
}
# Ordinary words that are also names of shops of the development data.
_ALSO_NAMES: Final = """
alliance aroma birthday boxer casa cat cd citroen disco drop funda game granit hering koło medicine noz nóż orange
orgánico outfit preloved roman rosal salt sanki sedal súper ticket top torba umbrella колесо
"""


def _each() -> Iterator[tuple[str, str, str]]:
    """Slug, language and word."""
    for slug, languages in WORDS.items():
        for language, words in languages.items():
            for word in words:
                yield slug, language, word


def test_every_category_has_words_in_every_language() -> None:
    assert list(WORDS) == [record["slug"] for record in records(SHOPS / CATEGORIES)]
    assert {tuple(languages) for languages in WORDS.values()} == {LANGUAGES}
    few = [(slug, tag) for slug, words in WORDS.items() for tag in LANGUAGES if len(words[tag]) < _FEWEST_WORDS]
    assert few == []


def test_no_word_is_twice_in_a_language_of_a_category_or_in_many_categories() -> None:
    counts = Counter((slug, language, fold(word)) for slug, language, word in _each())
    assert [key for key, count in counts.items() if count > 1] == []
    categories = Counter(word for word, _ in {(fold(word), slug) for slug, _, word in _each()})
    assert [word for word, count in categories.items() if count > _MOST_CATEGORIES] == []


def test_words_are_in_the_scripts_of_their_languages_and_short_enough_to_be_found() -> None:
    wrong = [
        (slug, language, word)
        for slug, language, word in _each()
        if not scripts_of("".join(filter(str.isalpha, word))) <= _SCRIPTS.get(language, {"LATIN"})
        or not 0 < len(fold(word).split()) <= _MOST_TYPED_WORDS
    ]
    assert wrong == []


def test_no_word_is_a_word_for_a_shop_or_only_joins_others() -> None:
    # `thé`, `lås` and `uñas` are no articles as typed; `su`, `av` and `linha` are goods in their own languages. A name
    # of nothing but such words is found by all of it (M5).
    wrong = {word for _, _, word in _each() if OPTIONAL_WORDS.issuperset(fold(word).split())}
    assert wrong == {"av", "linha", "lås", "op shop", "shopping", "su", "te", "thé", "té", "tè", "uñas"}


def _named(record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = CategoryNamesRecord.model_validate(record)
    return (*names.other_names, *names.stated_synonyms)


def test_records_have_the_words_as_synonyms_that_the_record_model_takes() -> None:
    written = {record["slug"]: record for record in category_records("shops")}
    for record in records(SHOPS / CATEGORIES):
        merged = written[record["slug"]]
        assert {**merged, "synonyms": None} == {**record, "synonyms": None}
        CategoryNamesRecord.model_validate(merged)
        for language, texts in record["synonyms"].items():
            assert merged["synonyms"][language][: len(texts)] == texts
        assert WORDS[record["slug"]].keys() <= {tag.partition("-")[0] for tag in merged["synonyms"]}
    found = {
        (slug, tag.partition("-")[0], fold(text)) for slug, record in written.items() for tag, text in _named(record)
    } | {(slug, "en", fold(record["name"])) for slug, record in written.items()}
    assert {(slug, language, fold(word)) for slug, language, word in _each()} <= found


def test_a_word_that_is_a_name_already_is_not_added() -> None:
    (shoes,) = (record for record in category_records("shops") if record["slug"] == "shoes")
    for language in LANGUAGES:
        texts = [text for tag, text in _named(shoes) if tag == language]
        added = {fold(word) for word in WORDS["shoes"][language]}
        counts = Counter(map(fold, texts))
        assert [word for word in added if counts[word] > 1] == [], language
    assert "shoes" not in map(fold, shoes["synonyms"]["en"])


@pytest.mark.dev_data
def test_no_word_is_the_name_of_a_shop(dev_data: Path) -> None:
    with (dev_data / "dev-shops.ndjson").open(encoding="utf-8") as lines:
        shops = [json.loads(line) for line in lines]
    names = {fold(name).replace(" ", "") for shop in shops for name in (shop["name"], *shop["aliases"])}
    folded = {fold(word) for _, _, word in _each()}
    also_names = set(fold(_ALSO_NAMES).split())
    assert {word for word in folded if word.replace(" ", "") in names} == also_names
