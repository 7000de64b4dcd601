"""The categories of shops are what their program makes of its package, in many languages, by words that mean them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from index_mappings.text import words_of
from indexer.catalogue.new_catalogue import EVERYDAY_WORDS
from indexer.records.related import CategoryNamesRecord
from tests.golden.shop_categories import KINDS, OPTIONAL_WORDS, RECORDS, TARGET, Language, download, files, with_kinds
from tests.support.sample import SAMPLE, records

_FEWEST_LANGUAGES: Final = 12
LINES: Final = records(TARGET / RECORDS)


@pytest.mark.slow
def test_the_files_are_what_the_program_makes_of_the_package(tmp_path: Path) -> None:
    made = files(download(tmp_path))
    assert {name: (TARGET / name).read_text(encoding="utf-8") for name in made} == made, "renew by `make categories`"
    assert sorted([*made, EVERYDAY_WORDS]) == sorted(path.name for path in TARGET.iterdir())


def test_each_kind_is_a_valid_record_with_names_in_many_languages() -> None:
    assert {line["slug"]: line["name"] for line in LINES} == KINDS
    assert len(LINES) >= 130
    for line in LINES:
        CategoryNamesRecord.model_validate(line)
    assert [line["slug"] for line in LINES if len(line["names"]) < _FEWEST_LANGUAGES] == []


def test_the_sample_has_the_lines_of_the_set_for_the_kinds_that_it_has() -> None:
    lines = (SAMPLE / RECORDS).read_text(encoding="utf-8")
    assert with_kinds(lines) == lines
    assert sum(len(json.loads(line)["names"]) >= _FEWEST_LANGUAGES for line in lines.splitlines()) >= 5


def test_no_name_is_a_word_for_a_shop_or_a_service() -> None:
    texts = [(tag, text) for line in LINES for tag, text in _texts(line)]
    assert [text for _, text in texts if OPTIONAL_WORDS.issuperset(words_of(text))] == []
    services = {tag: Language(tag).services for tag, _ in texts}
    assert [text for tag, text in texts if any(part in "".join(words_of(text)) for part in services[tag])] == []


def _texts(line: Mapping[str, Any]) -> list[tuple[str, str]]:
    synonyms = [(tag, text) for tag, texts in line["synonyms"].items() for text in texts]
    return [("en", line["name"]), *line["names"].items(), *synonyms]
