"""SECURITY.md says what is so: its tests exist, its settings are settings, and its bounds are the code's."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from service.settings.service import Settings
from shop_directory.settings.reading import PREFIX
from tests.rules.proof import marks_of_tree

REPOSITORY: Final = Path(__file__).parents[3]
PAGE: Final = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
TESTS: Final = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
RISKS: Final = re.split(r"^### (API\d+) ", PAGE.split("\n## Bounds")[0], flags=re.MULTILINE)[1:]
BOUNDS: Final = re.findall(r"^\| [^|]+ \| ([\d,.]+)(?: bytes)? \| `([\w.]+)` \|$", PAGE, flags=re.MULTILINE)


def test_each_test_that_is_named_exists_and_can_fail() -> None:
    tests = [test for test in marks_of_tree(REPOSITORY / "tests").tests if test.asserts]
    able = {(test.location.split(":")[0], test.location.split(" ")[-1]) for test in tests}
    assert [named for named in TESTS if named not in able] == []


def test_each_risk_of_the_list_is_answered_with_a_test() -> None:
    risks = dict(zip(RISKS[::2], RISKS[1::2], strict=True))
    assert list(risks) == [f"API{number}" for number in range(1, 11)]
    assert [risk for risk, text in risks.items() if "::test_" not in text] == []


def test_each_setting_that_is_named_is_one() -> None:
    named = {name.lower() for name in re.findall(rf"{PREFIX}([A-Z_]+)", PAGE)}
    assert named - set(Settings.model_fields) == set()


@pytest.mark.parametrize(("value", "name"), BOUNDS)
def test_each_bound_is_what_the_page_says(value: str, name: str) -> None:
    assert float(value.replace(",", "")) == _bound(name)


def test_every_row_of_the_bounds_is_checked() -> None:
    table = PAGE.split("\n## Bounds")[1].split("\n## ")[0]
    assert len(re.findall(r"^\| ", table, flags=re.MULTILINE)) == len(BOUNDS) + 1


def _bound(name: str) -> Any:  # noqa: ANN401 - a number
    if name.startswith(PREFIX):
        return Settings.model_fields[name.removeprefix(PREFIX).lower()].default
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)
