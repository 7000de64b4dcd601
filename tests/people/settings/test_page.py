"""docs/settings.md is what the code says, and the code says enough."""

import re
from itertools import chain
from typing import Final

from shop_directory.settings.reading import installed_sides, known_variables, settings_page
from tests.support.real.sources import REPOSITORY

PAGE: Final = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_code_says() -> None:
    assert settings_page(installed_sides()) == PAGE, "write it again by `make settings`"


def test_every_variable_is_on_the_page_in_one_row() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"SHOP_DIRECTORY_\w+", row.split(" | ")[0])]
    known = set(chain.from_iterable(known_variables(kind) for kind in installed_sides().values()))
    assert sorted(named) == sorted(known)


def test_every_setting_says_what_it_must_be_and_what_it_is_for() -> None:
    silent = [
        f"{side}.{name}"
        for side, kind in installed_sides().items()
        for name, field in kind.model_fields.items()
        if not field.description or not field.title or not field.title.endswith(".") or field.description.endswith(".")
    ]
    assert silent == []


def test_what_both_sides_read_is_the_same_setting() -> None:
    service, indexer = (installed_sides()[side].model_fields for side in ("service", "indexer"))
    shared = service.keys() & indexer.keys()
    assert {"engine", "data_dir", "opensearch_urls", "opensearch_password", "index_prefix"} <= shared
    assert [name for name in shared if repr(service[name]) != repr(indexer[name])] == []
