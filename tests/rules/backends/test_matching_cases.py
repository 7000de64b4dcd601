"""What people of many languages type, each case written by hand: the shop that they mean comes first."""

from pathlib import Path

import pytest

from tests.rules.backends.asking import find, suggest
from tests.rules.backends.conftest import Directory
from tests.rules.backends.matching_cases import CasesError, read_cases


@pytest.mark.rule("X1", "X2", "X2.articles", "X2.unspaced", "X3", "M4", "M9")
async def test_the_expected_shop_is_first_in_a_search_and_among_suggestions(directory: Directory) -> None:
    shops, cases = read_cases()
    world = await directory(shops)
    wrong = []
    for case in cases:
        found = (await find(world, case.q, country=case.country)).shops
        suggested = (await suggest(world, case.q, country=case.country)).shops
        answered = (found[0].id if found else "", suggested[0].shop.id if suggested else "")
        if answered != (case.find_shop, case.suggest):
            wrong.append(f"[{case.language}] {case.q!r}: {answered}, expected {(case.find_shop, case.suggest)}")
    assert wrong == []


def test_there_are_cases_of_many_languages() -> None:
    cases = read_cases().cases
    assert len(cases) >= 120
    assert len({case.language for case in cases}) >= 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[greek", "cases.toml is no TOML"),
        ('[greek]\nshops = [{id = "a", name = "A"}]', "[greek] cases: Field required"),
        ('[greek]\nshops = [{id = "a"}]\ncases = [{q = "a", first = "a"}]', "[greek] shops.1.name: Field required"),
        ('[greek]\nshops = [{id = "a", name = "A"}]\ncases = [{q = "a", frist = "a"}]', "[greek] cases.1.frist: Extra"),
        (
            '[greek]\nshops = [{id = "a", name = "A"}]\ncases = [{q = "a", suggest = "a"}]',
            "[greek] cases.1: Value error",
        ),
        ('[greek]\nshops = [{id = "a", name = "A"}]\ncases = [{q = "a", first = "b"}]', "[greek] 'a' expects a shop"),
        (
            '[greek]\nshops = [{id = "a", name = "A"}, {id = "a", name = "B"}]\ncases = [{q = "a", first = "a"}]',
            "two shops have one id: a",
        ),
        (
            '[greek]\nshops = [{id = "a", name = "A"}]\ncases = [{q = "a", first = "a"}, {q = "a", first = ""}]',
            "two cases have one q and country: 'a'",
        ),
    ],
)
def test_a_mistake_in_the_file_is_reported_by_its_section_and_row(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CasesError) as raised:
        read_cases(file)
    assert str(raised.value).startswith(message)
