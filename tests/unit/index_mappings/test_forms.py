"""Folding, and the forms by which shops and categories are found and with which queries are compared (M5, M9)."""

import string
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_mappings.category_forms import category_forms, stemmed_language
from index_mappings.forms import QueryForms, ShopForms, labels_of, query_forms, shop_forms
from index_mappings.text import (
    fold,
    fold_by_script,
    has_word_character,
    is_blank,
    is_ideographic,
    joined,
    script_starts,
    words_of,
)
from tests.rules.backends.strategies import domains, names

FOLDED: Final = tomllib.loads(Path(__file__).with_name("folding.toml").read_text(encoding="utf-8"))


@pytest.mark.rule("X1", "X1.last_form")
@pytest.mark.parametrize(
    ("text", "folded"),
    [pytest.param(*case, id=f"{rule}: {case[0]}") for rule, cases in FOLDED.items() for case in cases],
)
def test_each_step_of_folding_does_what_it_says(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.rule("X1")
@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("쿠팡", "ㅋㅜㅍㅏㅇ"), ("쿠파", "ㅋㅜㅍㅏ"), ("쿺", "ㅋㅜㅍ"), ("쿠", "ㅋㅜ"), ("ㅋ", "ㅋ"), ("과", "ㄱㅗㅏ"),
        ("값", "ㄱㅏㅂㅅ"), ("ㄳ", "ㄱㅅ"), ("ㅘ", "ㅗㅏ"), ("밖", "ㅂㅏㄲ"), ("있", "ㅇㅣㅆ"), ("빵", "ㅃㅏㅇ"),
        ("\uffa1\uffc2", "ㄱㅏ"),
    ],
)  # fmt: skip
def test_hangul_is_the_jamo_that_are_typed(text: str, folded: str) -> None:
    assert fold(text) == fold(normalize("NFD", text)) == folded


@pytest.mark.rule("X1")
@pytest.mark.parametrize(
    ("text", "folded"),
    [("みどり", "みどり"), ("쿠팡", "쿠팡"), ("ＣＡＦÉ ﾐﾄﾞﾘ", "cafe ミドリ"), ("کتاب", "كتاب"), (" ??? ", "???")],
)
def test_by_script_only_kana_and_hangul_are_what_they_were(text: str, folded: str) -> None:
    assert fold_by_script(text) == folded


@pytest.mark.rule("X1.last_form")
@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u00a0", "\u200d", " \ufeff ", "\ufe0f", "\u3164"])
def test_blank_text_has_no_form_at_all(text: str) -> None:
    assert (fold(text), is_blank(text), words_of(text)) == ("", True, ())


@pytest.mark.rule("M3")
def test_one_character_says_something_in_han_kana_and_hangul_only() -> None:
    assert [char for char in "緑みミ쿠ㅋ〆aяא1ก々ー" if is_ideographic(char)] == list("緑みミ쿠ㅋ〆々ー")


@pytest.mark.rule("X1")
@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.rule("X1")
@given(st.text())
def test_folded_text_has_no_outer_space_and_words_are_separated_by_one(text: str) -> None:
    folded = fold(text)
    assert folded == folded.strip()
    if has_word_character(folded):
        assert folded.split(" ") == folded.split()


@pytest.mark.rule("X1", "X1.last_form")
@given(st.text())
def test_only_blank_text_folds_to_nothing(text: str) -> None:
    assert (fold(text) == "") == is_blank(text)


@pytest.mark.rule("X2.unspaced")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("銀座コージーコーナー", ["銀座", "コージーコーナー"]),
        ("ファッションセンターしまむら", ["ファッションセンター", "しまむら"]),
        ("佐々木書店", ["佐々木書店"]),
        ("トイザらス", ["トイザらス"]),
        ("タイヤ館", ["タイヤ館"]),
        ("眼鏡88", ["眼鏡", "88"]),
        ("11번가", ["11", "번가"]),
        ("auショップ", ["au", "ショップ"]),
        ("赤ちゃん本舗 東京", ["赤", "ちゃん", "本舗 東京"]),
        ("銀座 コージー", ["銀座 コージー"]),
        ("abc123 мир", ["abc123 мир"]),
        ("lamp", ["lamp"]),
        ("", [""]),
    ],
)
def test_a_change_of_script_begins_a_word_where_words_are_not_spaced(text: str, parts: list[str]) -> None:
    starts = [0, *script_starts(text), len(text)]
    assert [text[start:end] for start, end in pairwise(starts)] == parts


TABLE: Final = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))


def _is_whole_name(query: str, name: str, domain: str) -> bool:
    return bool({*query_forms(query).texts} & {*shop_forms(name, (), domain).full})


@pytest.mark.rule("X2", "X2.keys")
def test_a_hosted_shop_has_the_main_label_before_its_host_and_that_labels_pieces() -> None:
    assert shop_forms("Nord", ("Nordlicht Home",), "nord-licht.myshopify.com") == ShopForms(
        names=("nord", "nord licht myshopify com", "nord-licht.myshopify.com", "nordlicht home", "nordlichthome"),
        leading=("nord",),
        full=(
            "nord", "nord licht", "nord licht myshopify com", "nord-licht", "nord-licht.myshopify.com", "nordlicht",
            "nordlicht home", "nordlichthome",
        ),
        keys=(
            "home", "licht", "nord", "nord licht", "nord licht myshopify com", "nord-licht",
            "nord-licht.myshopify.com", "nordlicht", "nordlicht home", "nordlichthome",
        ),
        words=("home", "licht", "nord", "nordlicht"),
        infixes=("nordlichthome",),
        labels=("myshopify",),
        clipped=("hom", "lich", "nor", "nordlic", "nordlich"),
    )  # fmt: skip


@pytest.mark.rule("M3.labels")
@pytest.mark.parametrize(("domain", "labels"), TABLE["labels"].items())
def test_the_labels_around_the_main_label_are_folded_some_never_count_and_a_country_is_named(
    domain: str, labels: list[str]
) -> None:
    assert labels_of(domain) == tuple(labels)


@pytest.mark.rule("M3")
@given(names, st.lists(names, max_size=2), domains)
def test_every_word_that_may_be_a_part_is_one_of_an_infix(name: str, aliases: list[str], domain: str) -> None:
    forms = shop_forms(name, aliases, domain)
    assert [word for word in forms.words if not _is_within(word, forms.infixes)] == []


@pytest.mark.rule("M3")
def test_a_name_that_is_spelt_like_the_domain_is_an_infix_and_the_domain_is_only_without_its_suffix() -> None:
    assert shop_forms("Kestrel.internal", (), "kestrel.internal").infixes == ("kestrelinternal",)
    assert shop_forms("Kestrel", (), "kestrel.internal").infixes == ("kestrel",)


def _is_within(word: str, texts: Iterable[str]) -> bool:
    return any(word in text for text in texts)


@pytest.mark.rule("M9.dotted")
def test_what_a_name_gives_as_well_is_begun_by_any_query_whatever_the_domain() -> None:
    assert shop_forms("Shop", ("de",), "de.kompass.internal").dotted == ("de kompass internal", "de.kompass.internal")
    assert shop_forms("Shop", (), "kompass.internal").dotted == ()


@pytest.mark.rule("X2.articles")
def test_one_word_behind_an_article_is_a_full_form_only_of_a_whole_query() -> None:
    forms = shop_forms("Quelle", ("The Søuvenir",), "q.internal")
    assert (forms.leading, forms.rests) == (("quelle", "soeuvenir", "souvenir"), ("soeuvenir", "souvenir"))
    assert {*forms.rests} <= {*forms.names} & {*forms.full} & {*forms.keys}
    # What the shop is called otherwise too is a name of it whatever the query.
    assert shop_forms("The Source", ("source",), "q.internal").rests == ()
    assert shop_forms("The Source", (), "source.internal").rests == ()


@pytest.mark.rule("X2.articles")
@pytest.mark.parametrize(("name", "rest"), TABLE["articles"])
def test_articles_of_several_languages_lead(name: str, rest: str) -> None:
    assert rest in shop_forms(name, (), "q.internal").leading


@pytest.mark.rule("X2.articles")
@pytest.mark.parametrize("name", [
    "The", "The !!!", "Thekestrel", "The-Kestrel", "A Kestrel", "Kestrel The", "Lo Kestrel", "L' ", "D'Oie",
    "The \u0301",
])  # fmt: skip
def test_no_article_leads_a_name_without_one_or_with_nothing_behind_it(name: str) -> None:
    leading = {*shop_forms(name, (), "q.internal").leading}
    assert leading <= {fold(name), joined(fold(name))}


@pytest.mark.rule("X2")
def test_umlauts_and_nordic_letters_are_spelt_out_each_alone() -> None:
    names = {*shop_forms("Smo\u0308rgås Bær Ø", (), "q.internal").leading}
    assert {name for name in names if " " in name} == {"smorgas baer o", "smoergas baer o", "smorgaas baer oe"}


@pytest.mark.rule("X2")
def test_an_alias_has_the_forms_that_it_would_have_as_a_name() -> None:
    as_alias = shop_forms("Nord", ("Grün+Blau",), "q.internal")
    as_name = shop_forms("Grün+Blau", ("Nord",), "q.internal")
    assert replace(as_alias, leading=as_name.leading) == as_name
    assert {"grun blau", "gruen blau", "grun and blau", "gruen and blau", "gruenandblau"} <= {*as_alias.full}


@pytest.mark.rule("X2")
@pytest.mark.parametrize(("query", "name", "domain", "is_whole"), TABLE["whole"])
def test_a_query_equals_a_full_form_or_does_not(query: str, name: str, domain: str, *, is_whole: bool) -> None:
    assert _is_whole_name(query, name, domain) is is_whole


@pytest.mark.rule("X3", "X1.last_form")
@pytest.mark.parametrize(
    ("text", "forms"),
    [
        # Spaced and joined, and without variants; words with their marks too.
        (
            "  Mc Dönalds & co ",
            QueryForms(
                texts=("mc donalds co", "mcdonaldsco"), words=("mc", "donalds", "co"), marked=("mc", "dönalds", "co")
            ),
        ),
        # One token with a dot is compared as a domain too, and two tokens never are.
        (
            "WWW.Tui.co.uk",
            QueryForms(
                texts=("www tui co uk", "wwwtuicouk", "tui.co.uk"), words=("www", "tui", "co", "uk"), dotted=True
            ),
        ),
        ("tui.co uk", QueryForms(texts=("tui co uk", "tuicouk"), words=("tui", "co", "uk"))),
        # Punctuation is its last form without words.
        (" ?.? ", QueryForms(texts=("?.?",), words=())),
        *((blank, QueryForms(texts=(), words=())) for blank in ("", "  ", "\u200d")),
    ],
)
def test_a_query_is_compared_in_its_forms_of_which_the_first_is_spaced(text: str, forms: QueryForms) -> None:
    assert (query_forms(text), query_forms(text).spaced) == (forms, (*forms.texts, "")[0])


@pytest.mark.rule("X3")
@given(st.text(string.ascii_letters + string.digits, min_size=1, max_size=80), st.sampled_from([None, 1, 7, 64]))
def test_one_plain_word_has_the_forms_that_it_has_with_a_space_behind_it(word: str, cut: int | None) -> None:
    assert query_forms(word, cut) == query_forms(f"{word} ", cut)


@pytest.mark.rule("M9.names")
@pytest.mark.parametrize(
    ("name", "aliases", "leading"),
    [
        # The last words of the name, and not others of it or another name.
        ("The Home Depot", ("Home Depot", "HD", "The Home", "epot"), {"the home depot", "home depot"}),
        ("Hugo Boss", ("boss",), {"hugo boss", "boss"}),
        # The name in another script; what has no letters is in none.
        ("Kamax", ("Камакс", "Camax", "24"), {"kamax", "камакс"}),
        ("ココカラ", ("Cocokara Fine", "ココ"), {"ココカラ", "kokokara", "cocokara fine"}),
        ("ココカラ", ("ここすき", "ココ"), {"ココカラ", "kokokara", "ココスキ"}),
        ("中國移動 China Mobile", ("China Mobile", "CMHK"), {"中国移动 china mobile", "china mobile"}),
        ("1083", ("Tausend", "83"), {"1083", "tausend"}),
    ],
)
def test_the_name_leads_and_so_do_its_last_words_and_other_scripts(
    name: str, aliases: tuple[str, ...], leading: set[str]
) -> None:
    forms = shop_forms(name, aliases, "q.internal")
    assert leading <= {*forms.leading}
    others = {fold(alias) for alias in aliases}
    assert others & {*forms.leading} == others & leading
    assert others <= {*forms.names}
    assert {*forms.leading} <= {*forms.names} <= {*forms.full} <= {*forms.keys}


@pytest.mark.rule("M9.names")
@pytest.mark.parametrize(
    ("name", "aliases", "domain", "of_label"),
    [
        ("CDON.com", (), "cdon.se", ("names", "leading", "full")),
        ("Nord", ("CDON.COM",), "cdon.com", ("names", "full")),
        ("Nord", (), "cdon.com", ("full",)),
        ("Other.com", (), "cdon.com", ("full",)),
        ("Buy at cdon.com", (), "cdon.com", ("full",)),
    ],
)
def test_the_label_is_a_name_where_a_name_is_spelt_like_the_domain(
    name: str, aliases: tuple[str, ...], domain: str, of_label: tuple[str, ...]
) -> None:
    forms = shop_forms(name, aliases, domain)
    by_sort = {"names": forms.names, "leading": forms.leading, "full": forms.full}
    assert tuple(sort for sort, texts in by_sort.items() if "cdon" in texts) == of_label


@pytest.mark.rule("M5")
def test_names_count_in_all_spellings_and_by_the_stems_of_their_language() -> None:
    forms = category_forms("pc", "PC", [("de", "Schönheit & Düfte"), ("ja", "本")], [("de", "Schuhladen Bücher")])
    named = {text for text in forms.names if text[0] in "12"}
    assert named == {
        "1pc", "1en:pc", "2本", "2schoenheit and duefte", "2schoenheit duefte", "2schoenheitandduefte",
        "2schoenheitduefte", "2schonheit and dufte", "2schonheit dufte", "2schonheitanddufte", "2schonheitdufte",
    }  # fmt: skip
    assert {"3schuhladen bucher", "3schuhladenbuecher", "4de:schuhlad buch", "5bucher", "6de:buch"} <= {*forms.names}
    # Table words do not count alone, in any spelling.
    assert not {"5and", "6de:and"} & {*forms.names}


@pytest.mark.rule("M5")
def test_a_language_is_stemmed_by_its_primary_subtag_if_there_is_a_stemmer() -> None:
    tags = ("de", "pt-BR", "nb", "nn-NO", "EN", "ja", "zh-Hant", "x-private")
    assert [stemmed_language(tag) for tag in tags] == ["de", "pt", "no", "no", "en", None, None, None]
